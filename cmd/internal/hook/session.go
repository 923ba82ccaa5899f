package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/tmux"
	"github.com/agentteammail/atm/reducer"
)

// begin notes the program and its conversation when a session begins or a turn does, and warns of another program.
func (c *call) begin() {
	isNew := c.BeginsSession || c.IsNewProgram
	c.ended() // before those are forgotten
	if isNew && !c.isRunning && !c.IsSecond {
		c.err = errors.Join(c.err, c.scope.SavePolicy())
	}
	c.err = errors.Join(c.err, c.noteProgram(isNew))
	if !isNew {
		return
	}
	c.err = errors.Join(c.err, edits.PruneEdits(context.Background(), c.scope.Team))
	warning := app.SharingWarning(c.scope.Team, c.Box.Agent(), c.program(), !c.IsSecond)
	if warning != "" && c.WantsPrimer { // OpenCode would not show it
		c.Warning = agents.Prefix + " " + warning
		c.Text.WriteString(c.Warning + "\n")
	}
}

func (c *call) noteProgram(isNew bool) error {
	p := c.program()
	p.Session, p.Mode, p.Entry, p.Flags = c.Session, c.Mode, os.Getenv(c.Vendor.Entry), c.flags()
	if c.isRunning && !c.IsSecond {
		p.Run = c.run.Run
	} else if !c.IsSecond && c.Vendor.Server == nil { // a server runs its hooks in the pane that it was started in
		p.Pane = tmux.Of(p.PID, os.Getenv)
	}
	if c.HasPlugin {
		p.Opens = []string{agents.ByPlugin}
	}
	return programs.Note(c.scope.Team, c.Box.Agent(), p, isNew)
}

// primer returns the text for the agent when its session begins; "": it may not act here.
func (c *call) primer() string {
	text, err := c.scope.Primer(c.Verbs, true)
	if c.scope.WarnUnaccepted(); err != nil || c.scope.CheckAccepted() != nil {
		return ""
	}
	return text
}

// markShell adds programs.ShellOf and the root to the variables that the program sets for the commands of a session, but
// not for its hooks.
func (c *call) markShell(file string) error {
	f, err := durable.OpenRegular(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "export %s=%s\nexport ATM_ROOT=%s\n", programs.ShellOf, c.Box.Address(), policy.Quote(c.scope.Root.Path))
	return cmp.Or(err, f.Close())
}

// end forgets the program whose session ends. Its last event names the session of another program of the agent that runs.
func (c *call) end() {
	team, name, p := c.scope.Team, c.Box.Agent(), c.program()
	if p.Server == "" || !p.IsRunning() { // else it shows another one: see programs.Ask
		programs.Forget(team, name, p)
	}
	if other := programs.OtherSession(team, name, p); other != "" && len(c.Events) > 0 {
		last := &c.Events[len(c.Events)-1]
		*last = last.With(reducer.OtherSession, other)
	}
}
