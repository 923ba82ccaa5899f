package ptyrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// question is a dialog on the screen, as a request that somebody may answer.
type question struct {
	Question
	answer *pressed // being pressed

	rule  *driver.Option // what a rule answers; nil: people do
	tries int            // of that
	again time.Time      // the next
}

// pressed is an option that was pressed and has yet to work.
type pressed struct {
	label string
	by    string
	until time.Time
	reply chan<- reply
}

type reply struct {
	out control.Outcome
	err error
}

// answerWorks is how long a dialog may take to go after its answer.
const answerWorks = 3 * time.Second

// asked is the fingerprint of the dialog that is told of.
func (r *runner) asked() string {
	if r.question == nil {
		return ""
	}
	return r.question.Dialog.Print
}

// openQuestion makes a request of a dialog: event, rules, and if these do not
// answer, word to the lead.
func (r *runner) openQuestion(d driver.Dialog, now time.Time) {
	r.closeQuestion("")
	q := &question{Question: Question{ID: wire.NewID(), Dialog: d, Since: now}}
	r.question = q
	r.drop("a dialog came up")
	kind := "confirm_required"
	if d.Kind == "question" {
		kind = "waiting_for_input"
	}
	e := wire.Event{Kind: kind}.With("id", string(q.ID)).With("prompt", d.Prompt)
	if d.Tool != "" {
		e = e.With("tool", d.Tool)
	}
	if d.Input != "" {
		e = e.With("input", d.Input)
	}
	if options := q.Options(); options != nil {
		e = e.With("options", json.RawMessage(options))
	}
	e = e.With("dialog", d.Kind)
	r.say(e)
	r.prog.told, r.prog.detail = r.prog.reading.Activity, r.prog.reading.Detail

	// (Where the tool is not known for sure, not even a rule about all of them is
	// about this.)
	if d.Kind == "permission" && d.Tool != "" && r.Decide != nil {
		switch r.Decide(d.Tool, d.Input) {
		case Allow:
			q.rule = pick(d.Options, func(o driver.Option) bool { return o.Allow && !o.Always })
		case Deny:
			q.rule = pick(d.Options, func(o driver.Option) bool { return o.Deny })
		}
	}
	r.byRule(q, now)
}

// maxByRule is how often a rule's answer is tried before people are asked.
const maxByRule = 4

// byRule answers as a rule says. Where there is none, or its answer has no
// effect, the lead is told.
func (r *runner) byRule(q *question, now time.Time) {
	if q.rule != nil && q.tries < maxByRule {
		q.tries++
		q.again = now.Add(r.waits.Idle)
		r.press(q, *q.rule, byRule, nil, now)
		return
	}
	q.rule = nil
	r.tellLead(q)
}

const byRule = "a rule"

func (r *runner) tellLead(q *question) {
	if r.Told == nil {
		return
	}
	asked := q.Question
	r.teller.do(func() {
		if err := r.Told(r.ctx, asked); err != nil {
			r.log.Error("telling the lead of a question", "err", err)
		}
	})
}

// offer is an option as an event tells it.
type offer struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// Options are the options as JSON: [{"id","label"}]; nil: there are none.
func (q *Question) Options() json.RawMessage {
	var out []offer
	for _, o := range q.Dialog.Options {
		out = append(out, offer{o.ID, o.Label})
	}
	if out == nil {
		return nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return data
}

func pick(options []driver.Option, fits func(driver.Option) bool) *driver.Option {
	for i := range options {
		if fits(options[i]) {
			return &options[i]
		}
	}
	return nil
}

// closeQuestion takes in that the dialog is gone: answered, by whomever. now is
// what the screen shows instead, "" where nothing does.
func (r *runner) closeQuestion(now reducer.Activity) {
	q := r.question
	if q == nil {
		return
	}
	r.question = nil
	switch {
	case now != "" && !r.prog.ready:
		now = reducer.Starting // a question at the start belongs to no turn
	case now == reducer.Idle || now == reducer.Error:
		// It was answered a moment ago: whether that ended the turn is known when
		// the prompt has held.
		now = reducer.Thinking
	}
	if turn := r.state.Turn(); now != "" && r.hooked() && turn.Word() != reducer.WordBlocked {
		now = turn.Activity // hooks have said what came of it
	}
	if now != "" {
		e := wire.Event{Kind: "state_change"}.With("new", string(now)).With("id", string(q.ID))
		if a := q.answer; a != nil {
			e = e.With("answer", a.label).With("by", a.by)
		}
		r.say(e)
		r.prog.told, r.prog.detail = now, ""
	}
	if q.answer != nil {
		q.answer.end(control.Outcome{Done: "answered", Detail: q.answer.label}, nil)
	}
	if r.Answered != nil {
		id := q.ID
		r.teller.do(func() {
			if err := r.Answered(r.ctx, id); err != nil {
				r.log.Error("taking back a question", "err", err)
			}
		})
	}
}

// press presses an option, if the dialog is still on the screen, and reports
// whether it did.
func (r *runner) press(q *question, o driver.Option, by string, to chan<- reply, now time.Time) bool {
	a := &pressed{label: o.Label, by: by, until: now.Add(answerWorks), reply: to}
	r.freshen(now)
	switch {
	case !r.prog.frame.IsZero():
		a.end(control.Outcome{}, errors.New("it is drawing: nothing was pressed; try again"))
		return false
	case printOf(r.prog.reading.Dialog) != q.Dialog.Print:
		a.end(control.Outcome{}, errors.New("the dialog is gone: nothing was pressed"))
		return false
	case q.answer != nil:
		a.end(control.Outcome{}, errors.New("it is being answered already"))
		return false
	case now.Sub(r.lastHuman) < r.waits.Human && by == byRule, now.Sub(r.lastHuman) < r.waits.Idle:
		a.end(control.Outcome{}, errors.New("a person is typing in it: nothing was pressed"))
		return false
	}
	// Its keys are those of this moment: arrows count from what is selected now.
	if fresh := pick(r.prog.reading.Dialog.Options, func(f driver.Option) bool { return f.ID == o.ID }); fresh != nil {
		o = *fresh
	}
	if o.Keys == "" {
		a.end(control.Outcome{}, errors.New("its keys are not known: nothing was pressed"))
		return false
	}
	q.answer = a
	r.cut = r.cut || o.Deny // its turn is over with that, or goes on
	r.log.Info("answering", "prompt", q.Dialog.Prompt, "option", o.Label, "by", by)
	r.record.Marker("answer:" + o.Label + " by " + by)
	r.prog.out.put([]byte(o.Keys))
	return true
}

// answering gives up on an answer that had no effect.
func (r *runner) answering(now time.Time) (next time.Time) {
	q := r.question
	switch {
	case q == nil:
	case q.answer != nil && now.Before(q.answer.until):
		return q.answer.until
	case q.answer != nil:
		a := q.answer
		q.answer = nil
		a.end(control.Outcome{}, fmt.Errorf("the dialog is still there after %q was pressed", a.label))
		if a.by == byRule {
			r.byRule(q, now)
		}
	case q.rule != nil && now.Before(q.again):
		return q.again
	case q.rule != nil:
		r.byRule(q, now)
	}
	return next
}

func (a *pressed) end(out control.Outcome, err error) {
	if a.reply != nil {
		a.reply <- reply{out, err}
	}
}

// Errors of an answer.
var (
	errNoQuestion = errors.New("nothing is asked")
	errTrust      = errors.New("it asks whether a directory is trusted: that is for a person at its terminal")
)

// Answer answers what the agent asks.
func (h handler) Answer(ctx context.Context, req control.AnswerRequest) (control.Outcome, error) {
	if h.r.May != nil {
		if err := h.r.May(control.PeerOf(ctx).PID, req.By); err != nil {
			return control.Outcome{}, &control.Error{Code: "refused", Message: err.Error()}
		}
	}
	to := make(chan reply, 1)
	if !h.r.post(func() { h.r.choose(req, to) }) {
		return control.Outcome{}, errOver
	}
	return h.wait(ctx, to)
}

func (r *runner) choose(req control.AnswerRequest, to chan<- reply) {
	q := r.question
	refuse := func(err error) { to <- reply{err: err} }
	switch {
	case q == nil:
		refuse(errNoQuestion)
		return
	case req.ID != "" && req.ID != string(q.ID) && !strings.HasSuffix(string(q.ID), req.ID):
		refuse(fmt.Errorf("that question is not open any more; %s is", q.ID.Short(6)))
		return
	case q.Dialog.Kind == "trust":
		refuse(errTrust)
		return
	}
	o, err := r.chosen(q.Dialog, req)
	if err != nil {
		refuse(err)
		return
	}
	r.press(q, o, req.By, to, r.Now())
}

// chosen is the option of d that a request means. One that does the contrary of
// what is asked for is a slip, and refused; but any answer to a question may be
// given.
func (r *runner) chosen(d driver.Dialog, req control.AnswerRequest) (driver.Option, error) {
	name := r.Box.Agent()
	wrong := func(hint, format string, args ...any) (driver.Option, error) {
		return driver.Option{}, &control.Error{Code: "usage", Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	var have []string
	for _, o := range d.Options {
		have = append(have, o.ID+" "+o.Label)
	}
	there := strings.Join(have, ", ")
	if req.Option == "" {
		o, ok := d.Allowing()
		if req.Deny {
			o, ok = d.Denying()
		}
		switch {
		case ok:
			return o, nil
		case len(have) == 0:
			return driver.Option{}, &control.Error{Code: "failed", Message: "its options are not known: nothing was pressed", Hint: fmt.Sprintf("atm attach %s", name)}
		case req.Deny:
			return wrong(fmt.Sprintf("atm attach %s", name), "none of its options says no: %s", there)
		}
		return wrong(fmt.Sprintf("atm approve %s %s", name, d.Options[0].ID), "which one? %s", there)
	}
	o := pick(d.Options, func(o driver.Option) bool { return o.ID == req.Option })
	if o == nil {
		o = pick(d.Options, func(o driver.Option) bool { return strings.EqualFold(o.Label, req.Option) })
	}
	if n, err := strconv.Atoi(req.Option); o == nil && err == nil && n >= 1 && n <= len(d.Options) {
		o = &d.Options[n-1]
	}
	switch {
	case o == nil:
		return wrong(fmt.Sprintf("atm screen %s shows it", name), "no such option; there are: %s", there)
	case req.Deny && o.Allow:
		return wrong(fmt.Sprintf("atm approve %s %s", name, o.ID), "%q allows it: nothing was pressed", o.ID+" "+o.Label)
	case !req.Deny && o.Deny && d.Kind != "question":
		return wrong(fmt.Sprintf("atm reject %s %s", name, o.ID), "%q denies it: nothing was pressed", o.ID+" "+o.Label)
	}
	return *o, nil
}
