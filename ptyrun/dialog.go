package ptyrun

import (
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

// Question is what an agent's screen asks, as a request that somebody may answer.
type Question struct {
	ID     wire.ID // of the request: that of the message to the lead as well
	Dialog driver.Dialog

	ruleOption *driver.Option // what a rule presses, once the question is in the log
	pressed    *driver.Option // and has yet to work
	pressedBy  string         // whoever pressed it
	closed     chan struct{}  // when the dialog is gone
}

// Options are the options as JSON; nil: there are none.
func (q *Question) Options() json.RawMessage {
	if len(q.Dialog.Options) == 0 {
		return nil
	}
	data, _ := json.Marshal(q.Dialog.Options) // of strings alone
	return data
}

const (
	answerTimeout = 3 * time.Second // a dialog may take so long to go after its answer
	ruleTimeout   = 2 * time.Second // for a rule's answer, and as long as a person may be typing; then people are asked
	byRule        = "a rule"
)

var (
	errQuestionGone = refused("the dialog is gone: nothing was pressed", "")
	errNoEffect     = errors.New("the dialog is still there")
)

// openQuestion makes a request of a dialog: event, rules, and if these do not answer, word to the lead.
func (r *runner) openQuestion(d driver.Dialog) {
	if r.question != nil && r.question.pressed != nil {
		r.closeQuestion(reducer.Thinking) // that was answered: the program has gone on to this one
	}
	r.closeQuestion("")
	q := &Question{ID: wire.NewID(), Dialog: d, closed: make(chan struct{})}
	r.question = q
	r.abandonTyping("a dialog came up")
	e := wire.Event{Kind: "confirm_required"}.With("id", string(q.ID)).With("prompt", d.Prompt)
	if d.Kind == "question" {
		e.Kind = "waiting_for_input"
	}
	if options := q.Options(); options != nil {
		e = e.With("options", options)
	}
	r.appendEvent(e, "tool", d.Tool, "input", d.Input, "dialog", d.Kind)
	p := r.prog
	isTold := p.driver.Tells && d.Kind == "permission"
	if p.reported != p.reading.Activity && !isTold { // not from one dialog to another
		r.appendStateChange(p.reported, p.reading.Activity, p.reading.Detail)
	}
	p.reported, p.reportedDetail = p.reading.Activity, p.reading.Detail

	// (Where the tool is not known for sure, not even a rule about all of them is about this.)
	if d.Kind == "permission" && d.Tool != "" && r.Decide != nil {
		switch r.Decide(d) {
		case Allow:
			q.ruleOption = firstOption(d.Options, driver.Option.AllowsOnce)
		case Deny:
			q.ruleOption = firstOption(d.Options, driver.Option.Denies)
		}
	}
	if q.ruleOption == nil {
		r.notifyOfQuestion(q)
	}
}

// noteQuestionEvent has a rule answer whose question is in the log by now: what came of the answer must not
// stand there before it.
func (r *runner) answerLoggedQuestion(e *wire.Event) {
	q := r.question
	if q == nil || q.ruleOption == nil || e.Field("id") != string(q.ID) {
		return
	}
	ruled := *q.ruleOption
	q.ruleOption = nil
	r.wg.Go(func() { r.answerByRule(q, ruled) })
}

// answerByRule presses what a rule says, once, and tries until it may: a person may have typed a moment ago, whose
// keys must not mix with it. A key that shows no effect may still be read, by whatever the program asks next: it is
// never pressed again. Then people are asked. It runs beside the loop.
func (r *runner) answerByRule(q *Question, o driver.Option) {
	for until := time.Now().Add(r.Timing.PersonQuiet + ruleTimeout); time.Now().Before(until); {
		again := time.After(r.Timing.Idle)
		_, err := r.answer(byRule, func(now *Question) (driver.Option, error) {
			if now != q {
				return o, errQuestionGone
			}
			return o, nil
		})
		if err == nil {
			return
		}
		if errors.Is(err, errNoEffect) {
			break
		}
		select {
		case <-again:
		case <-q.closed:
			return
		}
	}
	r.post(func() {
		if r.question == q {
			r.notifyOfQuestion(q)
		}
	})
}

func (r *runner) notifyOfQuestion(q *Question) {
	if asked := *q; r.NotifyLead != nil {
		r.notify("telling the lead of a question", func() error { return r.NotifyLead(r.ctx, asked) })
	}
}

// notify tells people of questions and takes that back, in order.
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

// closeQuestion takes in that the dialog is gone: answered, by whomever. now is what the screen shows
// instead, "" where nothing does.
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
		r.notify("taking back a question", func() error { return r.WithdrawNotice(r.ctx, q.ID) })
	}
}

// noteFrame reads a whole frame at once while an answer is on its way. When it shows that the program goes
// on, the answer has worked: a dialog that comes up behind it is another, also where it looks the same.
func (r *runner) readFrame(now time.Time) {
	p := r.prog
	p.read(now, r.isAuto)
	if p.reading.Dialog == nil && (p.reading.Prompt || isWork(p.reading.Activity)) {
		r.closeQuestion(p.reading.Activity)
	}
}

func (r *runner) appendAnswered(q *Question, now reducer.Activity) {
	p := r.prog
	switch {
	case !p.isReady:
		now = reducer.Starting // a question at the start belongs to no turn
	case now == reducer.Idle || now == reducer.Error:
		// It was answered a moment ago: whether that ended the turn is known when the prompt has held.
		now = reducer.Thinking
	}
	turn := r.state.Turn()
	isTold := r.hasHooks() && turn.Word() != reducer.WordBlocked
	if isTold {
		now = turn.Activity // hooks have said what came of it
	}
	previous := p.reported
	p.reported, p.reportedDetail = now, ""
	if isTold && p.driver.Tells && q.pressed == nil {
		return // it was withdrawn
	}
	e := wire.Event{Kind: "state_change"}.With("previous", string(previous)).With("new", string(now)).With("id", string(q.ID))
	if o := q.pressed; o == nil {
		r.appendEvent(e)
	} else {
		decision := "approve"
		if o.Denies() {
			decision = "reject"
		}
		r.appendEvent(e, "answer", o.Label, "by", q.pressedBy, "option_id", o.ID, "decision", decision)
	}
}

// answer presses the option that choose wants of the question on the screen, and returns when that has
// worked. It runs beside the loop.
func (r *runner) answer(by string, choose func(q *Question) (driver.Option, error)) (label string, err error) {
	var q *Question
	label, err = inLoop(r, func() (string, error) {
		q = r.question
		o, err := choose(q)
		if err == nil {
			err = r.press(q, o, by)
		}
		return o.Label, err
	})
	if err != nil {
		return "", err
	}
	select {
	case <-q.closed:
		return label, nil
	case <-time.After(answerTimeout):
		r.post(func() { q.pressed = nil })
		return "", fmt.Errorf("%w after %q was pressed", errNoEffect, label)
	}
}

// press presses an option, if the dialog is still on the screen.
func (r *runner) press(q *Question, o driver.Option, by string) error {
	now := r.Now()
	r.refresh(now)
	// Its keys are those of this moment: arrows count from what is selected now.
	dialog := r.prog.reading.Dialog
	if dialog != nil {
		if fresh := firstOption(dialog.Options, func(f driver.Option) bool { return f.ID == o.ID }); fresh != nil {
			o = *fresh
		}
	}
	sinceKey := now.Sub(r.lastKey)
	switch {
	case !r.prog.frameSince.IsZero():
		return errors.New("it is drawing: nothing was pressed; try again")
	case fingerprint(dialog) != q.Dialog.Print:
		return errQuestionGone
	case q.pressed != nil:
		return refused("it is being answered already", "")
	case sinceKey < r.Timing.PersonQuiet && by == byRule, sinceKey < r.Timing.Idle:
		return errors.New("a person is typing in it: nothing was pressed")
	case o.Keys == "":
		return errors.New("its keys are not known: nothing was pressed")
	}
	q.pressed, q.pressedBy = &o, by
	r.turn.isInterrupted = r.turn.isInterrupted || o.Denies() // its turn is over with that, or goes on
	r.recording.Marker("answer:" + o.Label + " by " + by)
	r.prog.sendKeys([]byte(o.Keys))
	return nil
}

// wantedOption is the option of a question that a request means. One that does the contrary of what is asked
// for is a slip, and refused, and so is one that is not known to deny; but any answer to a question of the
// program's may be given.
func (r *runner) wantedOption(q *Question, req control.AnswerRequest) (driver.Option, error) {
	switch {
	case q == nil:
		return driver.Option{}, refused("nothing is asked", "")
	case req.ID != "" && req.ID != string(q.ID) && !strings.HasSuffix(string(q.ID), req.ID):
		return driver.Option{}, refused(fmt.Sprintf("that question is not open any more; %s is", q.ID.Short(6)), "")
	case q.Dialog.Kind == "trust":
		return driver.Option{}, errors.New("it asks whether a directory is trusted: that is for a person at its terminal")
	}
	name := string(r.Box.Agent())
	var o driver.Option
	var labels []string
	for _, one := range q.Dialog.Options {
		labels = append(labels, one.ID+" "+one.Label)
		if one.ID == req.Option && o.ID == "" {
			o = one
		}
	}
	isFound, all := o.ID != "", strings.Join(labels, ", ")
	switch {
	case req.Option == "" && req.Deny:
		o, isFound = q.Dialog.Denying()
	case req.Option == "":
		o, isFound = q.Dialog.Allowing()
	case !isFound:
		return o, usage("no such option; there are: "+all, "screen "+name+" shows it")
	case req.Deny && !o.Denies():
		return o, usage(fmt.Sprintf("%q does not say no: nothing was pressed", o.ID+" "+o.Label), "approve "+name+" "+o.ID)
	case !req.Deny && o.Denies() && q.Dialog.Kind != "question":
		return o, usage(fmt.Sprintf("%q denies it: nothing was pressed", o.ID+" "+o.Label), "reject "+name+" "+o.ID)
	}
	switch {
	case isFound:
		return o, nil
	case len(labels) == 0:
		return o, &control.Error{Code: "failed", Message: "its options are not known: nothing was pressed", Hint: "atm attach " + name}
	case req.Deny:
		return o, usage("none of its options says no: "+all, "attach "+name)
	}
	return o, usage("which one? "+all, "approve "+name+" "+q.Dialog.Options[0].ID)
}

func refused(message, hint string) error {
	return &control.Error{Code: "refused", Message: message, Hint: hint}
}

func usage(message, hint string) error {
	return &control.Error{Code: "usage", Message: message, Hint: "atm " + hint}
}
