//go:build linux || darwin

package hook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// elsewhere is a program of which this test is no process.
var elsewhere = process.Info{PID: -1}

type questioned struct {
	t    *testing.T
	team *teamdir.Team
}

func newTeam(t *testing.T, toml string) *questioned {
	made := team(t).team
	for _, n := range []wire.Name{"lead", "me"} {
		must(t, made.Store.Create(ctx, n))
	}
	must(t, os.WriteFile(filepath.Join(made.Root().Path, "main", "team.toml"), []byte(toml), 0o600))
	return &questioned{t, made}
}

type answered struct {
	ask.Answer
	err error
}

// waits waits, and returns the answer that was given.
func (a *questioned) waits(ctx context.Context, q question, o asker) (r answered) {
	if o.program == (process.Info{}) {
		o.program = elsewhere
	}
	if o.now == nil {
		o.now = func() reducer.Activity { return reducer.Unknown }
	}
	give := o.give
	o.give = func(answer ask.Answer) error {
		if r.Answer = answer; give != nil {
			return give(answer)
		}
		return nil
	}
	scope := app.Of(a.team)
	scope.Me = a.team.Box("bob")
	r.err = waitFor(ctx, scope, q, o)
	return r
}

// asks begins to wait, and returns when the question is open, or the wait is over already.
func (a *questioned) asks(ctx context.Context, q question, o asker) (open ask.Question, done chan answered) {
	a.t.Helper()
	done = make(chan answered, 1)
	go func() { done <- a.waits(ctx, q, o) }()
	for {
		all, err := presence.Questions(a.team, "bob")
		must(a.t, err)
		for _, o := range all {
			if o.Served && (q.ID == "" || q.ID == o.ID) {
				return o, done
			}
		}
		select {
		case r := <-done:
			done <- r
			return open, done
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (a *questioned) answers(q ask.Question, by string, deny bool, reason string) error {
	scope := app.Of(a.team)
	_, err := scope.Answer(a.t.Context(), q, ask.Answer{Deny: deny, Reason: reason, By: by})
	return err
}

// log returns a line for each of bob's events: kind, tool, new, answer, by and decision.
func (a *questioned) log() string {
	events, err := a.team.Box("bob").Log().Newest(100)
	must(a.t, err)
	var lines []string
	for _, e := range events {
		lines = append(lines, strings.Join(strings.Fields(strings.Join([]string{e.Kind, e.Field("tool"), e.Field("new"), e.Field("answer"), e.Field("by"), e.Field("decision")}, " ")), " "))
	}
	return strings.Join(lines, "\n")
}

func (a *questioned) expectLog(want ...string) {
	a.t.Helper()
	if got := a.log(); got != strings.Join(want, "\n") {
		a.t.Errorf("the log has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// expectClean reports what a wait has left.
func (a *questioned) expectClean() {
	a.t.Helper()
	if left, _ := a.team.Dir().Names("bob/run/asks"); len(left) > 0 {
		a.t.Errorf("it left %v", left)
	}
	if open, _ := presence.Questions(a.team, "bob"); len(open) > 0 {
		a.t.Errorf("still open: %+v", open)
	}
	unread, _ := a.team.Dir().Names("lead/inbox/new")
	if len(unread) > 0 {
		a.t.Errorf("the lead still has %v", unread)
	}
}

const led = "lead = \"lead\"\n[members.me]\nperson = true\n"

func bash(command string) question {
	return question{
		Question: ask.Question{Prompt: command, Tool: "Bash"}, rule: &policy.Request{Tool: "Bash", Command: true, Input: command},
		event: wire.Event{Session: "s1", TurnID: "t1"},
	}
}

func TestApprove(t *testing.T) {
	a := newTeam(t, led)
	q, done := a.asks(t.Context(), bash("make"), asker{})
	if q.Tool != "Bash" || q.Prompt != "make" || len(q.Options) != 2 {
		t.Errorf("asked: %+v", q)
	}
	for mail := []string{}; len(mail) != 1; mail, _ = a.team.Dir().Names("lead/inbox/new") { // a moment later
		time.Sleep(time.Millisecond)
	}
	must(t, a.answers(q, "me", false, ""))
	if r := <-done; r.err != nil || r.Deny || r.Option != allowOnce.ID || r.By != "me" {
		t.Errorf("got %+v", r)
	}
	a.expectLog("confirm_required Bash", "state_change tool_running Allow once me approve")
	a.expectClean()
	if err := a.answers(q, "lead", true, ""); !errors.Is(err, ask.ErrNoQuestion) {
		t.Errorf("a late answer: %v", err)
	}
}

func TestRejectWithReason(t *testing.T) {
	a := newTeam(t, led)
	q, done := a.asks(t.Context(), bash("make"), asker{})
	must(t, a.answers(q, "lead", true, "use go build"))
	if r := <-done; r.err != nil || !r.Deny || r.Reason != "use go build" || r.By != "lead" {
		t.Errorf("got %+v", r)
	}
	a.expectLog("confirm_required Bash", "state_change thinking Deny lead reject")
	a.expectClean()
}

// Where a runner asks people, only a rule answers, and without one nothing is recorded.
func TestOnlyRules(t *testing.T) {
	const rules = led + "[[rules]]\nagent = \"bob\"\ntool = \"Bash(make)\"\ndecision = \"allow\"\n"
	for command, isRuled := range map[string]bool{"make": true, "git push": false} {
		a := newTeam(t, rules)
		before := a.log()
		got := a.waits(t.Context(), bash(command), asker{onlyRules: true})
		err := got.err
		if isRuled && (err != nil || got.By != ask.ByRule || got.Deny) {
			t.Errorf("%s: got %+v, %v", command, got, err)
		} else if !isRuled && (!errors.Is(err, errUnruled) || a.log() != before) {
			t.Errorf("%s: %v, and the log has\n%s", command, err, a.log())
		}
	}
}

// A rule answers before anybody is told.
func TestRules(t *testing.T) {
	const rules = led + "[[rules]]\nagent = \"bob\"\ntool = \"Bash(make)\"\ndecision = \"allow\"\n[[rules]]\ntool = \"Bash(rm *)\"\ndecision = \"deny\"\n"
	for command, isDeny := range map[string]bool{"make": false, "rm -rf x": true} {
		a := newTeam(t, rules)
		_, done := a.asks(t.Context(), bash(command), asker{})
		if r := <-done; r.err != nil || r.By != ask.ByRule || r.Deny != isDeny {
			t.Errorf("%s: got %+v", command, r)
		}
		a.expectClean()
	}
}

// Of answers at the same time one counts, and the others learn whose it was, or that the question is closed.
func TestFirstAnswerCounts(t *testing.T) {
	a := newTeam(t, led)
	given := 0
	q, done := a.asks(t.Context(), bash("make"), asker{give: func(ask.Answer) error { given++; return nil }})
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for i := range 8 {
		wg.Go(func() { errs <- a.answers(q, []string{"me", "lead"}[i%2], i > 3, "") })
	}
	wg.Wait()
	close(errs)
	won := 0
	for err := range errs {
		switch {
		case err == nil:
			won++
		case !strings.Contains(err.Error(), "already answered by") && !errors.Is(err, ask.ErrNoQuestion):
			t.Error(err)
		}
	}
	if r := <-done; r.err != nil || won != 1 || given != 1 {
		t.Errorf("%d won, %d were given: %+v", won, given, r)
	}
	a.expectClean()
}

func TestRights(t *testing.T) {
	a := newTeam(t, "approvers = [\"lead\"]\n"+led)
	q, done := a.asks(t.Context(), bash("make"), asker{})
	for by, want := range map[string]string{"bob": "their own", "me": "only approvers", "": "only approvers"} {
		c, err := programs.DialQuestion(t.Context(), a.team, "bob", q.ID)
		must(t, err)
		if _, err := c.Answer(t.Context(), ask.Answer{ID: q.ID, By: by}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", by, err, want)
		}
		if _, err := c.Stop(t.Context()); err == nil {
			t.Error("it can be stopped")
		}
		c.Close()
	}
	must(t, a.answers(q, "lead", false, ""))
	<-done
	a.expectClean()
}

// A process of the program that asks is the agent, whatever it calls itself.
func TestNoOwnAnswer(t *testing.T) {
	a := newTeam(t, led)
	q, done := a.asks(t.Context(), bash("make"), asker{program: process.Info{PID: os.Getpid()}})
	if err := a.answers(q, "me", false, ""); err == nil || !strings.Contains(err.Error(), "their own") {
		t.Errorf("it answered: %v", err)
	}
	select {
	case r := <-done:
		t.Errorf("it is over: %+v", r)
	default:
	}
}

// Another question, another time of it, and another text in the log are not what was approved.
func TestOnlyWhatWasApproved(t *testing.T) {
	a := newTeam(t, led)
	q, _ := a.asks(t.Context(), bash("make"), asker{})
	late, other := q, q
	late.Since = q.Since.Add(time.Second)
	if err := a.answers(late, "me", false, ""); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("another time: %v", err)
	}
	c, err := programs.DialQuestion(t.Context(), a.team, "bob", q.ID)
	must(t, err)
	defer c.Close()
	other.ID = string(wire.NewID())
	if _, err := c.Answer(t.Context(), ask.Answer{ID: other.ID, By: "me"}); err == nil {
		t.Error("another question was answered")
	}
	forged := wire.Event{Kind: "confirm_required", Source: "hook", Session: "s1", TurnID: "t1"}.With("id", q.ID).With("tool", "Bash").With("prompt", "ls")
	must(t, a.team.Box("bob").Log().Append(t.Context(), forged))
	now, err := presence.Questions(a.team, "bob")
	must(t, err)
	if err := a.answers(now[0], "me", false, ""); err == nil || !strings.Contains(err.Error(), "another text") {
		t.Errorf("%+v: %v", now[0], err)
	}
}

// Who answers at the program ends the wait: the program ends this process, or goes on.
func TestAnsweredThere(t *testing.T) {
	a := newTeam(t, led)
	ctx, cancel := context.WithCancel(t.Context())
	_, done := a.asks(ctx, bash("make"), asker{})
	cancel()
	if r := <-done; !errors.Is(r.err, context.Canceled) {
		t.Errorf("ended: %+v", r)
	}
	a.expectLog("confirm_required Bash", "state_change unknown")
	a.expectClean()

	_, done = a.asks(t.Context(), bash("make"), asker{})
	goesOn := wire.Event{Kind: "tool_call_end", Source: "hook", Session: "s1", TurnID: "t1"}.With("tool", "Bash")
	must(t, a.team.Box("bob").Log().Append(t.Context(), goesOn))
	if r := <-done; !errors.Is(r.err, errOver) {
		t.Errorf("it goes on: %+v", r)
	}
	a.expectClean()
}

// What the program is seen to do ends the wait, too; and an answer does not count that comes before that was noticed.
func TestSeenToGoOn(t *testing.T) {
	a := newTeam(t, led)
	var mu sync.Mutex
	now := reducer.Confirming
	see := func() reducer.Activity {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	q, done := a.asks(t.Context(), bash("make"), asker{now: see})
	mu.Lock()
	now = reducer.Thinking
	mu.Unlock()
	if err := a.answers(q, "me", false, ""); err == nil {
		t.Error("an answer counted that came too late")
	}
	if r := <-done; !errors.Is(r.err, errOver) {
		t.Errorf("it goes on: %+v", r)
	}
	a.expectLog("confirm_required Bash", "state_change thinking")
	a.expectClean()
}

// A deadline is passed when the test says so, which may be long after the question began on a busy machine.
type deadline struct {
	context.Context
	passed chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// At the deadline the program still asks: the question stays open, and only its own terminal can answer it.
func TestDeadline(t *testing.T) {
	a := newTeam(t, led)
	ctx := deadline{t.Context(), make(chan struct{})}
	_, done := a.asks(ctx, bash("make"), asker{})
	close(ctx.passed)
	if r := <-done; !errors.Is(r.err, context.DeadlineExceeded) {
		t.Errorf("ended: %+v", r)
	}
	open, err := presence.Questions(a.team, "bob")
	if err != nil || len(open) != 1 || open[0].Served {
		t.Errorf("open: %+v, %v", open, err)
	}
}

// An answer that the program does not get is none.
func TestNotGiven(t *testing.T) {
	a := newTeam(t, led)
	broken := errors.New("broken pipe")
	q, done := a.asks(t.Context(), bash("make"), asker{give: func(ask.Answer) error { return broken }})
	if err := a.answers(q, "me", false, ""); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("answered: %v", err)
	}
	if r := <-done; !errors.Is(r.err, broken) {
		t.Errorf("ended: %+v", r)
	}
	a.expectClean()
}

// Two processes that are told of one question open it once.
func TestAskedTwice(t *testing.T) {
	a := newTeam(t, led)
	q := bash("make")
	q.ID = "q1"
	open, done := a.asks(t.Context(), q, asker{})
	if r := a.waits(t.Context(), q, asker{program: elsewhere}); !errors.Is(r.err, errAsked) {
		t.Errorf("asked again: %v", r.err)
	}
	must(t, a.answers(open, "me", false, ""))
	if r := <-done; r.err != nil {
		t.Error(r.err)
	}
	a.expectClean()
}

// Several questions are open at once, as sub-agents have them; each gets its own answer.
func TestSeveralQuestions(t *testing.T) {
	a := newTeam(t, led)
	first, second := bash("make"), bash("go test")
	first.ID, second.ID = "q1", "q2"
	one, oneDone := a.asks(t.Context(), first, asker{})
	two, twoDone := a.asks(t.Context(), second, asker{})
	must(t, a.answers(two, "me", true, ""))
	if r := <-twoDone; r.err != nil || !r.Deny {
		t.Errorf("the second: %+v", r)
	}
	must(t, a.answers(one, "me", false, ""))
	if r := <-oneDone; r.err != nil || r.Deny {
		t.Errorf("the first: %+v", r)
	}
	a.expectClean()
}

// Whose process answers below a program of several names, as Codex's server has them, nobody can tell: each of these
// would have to be allowed to.
func TestBelowASharedProgram(t *testing.T) {
	a := newTeam(t, "lead = \"lead\"\n[members.me]\nperson = true\n")
	own, _ := process.Find(os.Getpid())
	note := func(name string) {
		t.Helper()
		dir := name + "/run/programs"
		must(t, a.team.Dir().MkdirAll(dir))
		data, _ := json.Marshal(programs.Program{Tool: "codex", PID: own.PID, Start: own.Start})
		must(t, a.team.Dir().Replace(dir+"/"+strconv.Itoa(own.PID)+".json", data, false))
	}
	note("lead")
	q, done := a.asks(t.Context(), question{Question: ask.Question{Tool: "Bash", Prompt: "make"}}, asker{})
	must(t, a.answers(q, "lead", false, ""))
	<-done
	note("me")
	q, done = a.asks(t.Context(), question{Question: ask.Question{Tool: "Bash", Prompt: "make"}}, asker{})
	if err := a.answers(q, "lead", false, ""); err == nil || !strings.Contains(err.Error(), "of the agents only the lead may answer") {
		t.Errorf("below a program of lead and me: %v", err)
		return
	}
	must(t, a.team.Dir().Remove("me/run/programs/"+strconv.Itoa(own.PID)+".json"))
	must(t, a.answers(q, "lead", true, ""))
	<-done
}
