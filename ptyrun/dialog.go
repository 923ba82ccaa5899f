package ptyrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Question is a dialog on the agent's screen, as a request that somebody may answer.
type Question struct {
	ID     wire.ID // also of the message to the lead
	Dialog driver.Dialog

	source    string           // of its events
	asked     string           // its ID for a speaker
	then      reducer.Activity // what a speaker does when it has an answer
	pressed   *driver.Option   // while its effect is awaited
	pressedBy string
	closed    chan struct{} // closed when the dialog is gone
}

// Options returns the options as JSON; nil: there are none.
func (q *Question) Options() json.RawMessage {
	if len(q.Dialog.Options) == 0 {
		return nil
	}
	data, _ := json.Marshal(q.Dialog.Options) // strings: cannot fail
	return data
}

const (
	answerTimeout = 3 * time.Second // for a dialog to disappear after its answer
	pressTimeout  = 2 * time.Second // beyond timing.personQuiet, until a key may be pressed
	byRule        = "a rule"
)

var (
	errQuestionGone = refused("the dialog is gone: no key was pressed")
	errNoEffect     = errors.New("the dialog is still there")
)

// openQuestion appends a question, as e which its kind and fields are added to, and has a rule answer it, or else
// notifies the lead.
func (r *runner) openQuestion(q *Question, e wire.Event) {
	r.closeQuestion("")
	q.ID, q.source, q.closed = wire.NewID(), e.Source, make(chan struct{})
	r.question = q
	r.abandonGiving("a dialog came up")
	d := q.Dialog
	e.Kind = "confirm_required"
	e = e.With("id", string(q.ID)).With("prompt", d.Prompt)
	if d.Kind == "question" {
		e.Kind = "waiting_for_input"
	}
	if options := q.Options(); options != nil {
		e = e.With("options", options)
	}
	r.append(e, "tool", d.Tool, "input", d.Input, "dialog", d.Kind)
	if o := r.ruledOption(d); o == nil {
		r.notifyOfQuestion(q)
	} else { // when the question is in the log: the events of the answer must come after it
		r.events.do(func() { r.post(func() { r.wg.Go(func() { r.answerByRule(q, *o) }) }) })
	}
}

// ruledOption returns the option that a rule chooses; nil: none. An unknown tool matches no rule, not even one for all
// tools.
func (r *runner) ruledOption(d driver.Dialog) *driver.Option {
	if d.Kind != "permission" || d.Tool == "" || r.Decide == nil {
		return nil
	}
	switch r.Decide(d) {
	case Allow:
		return firstOption(d.Options, driver.Option.AllowsOnce)
	case Deny:
		return firstOption(d.Options, driver.Option.Denies)
	}
	return nil
}

// answerByRule presses a rule's option. If that is not possible, the lead is notified. It runs beside the loop.
func (r *runner) answerByRule(q *Question, o driver.Option) {
	err := r.Box.Store().MayAct(r.ctx)
	if err != nil {
		r.post(r.askMayAct)
	} else {
		_, err = r.answer(byRule, func(now *Question) (driver.Option, error) {
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

func (r *runner) notifyOfQuestion(q *Question) {
	if asked := *q; r.NotifyLead != nil {
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

func firstOption(options []driver.Option, fits func(driver.Option) bool) *driver.Option {
	if i := slices.IndexFunc(options, fits); i >= 0 {
		return &options[i]
	}
	return nil
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
		r.notify("withdrawing a question", func() error { return r.WithdrawNotice(context.Background(), q.ID) })
	}
}

func (r *runner) appendAnswered(q *Question, now reducer.Activity) {
	e := wire.Event{Kind: "state_change", Source: q.source}.With("previous", string(r.state.Session().Activity)).With("new", string(now)).With("id", string(q.ID))
	if o := q.pressed; o == nil {
		r.append(e)
	} else {
		decision := "approve"
		if o.Denies() {
			decision = "reject"
		}
		r.append(e, "answer", o.Label, "by", q.pressedBy, "option_id", o.ID, "decision", decision)
	}
}

// answer presses the option that choose returns for the current question, as soon as that is possible, and returns when
// the dialog is gone. An option without effect is never pressed again, because the program may still read its key,
// perhaps as the answer to the next dialog. It runs beside the loop.
func (r *runner) answer(by string, choose func(q *Question) (driver.Option, error)) (label string, err error) {
	var q *Question
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
func (r *runner) press(q *Question, o driver.Option, by string) error {
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
	case sinceKey < r.timing.personQuiet && by == byRule, sinceKey < r.timing.idle:
		return notNow("a person is typing in it")
	}
	if err := r.prog.press(q, o); err != nil {
		return err
	}
	q.pressed, q.pressedBy = &o, by
	r.recording.Marker("answer:" + o.Label + " by " + by)
	return nil
}

// wantedOption returns the option that a request asks for. Nothing that is not on the screen as a whole is allowed.
func (r *runner) wantedOption(q *Question, req control.AnswerRequest) (driver.Option, error) {
	if err := r.checkAnswerable(q, req.ID); err != nil {
		return driver.Option{}, err
	}
	o, err := r.chosenOption(q, req)
	if err == nil && q.Dialog.IsCut && !o.Denies() {
		return o, refused("part of what it asks is not on its screen: no key was pressed", r.tryByHand())
	}
	return o, err
}

// chosenOption returns the option that a request names. It refuses one that does the opposite of the request, and to
// reject with one that is not known to deny; a question of kind "question" accepts any option.
func (r *runner) chosenOption(q *Question, req control.AnswerRequest) (driver.Option, error) {
	if req.Option == "" {
		return r.unnamedOption(q, req.Deny)
	}
	o := firstOption(q.Dialog.Options, func(o driver.Option) bool { return o.ID == req.Option })
	switch {
	case o == nil:
		return driver.Option{}, usage("no such option; it offers: "+q.listOptions(), tryScreen)
	case req.Deny && !o.Denies():
		return *o, usage(fmt.Sprintf("%q does not say no: no key was pressed", o.ID+" "+o.Label), control.Try{Op: "answer", Option: o.ID})
	case !req.Deny && o.Denies() && q.Dialog.Kind != "question":
		return *o, usage(fmt.Sprintf("%q says no: no key was pressed", o.ID+" "+o.Label), control.Try{Op: "answer", Option: o.ID, Deny: true})
	}
	return *o, nil
}

// checkAnswerable returns an error if q, the open question, is not the one with that id ("": any), or not to be
// answered.
func (r *runner) checkAnswerable(q *Question, id string) error {
	switch {
	case q == nil && r.prog != nil && r.prog.state().isDialog:
		return notNow("a dialog is only just coming up")
	case q == nil:
		return refused("it is not asking anything")
	case !strings.HasSuffix(string(q.ID), id):
		return refused(fmt.Sprintf("that question is closed; the open one is %s", q.ID.Short(6)))
	case reducer.IsForTerminal(q.Dialog.Kind):
		return onlyAtTerminal("it asks something that only a person at its terminal may answer")
	}
	return nil
}

// unnamedOption returns the one option that allows, or that denies.
func (r *runner) unnamedOption(q *Question, denies bool) (driver.Option, error) {
	choose := q.Dialog.Allowing
	if denies {
		choose = q.Dialog.Denying
	}
	o, isFound := choose()
	switch {
	case isFound:
		return o, nil
	case len(q.Dialog.Options) == 0:
		return o, onlyAtTerminal("its options cannot be read: no key was pressed")
	case denies:
		return o, usage("none of its options says no: "+q.listOptions(), r.tryByHand())
	}
	return o, usage("which one? "+q.listOptions(), control.Try{Op: "answer", Option: q.Dialog.Options[0].ID})
}

func (q *Question) listOptions() string {
	var labels []string
	for _, o := range q.Dialog.Options {
		labels = append(labels, o.ID+" "+o.Label)
	}
	return strings.Join(labels, ", ")
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
