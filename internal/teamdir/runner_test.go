package teamdir_test

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/ptyrun/control"
)

// A runner that does not answer is named, for atm stop to end it: by who holds its lock, since agents can write run.json.
func TestRunnerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who holds a lock is known on Linux only")
	}
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	runner, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	teamtest.Must(t, err)
	defer runner.Release()
	teamtest.Must(t, team.Dir().Mkdir("bob/run"))
	for written, want := range map[int]int{os.Getpid(): os.Getpid(), os.Getppid(): 0} {
		data, _ := json.Marshal(runinfo.Info{Dir: team.Dir().Join("bob/run"), Runner: written})
		teamtest.Must(t, team.Dir().Replace("bob/run/"+runinfo.File, data, false))
		_, err := team.DialRunner(t.Context(), "bob")
		silent, ok := errors.AsType[*control.NotAnsweringError](err)
		if !ok || silent.PID != want {
			t.Errorf("%d, not %d: %+v, %v", written, want, silent, err)
		}
	}
}
