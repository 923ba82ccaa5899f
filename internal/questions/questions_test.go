package questions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// owner keeps what it is told, and asks for a program that takes every answer.
type owner struct {
	Questions
	t      *testing.T
	mu     sync.Mutex
	lines  []string
	cannot []error // the next answers
	mayNot error   // why no rule may answer
	log    error   // why nothing is appended
	given  []string
}

func newOwner(t *testing.T) *owner {
	o := &owner{t: t}
	o.Owner = o
	return o
}

func (o *owner) Call(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	return true
}

func (o *owner) Check(ask.Answer) (err error) {
	if len(o.cannot) > 0 {
		err, o.cannot = o.cannot[0], o.cannot[1:]
	}
	return err
}

func (o *owner) Append(e wire.Event) error {
	if o.log == nil {
		o.note(e.Kind, e.Text(wire.FieldID), e.Text(wire.FieldNew), e.Text("answer"), e.Text(wire.FieldBy), e.Text("decision"))
	}
	return o.log
}

func (o *owner) Go(f func())    { go f() }
func (o *owner) MayRule() error { return o.mayNot }

func (o *owner) Tell(q ask.Question, isOver bool) {
	if isOver {
		o.note("withdrawn", q.ID)
	} else {
		o.note("told", q.ID)
	}
}

func (o *owner) note(words ...string) {
	o.lines = append(o.lines, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
}

// opens opens a permission request, whose answer closes it.
func (o *owner) opens(id string, rule policy.Decision, cannot error) {
	o.t.Helper()
	q := ask.Question{ID: id, Tool: "Bash", Prompt: "make", Options: []ask.Option{{ID: "1", Label: "Always", Kind: "allow_always"}, {ID: "2", Label: "Yes", Kind: "allow_once"}, {ID: "3", Label: "No", Kind: "reject_once"}}}
	o.asks(q, rule, func(a ask.Answer, _ ask.Option) error {
		if cannot == nil {
			o.given = append(o.given, fmt.Sprint(a.Option, a.Deny))
			o.Close(id, reducer.Thinking)
		}
		return cannot
	})
}

func (o *owner) asks(q ask.Question, rule policy.Decision, give Give) {
	o.t.Helper()
	o.Call(func() {
		if err := o.Open(q, wire.Event{Source: wire.SourceHook}, rule, give); !errors.Is(err, o.log) {
			o.t.Error(err)
		}
	})
}

// did checks what the log and people were told, as soon as there are so many lines.
func (o *owner) did(want ...string) {
	o.t.Helper()
	var got []string
	for until := time.Now().Add(time.Minute); len(got) < len(want) && time.Now().Before(until); time.Sleep(time.Millisecond) {
		o.Call(func() { got = slices.Clone(o.lines) })
	}
	if !slices.Equal(got, want) {
		o.t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (o *owner) says(a ask.Answer, want string) {
	o.t.Helper()
	out, err := o.Answer(o.t.Context(), a)
	if got := cmp.Or(out.Detail, fmt.Sprint(err)); got != want {
		o.t.Errorf("%+v: %q, want %q", a, got, want)
	}
}

// A question waits behind another, is told of and answered after it, and leaves nothing if it is withdrawn before.
func TestOneAtATime(t *testing.T) {
	o := newOwner(t)
	for _, id := range []string{"a", "b", "c"} {
		o.opens(id, policy.Ask, nil)
	}
	o.did("confirm_required a", "told a")
	o.says(ask.Answer{ID: "c"}, "that question is closed; the open one is a")
	o.Call(func() { o.Close("b", reducer.Thinking) })
	o.says(ask.Answer{ID: "a", By: "me"}, "Yes")
	o.says(ask.Answer{Deny: true, By: "me"}, "No")
	o.did("confirm_required a", "told a", "state_change a thinking Yes me approve", "withdrawn a",
		"confirm_required c", "told c", "state_change c thinking No me reject", "withdrawn c")
	if o.Asked() != nil {
		t.Error("something is open")
	}
	o.opens("d", policy.Ask, nil)
	o.opens("e", policy.Ask, nil)
	o.Call(o.End)
	if o.says(ask.Answer{}, "it is not asking anything"); o.lines[len(o.lines)-1] != "withdrawn d" {
		t.Error("asked after the end of the program")
	}
}

// Of answers at once one is given, and the others learn whose that was, also later.
func TestFirstAnswerCounts(t *testing.T) {
	o := newOwner(t)
	o.opens("a", policy.Ask, nil)
	var wg sync.WaitGroup
	won := make(chan string, 8)
	for i := range 8 {
		wg.Go(func() {
			_, err := o.Answer(t.Context(), ask.Answer{ID: "a", Deny: i > 3, By: "me"})
			if err == nil {
				won <- "me"
			} else if !strings.HasPrefix(err.Error(), "already answered by me: ") {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 || len(o.given) != 1 {
		t.Errorf("%d won, given %v", len(won), o.given)
	}
	o.opens("b", policy.Ask, nil)
	if _, err := o.Answer(t.Context(), ask.Answer{ID: "a"}); err == nil || !strings.HasPrefix(err.Error(), "already answered by me: ") {
		t.Error(err)
	}
}

// A rule answers at once, and only this call. What it cannot answer, people are told of.
func TestRule(t *testing.T) {
	o := newOwner(t)
	o.opens("a", policy.Allow, nil)
	o.did("confirm_required a", "state_change a thinking Yes a rule approve", "withdrawn a")
	o.opens("b", policy.Deny, nil)
	o.did(append(o.lines[:3:3], "confirm_required b", "state_change b thinking No a rule reject", "withdrawn b")...)

	o = newOwner(t)
	o.opens("a", policy.Allow, errors.New("broken pipe"))
	o.did("confirm_required a", "told a")

	o = newOwner(t)
	o.mayNot = errors.New("its root is not accepted")
	o.opens("a", policy.Allow, nil)
	o.did("confirm_required a", "told a")

	o = newOwner(t)
	always := ask.Question{ID: "a", Options: []ask.Option{{ID: "1", Kind: "allow_always"}}}
	o.asks(always, policy.Allow, nil)
	o.did("confirm_required a", "told a")

	o = newOwner(t)
	o.asks(ask.Question{ID: "a", Dialog: "trust", Options: []ask.Option{{ID: "1", Kind: "allow_once"}}}, policy.Allow, nil)
	o.did("confirm_required a", "told a")
}

// Nobody is told of what is not in the log.
func TestNotInTheLog(t *testing.T) {
	o := newOwner(t)
	o.log = errors.New("disk full")
	o.opens("a", policy.Allow, nil)
	if o.Asked() != nil || len(o.lines) > 0 {
		t.Errorf("told %v", o.lines)
	}
}

// Reasons that pass are waited for, and others are said at once. An answer that was not given is none.
func TestReasons(t *testing.T) {
	o := newOwner(t)
	o.Patience = time.Minute
	typing := &control.Error{Code: control.Locked, Message: "a person is typing"}
	o.opens("a", policy.Ask, nil)
	o.cannot = []error{control.Refused("it goes on")}
	o.says(ask.Answer{}, "it goes on")
	o.cannot = []error{typing}
	o.says(ask.Answer{Option: "4"}, `"4" is not one of the options: 1 Always, 2 Yes, 3 No`)
	o.cannot = []error{typing, typing}
	o.says(ask.Answer{}, "Yes")

	o.opens("b", policy.Ask, errors.New("broken pipe"))
	o.says(ask.Answer{}, "broken pipe")
	o.says(ask.Answer{}, "broken pipe")
	o.cannot = []error{typing}
	o.Patience = 0
	o.says(ask.Answer{}, "a person is typing")
	ended, end := context.WithCancel(t.Context())
	end()
	o.cannot, o.Patience = []error{typing, typing, typing}, time.Hour
	if _, err := o.Answer(ended, ask.Answer{}); err != typing {
		t.Error(err)
	}
}

// An answer waits for the question that it was about, and never meets the next one.
func TestNextQuestion(t *testing.T) {
	o := newOwner(t)
	o.Patience = time.Minute
	o.opens("a", policy.Ask, nil)
	o.opens("b", policy.Ask, nil)
	o.cannot = []error{&control.Error{Code: control.Locked, Message: "a person is typing"}}
	o.Owner = turning{o, func() { o.Close("a", reducer.Thinking) }}
	if _, err := o.Answer(t.Context(), ask.Answer{}); err != ErrGone || len(o.given) > 0 {
		t.Errorf("%v, given %v", err, o.given)
	}
}

// turning does something when there is no reason any more.
type turning struct {
	*owner
	then func()
}

func (o turning) Check(a ask.Answer) error {
	err := o.owner.Check(a)
	if err == nil {
		o.then()
	}
	return err
}

// An answer without effect fails, and can be tried again; while its effect is awaited nobody else answers.
func TestNoEffect(t *testing.T) {
	o := newOwner(t)
	pressed := make(chan struct{}, 1)
	o.asks(ask.Question{ID: "a", Options: []ask.Option{{ID: "1", Label: "Yes", Kind: "allow_once"}}}, policy.Ask, func(ask.Answer, ask.Option) error {
		pressed <- struct{}{}
		return nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := o.Answer(t.Context(), ask.Answer{By: "me"})
		done <- err
	}()
	<-pressed
	o.says(ask.Answer{By: "lead"}, "already answered by me: Yes")
	if err := <-done; err == nil || !strings.Contains(err.Error(), `still asks that, after it was given "Yes"`) || o.IsGiven() {
		t.Error(err)
	}
}

// An answer that cannot be given says what to try.
func TestTry(t *testing.T) {
	yes, no := ask.Option{ID: "1", Label: "Yes", Kind: "allow_once"}, ask.Option{ID: "2", Label: "No", Kind: "reject_once"}
	both := []ask.Option{yes, no}
	for name, c := range map[string]struct {
		q    ask.Question
		a    ask.Answer
		want string // code, message, what to try
	}{
		"trust":           {ask.Question{Dialog: "trust", Fingerprint: "f", Options: both}, ask.Answer{Deny: true}, "failed: it asks something that only a person at its terminal may answer [{attach  false false false}]"},
		"text":            {ask.Question{Dialog: "question", Fingerprint: "f"}, ask.Answer{}, "failed: it takes any text, and was not answered [{type  false false true} {attach  false false false}]"},
		"unread":          {ask.Question{Fingerprint: "f"}, ask.Answer{}, "failed: its options cannot be read: it was not answered [{attach  false false false}]"},
		"the contrary":    {ask.Question{Options: both}, ask.Answer{Option: "2"}, `usage: "2 No" says no [{answer 2 true false false}]`},
		"no such option":  {ask.Question{Options: both}, ask.Answer{Option: "3"}, `usage: "3" is not one of the options: 1 Yes, 2 No [{screen  false false false}]`},
		"in a hook":       {ask.Question{Served: true, Options: both}, ask.Answer{Option: "3"}, `usage: "3" is not one of the options: 1 Yes, 2 No []`},
		"no no":           {ask.Question{Options: []ask.Option{yes}}, ask.Answer{Deny: true}, "usage: none of its options says no: 1 Yes [{interrupt  false false false}]"},
		"cut":             {ask.Question{Cut: true, Options: both}, ask.Answer{}, "refused: part of what it asks is not shown: it can only be rejected [{interrupt  false false false}]"},
		"cut, and denied": {ask.Question{Cut: true, Options: both}, ask.Answer{Deny: true}, "No"},
		"ended by a key":  {ask.Question{Cancel: ask.Option{ID: "esc", Label: "Esc", Kind: "reject_once"}}, ask.Answer{Deny: true}, "Esc"},
		"any word":        {ask.Question{Served: true, Dialog: "question"}, ask.Answer{Option: "main"}, "main"},
	} {
		o := newOwner(t)
		c.q.ID = "a"
		o.asks(c.q, policy.Ask, func(ask.Answer, ask.Option) error { o.Close("", reducer.Thinking); return nil })
		out, err := o.Answer(t.Context(), c.a)
		got := out.Detail
		if why, ok := errors.AsType[*control.Error](err); ok {
			got = fmt.Sprintf("%s: %s %v", why.Code, why.Message, why.Try)
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}
