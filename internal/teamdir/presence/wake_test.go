//go:build linux

package presence

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// What a Claude Code says in its session's file counts where its hooks are silent, and not against fresher ones or for
// another conversation.
func TestDeclaredState(t *testing.T) {
	t.Parallel()
	team, _ := teamtest.RepositoryTeam(t, nil)
	config := t.TempDir()
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"CLAUDE_CONFIG_DIR=" + config}
	teamtest.Must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, ok := process.Find(cmd.Process.Pid)
	if !ok {
		t.Fatal("it does not run")
	}
	teamtest.Must(t, os.Mkdir(filepath.Join(config, "sessions"), 0o700))
	program, _ := json.Marshal(programs.Program{Tool: "claude", PID: p.PID, Start: p.Start, Session: "s1"})
	teamtest.Must(t, team.Dir().Mkdir("bob/run"))
	teamtest.Must(t, team.Dir().Mkdir("bob/run/programs"))
	teamtest.Must(t, team.Dir().Replace(programs.File("bob", p.PID), program, false))
	later := time.Now().Add(time.Minute)
	log := team.Box("bob").Log()
	report := func(kind string) {
		t.Helper()
		teamtest.Must(t, log.Append(t.Context(), wire.Event{Source: "hook", Kind: kind, Session: "s1", TurnID: "t1"}))
	}
	report("turn_started")
	says := func(session, status, waitingFor string, since time.Time) (reducer.Word, reducer.Source) {
		t.Helper()
		file := fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":%q,"status":%q,"waitingFor":%q,"statusUpdatedAt":%d}`,
			p.PID, p.Start, session, status, waitingFor, since.UnixMilli())
		teamtest.Must(t, os.WriteFile(filepath.Join(config, "sessions", fmt.Sprint(p.PID, ".json")), []byte(file), 0o600))
		s, err := team.State("bob")
		teamtest.Must(t, err)
		m, err := Summary(t.Context(), team, "bob")
		teamtest.Must(t, err)
		if declared := m.declaredState(s, later); declared != nil {
			s = declared
		}
		return s.Word(), s.Session().Source
	}
	for _, c := range []struct {
		session, status, waitingFor string
		age                         time.Duration
		want                        reducer.Word
		source                      reducer.Source
	}{
		{"s1", "busy", "", 30 * time.Second, "busy", "hook"},
		{"s1", "idle", "", 30 * time.Second, "idle", reducer.FromFile}, // Escape
		{"s1", "shell", "", 30 * time.Second, "idle", reducer.FromFile},
		{"s1", "waiting", "permission prompt", 30 * time.Second, "blocked", reducer.FromFile},
		{"s1", "waiting", "dialog open", 30 * time.Second, "blocked", reducer.FromFile},
		{"s1", "new word", "", 30 * time.Second, "busy", "hook"},
		{"s2", "idle", "", 30 * time.Second, "busy", "hook"},
	} {
		if word, source := says(c.session, c.status, c.waitingFor, later.Add(-c.age)); word != c.want || source != c.source {
			t.Errorf("%+v: %s by %s", c, word, source)
		}
	}
	if s, err := team.State("bob"); err != nil || s.Word() != reducer.WordBusy {
		t.Errorf("it was folded into the state: %s, %v", s.Word(), err)
	}
	later = time.Now()
	if word, source := says("s1", "idle", "", later); word != "busy" || source != "hook" {
		t.Errorf("against a fresh hook: %s by %s", word, source)
	}
}
