package question

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// wait is the control.Handler of its socket: it takes answers, and nothing else.
var _ control.Handler = (*wait)(nil)

// CheckRight refuses more than a runner's: below a program that a person has started under another member's name, a process
// is that member's, even if it has removed from its environment that it is an agent's.
func (w *wait) CheckRight(right control.Right, pid int, by string) error {
	var members []wire.Address
	if right == control.Answer {
		members = programs.OwnersOf(w.team.Root(), process.Ancestors(pid))
	}
	for _, of := range members { // if they share it, it may be any one of them
		if of.Team != w.team.Name {
			return control.Refused(of.String() + " is of another team")
		}
		if err := w.policy.Check(policy.Answer, w.box.Agent(), policy.Actor{Name: of.Agent, IsAgent: true}); err != nil {
			return control.Refused(err.Error())
		}
		by = string(of.Agent)
	}
	err := w.scope.CheckRight(w.policy, w.box.Agent(), w.o.Program.PID, right, pid, by)
	if err != nil {
		return control.Refused(err.Error())
	}
	return nil
}

func (w *wait) Status(context.Context) (control.Status, error) {
	return control.Status{ChildPID: w.o.Program.PID, State: string(reducer.Confirming)}, nil
}

func (w *wait) Answer(ctx context.Context, r ask.Answer) (control.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.asked == nil:
		return control.Outcome{}, &control.Error{Code: "locked", Message: "it is only just asking; try again"}
	case r.ID != w.q.ID || !r.Since.IsZero() && !r.Since.Equal(w.asked.Since):
		return control.Outcome{}, control.Refused("that question is closed")
	case w.answer != nil:
		return control.Outcome{}, control.Refused(fmt.Sprintf("already answered by %s: %s", w.answer.By, w.answer.Option))
	}
	o, err := w.q.Pick(r)
	if why, isWhy := errors.AsType[*ask.PickError](err); isWhy {
		unpicked := control.Usage(why.Message)
		if why.Option != "" {
			unpicked.Try = []control.Try{{Op: "answer", Option: why.Option, Deny: why.Deny}}
		}
		return control.Outcome{}, unpicked
	}
	switch err := w.checkOpen(); {
	case errors.Is(err, ErrOver):
		return control.Outcome{}, control.Refused("it does not ask that any more")
	case err != nil:
		return control.Outcome{}, control.Refused(err.Error())
	}
	r.Deny = r.Deny || o.Denies()
	err = w.accept(ctx, r, o)
	return control.Outcome{Done: "answered", Detail: o.Label, ReasonGiven: true}, err
}

// refusing is a control.Handler without the methods of wait, which refuses everything.
type refusing struct{}

var errNotRun = control.Refused("atm does not run this program: it can only be answered")

func (refusing) Screen(context.Context, control.ScreenRequest) (control.Screen, error) {
	return control.Screen{}, errNotRun
}
func (refusing) Type(context.Context, control.TypeRequest) (control.Outcome, error) {
	return control.Outcome{}, errNotRun
}
func (refusing) Interrupt(context.Context) (control.Outcome, error) {
	return control.Outcome{}, errNotRun
}
func (refusing) Stop(context.Context) (control.Outcome, error) { return control.Outcome{}, errNotRun }
func (refusing) Restart(context.Context, control.RestartRequest) (control.Outcome, error) {
	return control.Outcome{}, errNotRun
}
func (refusing) Attach(context.Context, control.AttachRequest, *control.Viewer) error {
	return errNotRun
}
