// Package questions is how one agent's questions are asked and answered, whoever runs its program: a runner, on a terminal
// or over a protocol, or a hook that its program waits for. An [Owner] knows the program, its log and its people. For all of
// them holds:
//
//   - One question is open at a time. One that comes meanwhile waits behind it, and is shown after it.
//   - It is in the agent's log before anybody can answer it, and once.
//   - A rule that decides about it answers at once, for this one call. Without one, or if that answer cannot be given, who
//     may answer gets a notice, which is withdrawn when the question is over, whoever ended it.
//   - The first answer counts, and a later one is told whose it was. It counts for the question that it names, while the
//     program still asks that; a yes only if the question was shown whole.
//   - What only a person at its terminal may answer is answered nowhere else.
//   - An answer is noted with the event that closes the question. One that could not be given is none: its error says why,
//     and what may be tried. Only the owner's reasons that pass by themselves are waited for.
package questions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

const (
	effectTimeout = 3 * time.Second       // for the program to go on with its answer
	pollDelay     = 20 * time.Millisecond // between two looks whether a reason has passed
)

// ErrGone means that what was answered is not asked any more.
var ErrGone = control.Refused("it does not ask that any more")

// An Owner asks for its agent. What the questions have it do is done where Call calls, and waits for nobody; but MayRule is
// called beside that.
type Owner interface {
	Call(f func()) bool // calls f and nothing else meanwhile; false: it calls nothing any more
	Go(f func())        // calls f beside that

	// Check takes in what the program has told, and returns why the answer cannot be given now, nil if it can. A reason
	// with the code control.Locked may pass by itself.
	Check(a ask.Answer) error
	// Append appends an event to the agent's log. A question whose event fails is not asked.
	Append(e wire.Event) error
	// MayRule returns when what was appended is in the log, with why no rule may answer, nil if one may.
	MayRule() error
	// Tell tells who may answer, or that the question is over, in this order.
	Tell(q ask.Question, isOver bool)
}

// Give gives the program an answer, which means the option, or returns why it cannot. If the program has it then, Give may
// close the question; else that is closed when the program goes on.
type Give func(a ask.Answer, o ask.Option) error

// Questions are what an agent asks. Only what the Owner calls uses them, but for Answer.
type Questions struct {
	Owner    Owner
	Agent    wire.Name
	Patience time.Duration // for a reason to pass

	all  []*question // the first one is open
	last *question   // the last one that was answered
}

type question struct {
	ask.Question
	event  wire.Event  // begins its events
	ruled  *ask.Option // that a rule chooses
	give   Give
	by     string
	given  *ask.Option // the answer, perhaps without effect yet
	closed chan struct{}
}

// Asked returns the open question, or nil. IsGiven reports whether it was given an answer.
func (qs *Questions) Asked() *ask.Question {
	if len(qs.all) == 0 {
		return nil
	}
	return &qs.all[0].Question
}

func (qs *Questions) IsGiven() bool { return len(qs.all) > 0 && qs.all[0].given != nil }

// Ruled returns the option that a rule's decision chooses; nil: none.
func Ruled(q *ask.Question, d policy.Decision) *ask.Option {
	if d != policy.Allow && d != policy.Deny {
		return nil
	}
	return q.Once(d == policy.Deny)
}

// Open asks a question, behind those that are open. Its events begin as e does, and are of the same session and turn. An id
// is made if it has none.
func (qs *Questions) Open(q ask.Question, e wire.Event, rule policy.Decision, give Give) error {
	q.Agent, q.Running, q.ID = qs.Agent, !q.Served, cmp.Or(q.ID, string(wire.NewID()))
	if q.Kind == "" && q.Dialog == "question" {
		q.Kind = reducer.Question
	}
	q.Kind = cmp.Or(q.Kind, reducer.Permission)
	qs.all = append(qs.all, &question{Question: q, event: e, ruled: Ruled(&q, rule), give: give, closed: make(chan struct{})})
	if len(qs.all) > 1 {
		return nil
	}
	return qs.openFirst()
}

func (qs *Questions) openFirst() error {
	q := qs.all[0]
	if err := qs.Owner.Append(Opening(&q.Question, q.event)); err != nil {
		qs.all = qs.all[1:]
		return err
	}
	if q.ruled == nil {
		qs.Owner.Tell(q.Question, false)
		return nil
	}
	qs.Owner.Go(func() {
		err := qs.Owner.MayRule()
		if err == nil {
			_, err = qs.answer(context.Background(), q, ask.Answer{Option: q.ruled.ID, Deny: q.ruled.Denies(), By: ask.ByRule})
		}
		qs.Owner.Call(func() {
			if err != nil && qs.isOpen(q) {
				qs.Owner.Tell(q.Question, false)
			}
		})
	})
	return nil
}

func (qs *Questions) isOpen(q *question) bool { return len(qs.all) > 0 && qs.all[0] == q }

// Opening returns e as the event that opens a question.
func Opening(q *ask.Question, e wire.Event) wire.Event {
	if e.Kind = wire.ConfirmRequired; q.Kind == reducer.Question {
		e.Kind = wire.WaitingForInput
	}
	for _, pair := range [][2]string{{wire.FieldID, q.ID}, {"prompt", q.Prompt}, {"tool", q.Tool}, {"input", q.Input}, {"dialog", q.Dialog}} {
		if pair[1] != "" {
			e = e.With(pair[0], pair[1])
		}
	}
	if len(q.Options) > 0 {
		e = e.With(wire.FieldOptions, q.Options)
	}
	return e
}

// Close closes a question, by its id ("": the open one): it was answered, here or elsewhere, or is moot. now is what the
// program does instead; "": somebody else notes that.
func (qs *Questions) Close(id string, now reducer.Activity) {
	i := slices.IndexFunc(qs.all, func(q *question) bool { return id == "" || q.ID == id })
	if i < 0 {
		return
	}
	q := qs.all[i]
	if qs.all = slices.Delete(qs.all, i, i+1); i > 0 {
		return // nobody has seen it
	}
	if now != "" {
		qs.Owner.Append(Closing(&q.Question, q.event, q.given, q.by, now))
	}
	if q.given != nil {
		qs.last = q
	}
	close(q.closed)
	qs.Owner.Tell(q.Question, true)
	if len(qs.all) > 0 {
		qs.openFirst()
	}
}

// End closes all questions of a program that has ended.
func (qs *Questions) End() {
	qs.all = qs.all[:min(1, len(qs.all))]
	qs.Close("", "")
}

// Closing returns the event that closes a question, with the answer that was given, nil for none. e is what Opening got.
func Closing(q *ask.Question, e wire.Event, given *ask.Option, by string, now reducer.Activity) wire.Event {
	previous := reducer.Confirming
	if q.Kind == reducer.Question {
		previous = reducer.AwaitingInput
	}
	e = wire.Event{Kind: wire.StateChange, Source: e.Source, Session: e.Session, TurnID: e.TurnID}
	e = e.With("previous", string(previous)).With(wire.FieldNew, string(now)).With(wire.FieldID, q.ID)
	if o := given; o != nil {
		e = e.With("answer", o.Label).With(wire.FieldBy, by).With("option_id", o.ID).With("decision", ask.Answer{Deny: o.Denies()}.Decision())
	}
	return e
}

// Answer answers the open question, as soon as that is possible, and returns when it is closed.
func (qs *Questions) Answer(ctx context.Context, a ask.Answer) (control.Outcome, error) {
	return qs.answer(ctx, nil, a)
}

// answer answers q; nil: the one that is open. An answer without effect is not given again, because the program may still
// read its key, perhaps as the answer to the next question.
func (qs *Questions) answer(ctx context.Context, q *question, a ask.Answer) (out control.Outcome, err error) {
	var o ask.Option
	for until := time.Now().Add(qs.Patience); ; time.Sleep(pollDelay) {
		if !qs.Owner.Call(func() { q, o, err = qs.give(q, a) }) {
			return out, ErrGone
		}
		if err == nil {
			break
		}
		if why, _ := errors.AsType[*control.Error](err); why == nil || why.Code != control.Locked || time.Now().After(until) || ctx.Err() != nil {
			return out, err
		}
	}
	select {
	case <-q.closed:
		return control.Outcome{Done: "answered", Detail: o.Label, ReasonGiven: q.Served}, nil
	case <-time.After(effectTimeout):
	}
	qs.Owner.Call(func() {
		if qs.isOpen(q) {
			q.given = nil
		}
	})
	return out, fmt.Errorf("it still asks that, after it was given %q", o.Label)
}

// give gives the open question an answer, unless that is another one than it was.
func (qs *Questions) give(was *question, a ask.Answer) (q *question, o ask.Option, err error) {
	why, last := qs.Owner.Check(a), qs.last
	if len(qs.all) > 0 {
		q = qs.all[0]
	}
	switch {
	case was != nil && was != q:
		err = ErrGone
	case last != nil && last.ID == a.ID && (q == nil || q.ID != a.ID):
		err = last.answered()
	case q == nil:
		err = cmp.Or(why, error(control.Refused("it is not asking anything")))
	case !strings.HasSuffix(q.ID, a.ID):
		err = control.Refused("that question is closed; the open one is " + q.Short())
	case q.given != nil: // its key may still be unread: no second one after it
		err = q.answered()
	default:
		if o, err = q.pick(a); err == nil {
			err = why
		}
	}
	if err != nil {
		return q, o, err
	}
	a.Option, a.Deny = o.ID, a.Deny || o.Denies()
	q.given, q.by = &o, a.By
	if err = q.give(a, o); err != nil {
		q.given = nil
	}
	return q, o, err
}

func (q *question) answered() error {
	return control.Refused(fmt.Sprintf("already answered by %s: %s", cmp.Or(q.by, "a person"), q.given.Label))
}

// pick returns the option that an answer means, or why it means none and what may be tried.
func (q *question) pick(a ask.Answer) (o ask.Option, err error) {
	byHand := []control.Try{{Op: "interrupt"}}
	switch {
	case !q.Running:
		byHand = nil
	case q.Fingerprint != "": // it is on a screen
		byHand[0].Op = "attach"
	}
	failed := func(why string, try ...control.Try) error {
		return &control.Error{Code: "failed", Message: why, Try: append(try, byHand...)}
	}
	switch {
	case reducer.IsForTerminal(q.Dialog):
		return o, failed("it asks something that only a person at its terminal may answer")
	case len(q.Options) > 0, q.Served, a.Deny && a.Option == "" && q.Cancel.ID != "":
	case q.IsTyped():
		return o, failed("it takes any text, and was not answered", control.Try{Op: "type", Enter: true})
	default:
		return o, failed("its options cannot be read: it was not answered")
	}
	o, err = q.Pick(a)
	switch why, _ := errors.AsType[*ask.PickError](err); {
	case why != nil && why.Option != "":
		return o, control.Usage(why.Message, control.Try{Op: "answer", Option: why.Option, Deny: why.Deny})
	case why != nil && a.Option != "" && q.Running:
		return o, control.Usage(why.Message, control.Try{Op: "screen"})
	case why != nil:
		return o, control.Usage(why.Message, byHand...)
	case q.Cut && !o.Denies():
		return o, control.Refused("part of what it asks is not shown: it can only be rejected", byHand...)
	}
	return o, nil
}
