package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// checkRunnerVersion reports a runner of another version of atm to which this one cannot talk. isOld: it can talk to it, and the
// runner goes on with what it was started as.
func (d *doctor) checkRunnerVersion(t *teamdir.Team, m presence.Member) (isOld bool) {
	run, _ := runinfo.Read(t.Dir(), m.Name)
	foreign, isForeign := errors.AsType[*control.OtherVersionError](m.RunnerErr)
	if !isForeign {
		return m.Running && m.RunnerErr == nil && run.Version != d.version
	}
	its, fix := "another version of atm", "atm status "+string(m.Name)
	if run.Version != "" {
		its = "atm " + run.Version
	}
	if foreign.PID != 0 {
		fix = fmt.Sprint("kill ", foreign.PID)
	}
	d.add("runner.protocol", "error", fix, "its runner is of %s, to which this one, %s, cannot talk: end it and its agent, then %s",
		its, d.version, app.RunCommand(t, m.Name))
	return false
}

// addOldRunners reports in one line the members whose runners are of another version of atm.
func (d *doctor) addOldRunners(t *teamdir.Team, old []string) {
	if len(old) == 0 {
		return
	}
	again, up := []string{"atm down " + strings.Join(old, " ")}, []string{"atm up"}
	for _, name := range old {
		if run := app.RunCommand(t, wire.Name(name)); strings.HasPrefix(run, "atm up ") {
			up = append(up, name)
		} else {
			again = append(again, run)
		}
	}
	if len(up) > 1 {
		again = slices.Insert(again, 1, strings.Join(up, " "))
	}
	d.add("runner.version", "info", strings.Join(again, "; "),
		"not run by this atm, %s, but by one from before: %s: what is new here applies from their next start", d.version, strings.Join(old, ", "))
}
