package teamdir_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// ran writes a member's run.json, as its runner does.
func ran(t *testing.T, team *teamdir.Team, name wire.Name, runner process.Info) {
	t.Helper()
	run := string(name) + "/run"
	teamtest.Must(t, team.Dir().Mkdir(run))
	data, _ := json.Marshal(runinfo.Info{Dir: team.Dir().Join(run), Runner: runner.PID, Start: runner.Start})
	teamtest.Must(t, team.Dir().Replace(run+"/"+runinfo.File, data, false))
}

func hold(t *testing.T, team *teamdir.Team, name wire.Name) *claim.Runner {
	t.Helper()
	runner, err := claim.HoldRunner(t.Context(), team.Store, name)
	teamtest.Must(t, err)
	t.Cleanup(func() { runner.Release() })
	return runner
}

func this(t *testing.T) process.Info {
	t.Helper()
	p, ok := process.Find(os.Getpid())
	if !ok {
		t.Skip("processes are not known here")
	}
	return p
}

// A runner that does not answer is named, for atm stop to end it, unless its run.json is of one before, whose number another
// process may have now.
func TestRunnerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	team, me := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob"), this(t)
	hold(t, team, "bob")
	later := me
	later.Start--
	for p, want := range map[process.Info]int{me: me.PID, later: 0} {
		ran(t, team, "bob", p)
		_, err := team.DialRunner(t.Context(), "bob")
		silent, ok := errors.AsType[*control.NotAnsweringError](err)
		if !ok || silent.PID != want {
			t.Errorf("%d, not %d: %+v, %v", p.PID, want, silent, err)
		}
	}
}

// Of the runners above a process the nearest one counts, in whatever team, and only while it runs.
func TestRunnerOf(t *testing.T) {
	t.Parallel()
	root := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, root, "alice", "bob", "carol")
	web, err := root.CreateTeam("web")
	teamtest.Must(t, err)
	teamtest.Must(t, web.Store.Create(t.Context(), "dave"))
	const shell, near, far = 40, 30, 20
	is := func(want string) {
		t.Helper()
		if got := root.RunnerOf([]int{shell, near, far}).String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	ran(t, team, "alice", process.Info{PID: far})
	ran(t, team, "bob", process.Info{PID: near})
	ran(t, web, "dave", process.Info{PID: shell})
	hold(t, team, "carol")
	is("")
	hold(t, team, "alice")
	is("alice@main")
	bob := hold(t, team, "bob")
	is("bob@main")
	hold(t, web, "dave")
	is("dave@web")
	ran(t, web, "dave", process.Info{PID: 10})
	is("bob@main")
	teamtest.Must(t, bob.Release())
	is("alice@main")
}
