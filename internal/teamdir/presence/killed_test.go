package presence

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A program that was killed tells nobody: its session is over all the same, for who looks and, once another program takes
// the name, in the log. Where the process may be another's, or one between the program and its hooks, it stays as it was.
func TestProgramWasKilled(t *testing.T) {
	t.Parallel()
	own, ok := process.Find(os.Getpid())
	if !ok {
		t.Skip("the system does not tell of processes")
	}
	for _, c := range []struct {
		name  string
		notes int
		space string
		want  reducer.Word
	}{{"killed", 2, "", reducer.WordOff}, {"noted once", 1, "", reducer.WordBusy}, {"elsewhere", 2, "box pid:[1]", reducer.WordBusy}} {
		team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
		child := exec.Command("sleep", "600")
		teamtest.Must(t, child.Start())
		info, ok := process.Find(child.Process.Pid)
		if !ok {
			t.Fatal("the process is not there")
		}
		killed := programs.Program{Tool: "claude", PID: info.PID, Start: info.Start, Session: "s1"}
		for i := range c.notes {
			teamtest.Must(t, programs.Note(team, "bob", killed, i == 0))
		}
		noted := programs.Of(team, "bob")[0]
		if c.space != "" {
			noted.Space = c.space
			data, _ := json.Marshal(noted)
			teamtest.Must(t, team.Dir().Replace(programs.File("bob", noted.PID), data, false))
		}
		teamtest.Must(t, team.Box("bob").Log().Append(t.Context(),
			wire.Event{Source: "hook", Kind: "session_start", Session: "s1"}, wire.Event{Source: "hook", Kind: wire.TurnStarted, Session: "s1", TurnID: "t1"}))
		if m, err := Summary(t.Context(), team, "bob"); err != nil || m.State != reducer.WordBusy {
			t.Errorf("%s: before it is %s, %v", c.name, m.State, err)
		}
		teamtest.Must(t, child.Process.Kill())
		child.Wait()
		m, err := Summary(t.Context(), team, "bob")
		if err != nil || m.State != c.want || (m.Presence == reducer.Offline) != (c.want == reducer.WordOff) || (m.Since == nil) != (c.want == reducer.WordOff) {
			t.Errorf("%s: it is %s, %s, since %v, %v", c.name, m.State, m.Presence, m.Since, err)
		}
		teamtest.Must(t, programs.Note(team, "bob", programs.Program{Tool: "claude", PID: own.PID, Start: own.Start, Session: "s2"}, true))
		if s, err := team.State("bob"); err != nil || s.Word() != c.want {
			t.Errorf("%s: the log says %s, %v", c.name, s.Word(), err)
		}
	}
}
