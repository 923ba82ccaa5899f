// Package questions has what an agent asks, one thing at a time: its event, the rule that answers it or the notice to the
// lead, and the answer, which is given only while the agent still asks that. It works with any run.Agent, and types nothing.
package questions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

const (
	answerTimeout = 3 * time.Second // for a dialog to disappear after its answer
	pressTimeout  = 2 * time.Second // beyond Timing.PersonQuiet, until a key may be pressed
)

// ErrGone means that what was answered is not asked any more.
var ErrGone = control.Refused("the dialog is gone: no key was pressed")

var errNoEffect = errors.New("the dialog is still there")

// Questions is what the agent asks, one thing at a time, and who answers.
type Questions struct {
	Run       *run.Run
	IsScreen  bool                                            // it asks on the screen of a terminal
	Notify    func(what string, tell func() error)            // sends or withdraws a notice, in order
	TellLead  func(ctx context.Context, q ask.Question) error // of a question that no rule answers; may be nil
	Withdraw  func(ctx context.Context, id wire.ID) error     // that notice; may be nil
	Opened    func()                                          // is called when it has asked something
	MayNotAct func()                                          // is called when no rule may answer
}

// Open appends a question, as e which its kind and fields are added to, and has a rule answer it, or else notifies the
// lead.
func (a *Questions) Open(q *run.Question, e wire.Event) {
	a.Close("")
	r := a.Run
	q.ID, q.Agent, q.Kind, q.Since, q.Running = string(wire.NewID()), r.Box.Agent(), reducer.Permission, r.Now(), true
	q.Source, q.Closed = e.Source, make(chan struct{})
	r.Question = q
	a.Opened()
	e.Kind = wire.ConfirmRequired
	if q.Dialog == "question" {
		e.Kind, q.Kind = wire.WaitingForInput, reducer.Question
	}
	e = e.With("id", q.ID).With("prompt", q.Prompt)
	if len(q.Options) > 0 {
		e = e.With(wire.FieldOptions, q.Options)
	}
	r.Append(e, "tool", q.Tool, "input", q.Input, "dialog", q.Dialog)
	if o := ruledOption(q); o == nil {
		a.notifyLead(q)
	} else { // when the question is in the log: the events of the answer must come after it
		r.AfterLogged(func() { r.Post(func() { r.Go(func() { a.answerByRule(q, *o) }) }) })
	}
}

// ruledOption returns the option that a rule chooses; nil: none.
func ruledOption(q *run.Question) *ask.Option {
	if q.Rule != policy.Allow && q.Rule != policy.Deny {
		return nil
	}
	return q.Once(q.Rule == policy.Deny)
}

// answerByRule presses a rule's option. If that is not possible, the lead is notified. It runs beside the loop.
func (a *Questions) answerByRule(q *run.Question, o ask.Option) {
	r := a.Run
	err := r.Box.Store().MayAct(r.Context())
	if err != nil {
		r.Post(a.MayNotAct)
	} else {
		_, err = a.answer(ask.ByRule, func(now *run.Question) (ask.Option, error) {
			if now != q {
				return o, ErrGone
			}
			return o, nil
		})
	}
	r.Post(func() {
		if err != nil && r.Question == q {
			a.notifyLead(q)
		}
	})
}

func (a *Questions) notifyLead(q *run.Question) {
	if asked := q.Question; a.TellLead != nil {
		a.Notify("telling the lead about a question", func() error { return a.TellLead(context.Background(), asked) })
	}
}

// Close closes the question because its dialog is gone, whoever answered it. now is what the screen shows
// instead; "": nothing, so that no answer is reported.
func (a *Questions) Close(now reducer.Activity) {
	q := a.Run.Question
	if q == nil {
		return
	}
	a.Run.Question = nil
	if now != "" {
		a.appendAnswered(q, now)
	}
	close(q.Closed)
	if a.Withdraw != nil {
		a.Notify("withdrawing a question", func() error { return a.Withdraw(context.Background(), wire.ID(q.ID)) })
	}
}

func (a *Questions) appendAnswered(q *run.Question, now reducer.Activity) {
	r := a.Run
	e := wire.Event{Kind: wire.StateChange, Source: q.Source}.With("previous", string(r.State.Session().Activity)).With("new", string(now)).With("id", q.ID)
	if o := q.Pressed; o == nil {
		r.Append(e)
	} else {
		r.Append(e, "answer", o.Label, "by", q.By, "option_id", o.ID, "decision", ask.Answer{Deny: o.Denies()}.Decision())
	}
}

// answer presses the option that choose returns for the current question, as soon as that is possible, and returns when
// the dialog is gone. An option without effect is never pressed again, because the program may still read its key,
// perhaps as the answer to the next dialog. It runs beside the loop.
func (a *Questions) answer(by string, choose func(q *run.Question) (ask.Option, error)) (label string, err error) {
	r := a.Run
	var q *run.Question
	for until := time.Now().Add(r.Timing.PersonQuiet + pressTimeout); ; time.Sleep(r.Timing.Idle / 5) {
		label, err = loop.In(r.Loop, func() (string, error) {
			if q != nil && q != r.Question {
				return "", ErrGone
			}
			q = r.Question
			o, err := choose(q)
			if err == nil {
				err = a.press(q, o, by)
			}
			return o.Label, err
		})
		if err == nil {
			break
		}
		if why, _ := errors.AsType[*control.Error](err); why == nil || why.Code != run.Locked || time.Now().After(until) {
			return "", err
		}
	}
	select {
	case <-q.Closed:
		return label, nil
	case <-time.After(answerTimeout):
		if !a.IsScreen { // it has the answer, and will tell so behind what it has told before
			return label, nil
		}
		r.Post(func() { q.Pressed = nil })
		return "", fmt.Errorf("%w after %q was pressed", errNoEffect, label)
	}
}

// press has the agent get an option, if it still asks that.
func (a *Questions) press(q *run.Question, o ask.Option, by string) error {
	r := a.Run
	if r.Agent == nil {
		return run.ErrNotRunning
	}
	now := r.Now()
	r.Agent.Refresh()
	sinceKey := now.Sub(r.LastKey)
	switch {
	case q != r.Question: // as the agent has just told
		return ErrGone
	case q.Pressed != nil:
		return control.Refused("somebody is already answering it") // its key may still be unread: no second one after it
	case sinceKey < r.Timing.Idle:
		return run.NotNow("a person is typing in it")
	}
	if err := r.Agent.Press(q, o); err != nil {
		return err
	}
	q.Pressed, q.By = &o, by
	r.Recording.Marker("answer:" + o.Label + " by " + by)
	return nil
}

// Answer answers the question, and returns when the answer is in the log.
func (a *Questions) Answer(req ask.Answer) (control.Outcome, error) {
	label, err := a.answer(req.By, func(q *run.Question) (ask.Option, error) { return a.wantedOption(q, req) })
	if err == nil {
		a.Run.AwaitLogged(answerTimeout)
	}
	return control.Outcome{Done: "answered", Detail: label}, err
}

// wantedOption returns the option that an answer means. Nothing that is not on the screen as a whole is allowed.
func (a *Questions) wantedOption(q *run.Question, want ask.Answer) (ask.Option, error) {
	if err := a.checkAnswerable(q, want.ID); err != nil {
		return ask.Option{}, err
	}
	switch {
	case len(q.Options) > 0, want.Deny && want.Option == "" && q.Cancel.ID != "":
	case q.IsTyped():
		return ask.Option{}, &control.Error{Code: "failed", Message: "it takes any text: no key was pressed", Try: []control.Try{run.TryPrompt, run.TryAttach}}
	default:
		return ask.Option{}, run.OnlyAtTerminal("its options cannot be read: no key was pressed")
	}
	o, err := q.Pick(want)
	why, _ := errors.AsType[*ask.PickError](err)
	switch {
	case why != nil && why.Option == "" && want.Option == "":
		return o, control.Usage(why.Message, a.tryByHand())
	case why != nil && why.Option == "":
		return o, control.Usage(why.Message, run.TryScreen)
	case why != nil:
		return o, control.Usage(why.Message+": no key was pressed", control.Try{Op: "answer", Option: why.Option, Deny: why.Deny})
	case q.Cut && !o.Denies():
		return o, control.Refused("part of what it asks is not on its screen: no key was pressed", a.tryByHand())
	}
	return o, nil
}

// checkAnswerable returns an error if q, the open question, is not the one with that id ("": any), or not to be
// answered.
func (a *Questions) checkAnswerable(q *run.Question, id string) error {
	switch {
	case q == nil && a.Run.Agent != nil && a.Run.Agent.State().IsDialog:
		return run.NotNow("a dialog is only just coming up")
	case q == nil:
		return control.Refused("it is not asking anything")
	case !strings.HasSuffix(q.ID, id):
		return control.Refused(fmt.Sprintf("that question is closed; the open one is %s", q.Short()))
	case reducer.IsForTerminal(q.Dialog):
		return run.OnlyAtTerminal("it asks something that only a person at its terminal may answer")
	}
	return nil
}

// tryByHand is what is left to a person.
func (a *Questions) tryByHand() control.Try {
	if a.IsScreen {
		return run.TryAttach
	}
	return control.Try{Op: "interrupt"}
}
