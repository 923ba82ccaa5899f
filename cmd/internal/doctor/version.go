package doctor

import (
	"errors"
	"fmt"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

// checkVersions reports what another version of atm has left: a runner, which goes on with what it was started as, and a
// snapshot of the state, which has to be made anew. fold is the snapshot's version.
func (d *doctor) checkVersions(t *teamdir.Team, m presence.Member, fold int) {
	if m.Running {
		d.checkRunnerVersion(t, m)
	}
	if fold != 0 && fold != reducer.Version {
		d.add("state.version", "info", "",
			"its state.json is of another version of atm (fold %d, here %d): it is made anew from all its events; nothing is lost", fold, reducer.Version)
	}
}

func (d *doctor) checkRunnerVersion(t *teamdir.Team, m presence.Member) {
	run, _ := runinfo.Read(t.Dir(), m.Name)
	its := "another version of atm"
	if run.Version != "" {
		its = "atm " + run.Version
	}
	foreign, ok := errors.AsType[*control.OtherVersionError](m.RunnerErr)
	switch {
	case ok:
		fix := "atm status " + string(m.Name)
		if foreign.PID != 0 {
			fix = fmt.Sprint("kill ", foreign.PID)
		}
		d.add("runner.protocol", "error", fix, "its runner is of %s, to which this one, %s, cannot talk: end it and its agent, then %s",
			its, d.version, app.RunCommand(t, m.Name))
	case m.RunnerErr == nil && run.Version != d.version:
		d.add("runner.version", "info", fmt.Sprintf("atm down %s; %s", m.Name, app.RunCommand(t, m.Name)),
			"its runner is of %s, this is %s: what is new here applies from its next start", its, d.version)
	}
}
