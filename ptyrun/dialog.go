package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// question is what the agent asks, as a request that somebody may answer.
type question struct {
	ask.Question
	rule policy.Decision // what the owner's rules say; "": they do not see it

	source  string           // of its events
	asked   string           // its ID for a speaker
	then    reducer.Activity // what a speaker does when it has an answer
	pressed *ask.Option      // while its effect is awaited
	by      string           // who has pressed it
	closed  chan struct{}    // closed when it is gone
}

const (
	answerTimeout = 3 * time.Second // for a dialog to disappear after its answer
	pressTimeout  = 2 * time.Second // beyond timing.personQuiet, until a key may be pressed
)

var (
	errQuestionGone = refused("the dialog is gone: no key was pressed")
	errNoEffect     = errors.New("the dialog is still there")
)

// openQuestion appends a question, as e which its kind and fields are added to, and has a rule answer it, or else
// notifies the lead.
func (r *runner) openQuestion(q *question, e wire.Event) {
	r.closeQuestion("")
	q.ID, q.Agent, q.Kind, q.Since, q.Running = string(wire.NewID()), r.Box.Agent(), reducer.Permission, r.now(), true
	q.source, q.closed = e.Source, make(chan struct{})
	r.question = q
	r.abandonGiving("a dialog came up")
	e.Kind = wire.ConfirmRequired
	if q.Dialog == "question" {
		e.Kind, q.Kind = wire.WaitingForInput, reducer.Question
	}
	e = e.With("id", q.ID).With("prompt", q.Prompt)
	if len(q.Options) > 0 {
		e = e.With("options", q.Options)
	}
	r.append(e, "tool", q.Tool, "input", q.Input, "dialog", q.Dialog)
	if o := q.ruledOption(); o == nil {
		r.notifyOfQuestion(q)
	} else { // when the question is in the log: the events of the answer must come after it
		r.events.do(func() { r.post(func() { r.wg.Go(func() { r.answerByRule(q, *o) }) }) })
	}
}

// ruledOption returns the option that a rule chooses; nil: none.
func (q *question) ruledOption() *ask.Option {
	if q.rule != policy.Allow && q.rule != policy.Deny {
		return nil
	}
	return q.Once(q.rule == policy.Deny)
}

// answerByRule presses a rule's option. If that is not possible, the lead is notified. It runs beside the loop.
func (r *runner) answerByRule(q *question, o ask.Option) {
	err := r.Box.Store().MayAct(r.ctx)
	if err != nil {
		r.post(r.askMayAct)
	} else {
		_, err = r.answer(ask.ByRule, func(now *question) (ask.Option, error) {
			if now != q {
				return o, errQuestionGone
			}
			return o, nil
		})
	}
	r.post(func() {
		if err != nil && r.question == q {
			r.notifyOfQuestion(q)
		}
	})
}

func (r *runner) notifyOfQuestion(q *question) {
	if asked := q.Question; r.NotifyLead != nil {
		r.notify("telling the lead about a question", func() error { return r.NotifyLead(context.Background(), asked) })
	}
}

// notify sends or withdraws a notice, in order.
func (r *runner) notify(what string, tell func() error) {
	r.notifier.do(func() {
		if err := tell(); err != nil {
			r.Log.Error(what, "err", err)
		}
	})
}

// closeQuestion closes the question because its dialog is gone, whoever answered it. now is what the screen shows
// instead; "": nothing, so that no answer is reported.
func (r *runner) closeQuestion(now reducer.Activity) {
	q := r.question
	if q == nil {
		return
	}
	r.question = nil
	if now != "" {
		r.appendAnswered(q, now)
	}
	close(q.closed)
	if r.WithdrawNotice != nil {
		r.notify("withdrawing a question", func() error { return r.WithdrawNotice(context.Background(), wire.ID(q.ID)) })
	}
}

func (r *runner) appendAnswered(q *question, now reducer.Activity) {
	e := wire.Event{Kind: wire.StateChange, Source: q.source}.With("previous", string(r.state.Session().Activity)).With("new", string(now)).With("id", q.ID)
	if o := q.pressed; o == nil {
		r.append(e)
	} else {
		r.append(e, "answer", o.Label, "by", q.by, "option_id", o.ID, "decision", ask.Answer{Deny: o.Denies()}.Decision())
	}
}

// answer presses the option that choose returns for the current question, as soon as that is possible, and returns when
// the dialog is gone. An option without effect is never pressed again, because the program may still read its key,
// perhaps as the answer to the next dialog. It runs beside the loop.
func (r *runner) answer(by string, choose func(q *question) (ask.Option, error)) (label string, err error) {
	var q *question
	for until := time.Now().Add(r.timing.personQuiet + pressTimeout); ; time.Sleep(r.timing.idle / 5) {
		label, err = inLoop(r, func() (string, error) {
			if q != nil && q != r.question {
				return "", errQuestionGone
			}
			q = r.question
			o, err := choose(q)
			if err == nil {
				err = r.press(q, o, by)
			}
			return o.Label, err
		})
		if err == nil {
			break
		}
		if why, _ := errors.AsType[*control.Error](err); why == nil || why.Code != locked || time.Now().After(until) {
			return "", err
		}
	}
	select {
	case <-q.closed:
		return label, nil
	case <-time.After(answerTimeout):
		if !r.hasTerminal() { // it has the answer, and will tell so behind what it has told before
			return label, nil
		}
		r.post(func() { q.pressed = nil })
		return "", fmt.Errorf("%w after %q was pressed", errNoEffect, label)
	}
}

// press has the agent get an option, if it still asks that.
func (r *runner) press(q *question, o ask.Option, by string) error {
	if r.prog == nil {
		return errNotRunning
	}
	now := r.now()
	r.prog.refresh()
	sinceKey := now.Sub(r.lastKey)
	switch {
	case q != r.question: // as the agent has just told
		return errQuestionGone
	case q.pressed != nil:
		return refused("somebody is already answering it") // its key may still be unread: no second one after it
	case sinceKey < r.timing.idle:
		return notNow("a person is typing in it")
	}
	if err := r.prog.press(q, o); err != nil {
		return err
	}
	q.pressed, q.by = &o, by
	r.recording.Marker("answer:" + o.Label + " by " + by)
	return nil
}

// wantedOption returns the option that an answer means. Nothing that is not on the screen as a whole is allowed.
func (r *runner) wantedOption(q *question, a ask.Answer) (ask.Option, error) {
	if err := r.checkAnswerable(q, a.ID); err != nil {
		return ask.Option{}, err
	}
	switch {
	case len(q.Options) > 0, a.Deny && a.Option == "" && q.Cancel.ID != "":
	case q.IsTyped():
		return ask.Option{}, &control.Error{Code: "failed", Message: "it takes any text: no key was pressed", Try: []control.Try{tryPrompt, tryAttach}}
	default:
		return ask.Option{}, onlyAtTerminal("its options cannot be read: no key was pressed")
	}
	o, err := q.Pick(a)
	why, _ := errors.AsType[*ask.PickError](err)
	switch {
	case why != nil && why.Option == "" && a.Option == "":
		return o, usage(why.Message, r.tryByHand())
	case why != nil && why.Option == "":
		return o, usage(why.Message, tryScreen)
	case why != nil:
		return o, usage(why.Message+": no key was pressed", control.Try{Op: "answer", Option: why.Option, Deny: why.Deny})
	case q.Cut && !o.Denies():
		return o, refused("part of what it asks is not on its screen: no key was pressed", r.tryByHand())
	}
	return o, nil
}

// checkAnswerable returns an error if q, the open question, is not the one with that id ("": any), or not to be
// answered.
func (r *runner) checkAnswerable(q *question, id string) error {
	switch {
	case q == nil && r.prog != nil && r.prog.state().isDialog:
		return notNow("a dialog is only just coming up")
	case q == nil:
		return refused("it is not asking anything")
	case !strings.HasSuffix(q.ID, id):
		return refused(fmt.Sprintf("that question is closed; the open one is %s", q.Short()))
	case reducer.IsForTerminal(q.Dialog):
		return onlyAtTerminal("it asks something that only a person at its terminal may answer")
	}
	return nil
}

// locked is the code of an error that time alone may end.
const locked = "locked"

// What most errors say to try.
var (
	tryScreen = control.Try{Op: "screen"}
	tryAttach = control.Try{Op: "attach"}
	tryRaw    = control.Try{Op: "type", Raw: true}
	tryPrompt = control.Try{Op: "type", Enter: true}
)

// tryByHand is what is left to a person.
func (r *runner) tryByHand() control.Try {
	if r.hasTerminal() {
		return tryAttach
	}
	return control.Try{Op: "interrupt"}
}

func notNow(why string) error {
	return &control.Error{Code: locked, Message: why + ": no key was pressed; try again", Try: []control.Try{tryScreen}}
}

func onlyAtTerminal(message string) error {
	return &control.Error{Code: "failed", Message: message, Try: []control.Try{tryAttach}}
}

func refused(message string, try ...control.Try) error {
	return &control.Error{Code: "refused", Message: message, Try: try}
}

func usage(message string, try ...control.Try) error {
	return &control.Error{Code: "usage", Message: message, Try: try}
}
