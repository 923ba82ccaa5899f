package question

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
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
		members = w.team.Root().ProgramOf(process.Ancestors(pid))
	}
	for _, of := range members { // if they share it, it may be any one of them
		if of.Team != w.team.Name {
			return refused(of.String() + " is of another team")
		}
		if err := w.policy.CheckAnswerer(w.box.Agent(), of.Agent, true); err != nil {
			return refused(err.Error())
		}
		by = string(of.Agent)
	}
	err := w.scope.CheckRight(w.policy, w.box.Agent(), w.o.Program.PID, right, pid, by)
	if err != nil {
		return refused(err.Error())
	}
	return nil
}

func (w *wait) Status(context.Context) (control.Status, error) {
	return control.Status{ChildPID: w.o.Program.PID, State: string(reducer.Confirming)}, nil
}

func (w *wait) Answer(ctx context.Context, r control.AnswerRequest) (control.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.asked == nil:
		return control.Outcome{}, &control.Error{Code: "locked", Message: "it is only just asking; try again"}
	case r.ID != w.q.ID || !r.Since.IsZero() && !r.Since.Equal(w.asked.Since):
		return control.Outcome{}, refused("that question is closed")
	case w.answer != nil:
		return control.Outcome{}, refused(fmt.Sprintf("already answered by %s: %s", w.answer.By, w.answer.Option.Label))
	}
	o, err := w.chosenOption(r)
	if err != nil {
		return control.Outcome{}, err
	}
	switch err := w.checkOpen(); {
	case errors.Is(err, ErrOver):
		return control.Outcome{}, refused("it does not ask that any more")
	case err != nil:
		return control.Outcome{}, refused(err.Error())
	}
	err = w.accept(ctx, Answer{Option: o, IsDeny: r.Deny || o.Denies(), Reason: r.Reason, By: r.By})
	return control.Outcome{Done: "answered", Detail: o.Label}, err
}

// chosenOption returns the option that a request names, else the one that allows, or denies, once. It refuses one that
// does the opposite of the request.
func (w *wait) chosenOption(r control.AnswerRequest) (o policy.Option, err error) {
	var found *policy.Option
	if i := slices.IndexFunc(w.q.Options, func(o policy.Option) bool { return o.ID == r.Option }); i >= 0 && r.Option != "" {
		found = &w.q.Options[i]
	} else if r.Option == "" && r.Deny {
		found = w.optionOf("reject_once")
	} else if r.Option == "" {
		found = w.optionOf("allow_once")
	}
	switch {
	case found == nil && r.Option == "" && r.Deny:
		return o, usage("none of its options says no: " + w.listOptions())
	case found == nil:
		return o, usage("which one? " + w.listOptions())
	case r.Deny && !found.Denies():
		return o, usage(fmt.Sprintf("%q does not say no", found.Label), control.Try{Op: "answer", Option: found.ID})
	case !r.Deny && found.Denies():
		return o, usage(fmt.Sprintf("%q says no", found.Label), control.Try{Op: "answer", Option: found.ID, Deny: true})
	}
	return *found, nil
}

func (w *wait) listOptions() string {
	var labels []string
	for _, o := range w.q.Options {
		labels = append(labels, letter.OneLine(o.ID+" "+o.Label, 80))
	}
	return strings.Join(labels, ", ")
}

func refused(message string) error { return &control.Error{Code: "refused", Message: message} }

func usage(message string, try ...control.Try) error {
	return &control.Error{Code: "usage", Message: message, Try: try}
}

// refusing is a control.Handler without the methods of wait, which refuses everything.
type refusing struct{}

var errNotRun = refused("atm does not run this program: it can only be answered")

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
