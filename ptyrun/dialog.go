package ptyrun

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Question is what an agent's screen asks.
type Question struct {
	ID     wire.ID // of the request: that of the message to the lead as well
	Dialog driver.Dialog
	Since  time.Time
}

// Options are the options as JSON: [{"id","label"}]; nil: there are none.
func (q *Question) Options() json.RawMessage {
	var options []map[string]string
	for _, o := range q.Dialog.Options {
		options = append(options, map[string]string{"id": o.ID, "label": o.Label})
	}
	if options == nil {
		return nil
	}
	data, _ := json.Marshal(options) // of strings alone
	return data
}

// question is a dialog on the screen, as a request that somebody may answer.
type question struct {
	Question
	answer *answer // being pressed

	rule    *driver.Option // what a rule answers; nil: people do
	tries   int            // of that
	retryAt time.Time
}

// answer is an option that was pressed and has yet to work.
type answer struct {
	label  string
	by     string
	until  time.Time
	waiter chan<- reply
}

func (a *answer) end(out control.Outcome, err error) {
	if a.waiter != nil {
		a.waiter <- reply{out, err}
	}
}

const (
	answerWorks = 3 * time.Second // a dialog may take so long to go after its answer
	maxByRule   = 4               // tries of a rule's answer, before people are asked
	byRule      = "a rule"
)

// openQuestion makes a request of a dialog: event, rules, and if these do not answer, word to the lead.
func (r *runner) openQuestion(d driver.Dialog, now time.Time) {
	r.closeQuestion("")
	q := &question{Question: Question{ID: wire.NewID(), Dialog: d, Since: now}}
	r.question = q
	r.abandonTyping("a dialog came up")
	e := wire.Event{Kind: "confirm_required"}.With("id", string(q.ID)).With("prompt", d.Prompt)
	if d.Kind == "question" {
		e.Kind = "waiting_for_input"
	}
	if options := q.Options(); options != nil {
		e = e.With("options", options)
	}
	r.say(e, "tool", d.Tool, "input", d.Input, "dialog", d.Kind)
	p := r.prog
	if p.told != p.reading.Activity { // not from one dialog to another
		r.sayState(p.told, p.reading.Activity, p.reading.Detail)
	}
	p.told, p.detail = p.reading.Activity, p.reading.Detail

	// (Where the tool is not known for sure, not even a rule about all of them is about this.)
	if d.Kind == "permission" && d.Tool != "" && r.Decide != nil {
		switch r.Decide(d.Tool, d.Input) {
		case Allow:
			q.rule = firstOption(d.Options, func(o driver.Option) bool { return o.Allow && !o.Always })
		case Deny:
			q.rule = firstOption(d.Options, func(o driver.Option) bool { return o.Deny })
		}
	}
	r.answerByRule(q, now)
}

func (r *runner) answerByRule(q *question, now time.Time) {
	if q.rule != nil && q.tries < maxByRule {
		q.tries++
		q.retryAt = now.Add(r.Waits.Idle)
		r.press(q, *q.rule, byRule, nil, now)
		return
	}
	q.rule = nil
	if asked := q.Question; r.Told != nil {
		r.notify("telling the lead of a question", func() error { return r.Told(r.ctx, asked) })
	}
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
		r.sayAnswered(q, now)
	}
	if q.answer != nil {
		q.answer.end(control.Outcome{Done: "answered", Detail: q.answer.label}, nil)
	}
	if r.Answered != nil {
		r.notify("taking back a question", func() error { return r.Answered(r.ctx, q.ID) })
	}
}

func (r *runner) sayAnswered(q *question, now reducer.Activity) {
	p := r.prog
	switch {
	case !p.isReady:
		now = reducer.Starting // a question at the start belongs to no turn
	case now == reducer.Idle || now == reducer.Error:
		// It was answered a moment ago: whether that ended the turn is known when the prompt has held.
		now = reducer.Thinking
	}
	if turn := r.state.Turn(); r.hasHooks() && turn.Word() != reducer.WordBlocked {
		now = turn.Activity // hooks have said what came of it
	}
	label, by := "", ""
	if q.answer != nil {
		label, by = q.answer.label, q.answer.by
	}
	e := wire.Event{Kind: "state_change"}.With("previous", string(p.told)).With("new", string(now)).With("id", string(q.ID))
	r.say(e, "answer", label, "by", by)
	p.told, p.detail = now, ""
}

// press presses an option, if the dialog is still on the screen. waiter, if any, hears what came of it.
func (r *runner) press(q *question, o driver.Option, by string, waiter chan<- reply, now time.Time) {
	a := &answer{label: o.Label, by: by, until: now.Add(answerWorks), waiter: waiter}
	r.refresh(now)
	// Its keys are those of this moment: arrows count from what is selected now.
	dialog := r.prog.reading.Dialog
	if dialog != nil {
		if fresh := firstOption(dialog.Options, func(f driver.Option) bool { return f.ID == o.ID }); fresh != nil {
			o = *fresh
		}
	}
	sinceKey, refusal := now.Sub(r.lastKey), ""
	switch {
	case !r.prog.frame.IsZero():
		refusal = "it is drawing: nothing was pressed; try again"
	case printOf(dialog) != q.Dialog.Print:
		refusal = "the dialog is gone: nothing was pressed"
	case q.answer != nil:
		refusal = "it is being answered already"
	case sinceKey < r.Waits.Human && by == byRule, sinceKey < r.Waits.Idle:
		refusal = "a person is typing in it: nothing was pressed"
	case o.Keys == "":
		refusal = "its keys are not known: nothing was pressed"
	default:
		q.answer = a
		r.turn.isCut = r.turn.isCut || o.Deny // its turn is over with that, or goes on
		r.recording.Marker("answer:" + o.Label + " by " + by)
		r.prog.put([]byte(o.Keys))
		return
	}
	a.end(control.Outcome{}, errors.New(refusal))
}

func (r *runner) stepAnswer(now time.Time) {
	q := r.question
	switch {
	case q == nil:
	case q.answer != nil && !r.awaits(q.answer.until, now):
		a := q.answer
		q.answer = nil
		a.end(control.Outcome{}, fmt.Errorf("the dialog is still there after %q was pressed", a.label))
		if a.by == byRule {
			r.answerByRule(q, now)
		}
	case q.answer == nil && q.rule != nil && !r.awaits(q.retryAt, now):
		r.answerByRule(q, now)
	}
}

func (r *runner) answerQuestion(req control.AnswerRequest, waiter chan<- reply) {
	q := r.question
	var err error
	var o driver.Option
	switch {
	case q == nil:
		err = errors.New("nothing is asked")
	case req.ID != "" && req.ID != string(q.ID) && !strings.HasSuffix(string(q.ID), req.ID):
		err = fmt.Errorf("that question is not open any more; %s is", q.ID.Short(6))
	case q.Dialog.Kind == "trust":
		err = errors.New("it asks whether a directory is trusted: that is for a person at its terminal")
	default:
		o, err = r.wantedOption(q.Dialog, req)
	}
	if err != nil {
		waiter <- reply{err: err}
		return
	}
	r.press(q, o, req.By, waiter, r.Now())
}

// wantedOption is the option of d that a request means. One that does the contrary of what is asked for is
// a slip, and refused; but any answer to a question may be given.
func (r *runner) wantedOption(d driver.Dialog, req control.AnswerRequest) (driver.Option, error) {
	name := string(r.Box.Agent())
	refuse := func(hint, format string, args ...any) (driver.Option, error) {
		return driver.Option{}, &control.Error{Code: "usage", Message: fmt.Sprintf(format, args...), Hint: "atm " + hint}
	}
	var labels []string
	for _, o := range d.Options {
		labels = append(labels, o.ID+" "+o.Label)
	}
	all := strings.Join(labels, ", ")
	if req.Option == "" {
		o, ok := d.Allowing()
		if req.Deny {
			o, ok = d.Denying()
		}
		switch {
		case ok:
			return o, nil
		case len(labels) == 0:
			return o, &control.Error{Code: "failed", Message: "its options are not known: nothing was pressed", Hint: "atm attach " + name}
		case req.Deny:
			return refuse("attach "+name, "none of its options says no: %s", all)
		}
		return refuse("approve "+name+" "+d.Options[0].ID, "which one? %s", all)
	}
	o := cmp.Or(
		firstOption(d.Options, func(o driver.Option) bool { return o.ID == req.Option }),
		firstOption(d.Options, func(o driver.Option) bool { return strings.EqualFold(o.Label, req.Option) }))
	if n, err := strconv.Atoi(req.Option); o == nil && err == nil && n >= 1 && n <= len(d.Options) {
		o = &d.Options[n-1]
	}
	switch {
	case o == nil:
		return refuse("screen "+name+" shows it", "no such option; there are: %s", all)
	case req.Deny && o.Allow:
		return refuse("approve "+name+" "+o.ID, "%q allows it: nothing was pressed", o.ID+" "+o.Label)
	case !req.Deny && o.Deny && d.Kind != "question":
		return refuse("reject "+name+" "+o.ID, "%q denies it: nothing was pressed", o.ID+" "+o.Label)
	}
	return *o, nil
}
