package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newScope makes a team of alice, whose scope it is, and of others.
func newScope(t *testing.T, others ...wire.Name) *Scope {
	t.Helper()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, notices.Tell), append([]wire.Name{"alice"}, others...)...)
	s := Of(team)
	s.Me = team.Box("alice")
	s.Given.IsQuiet = true
	return s
}

// send sends a message of from to another member; with a parent it is a reply.
func (s *Scope) send(t *testing.T, from, to wire.Name, parent *wire.Message) *wire.Message {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: s.Team.Box(from).Address(), To: []wire.Address{s.Team.Box(to).Address()}, Body: "hello"}
	if parent != nil {
		m.InReplyTo, m.Thread = parent.ID, parent.ThreadID()
	}
	p := &maildir.Post{Message: m, To: []*maildir.Box{s.Team.Box(to)}, Sender: s.Team.Box(from)}
	maildir.Deliver(t.Context(), p)
	must(t, p.Outcomes[0].Err)
	return m
}

func (s *Scope) happen(t *testing.T, agent wire.Name, kind string) {
	t.Helper()
	must(t, s.Team.Box(agent).Log().Append(t.Context(), wire.Event{Source: "cli", Kind: kind, TurnID: "t1"}))
}

func (s *Scope) retire(t *testing.T, agent wire.Name) {
	t.Helper()
	_, err := s.Team.Retire(t.Context(), agent)
	must(t, err)
}

func (s *Scope) conditions(t *testing.T, flags ...string) (all []*Condition) {
	t.Helper()
	for i := 0; i < len(flags); i += 2 {
		some, err := s.Conditions(flags[i], flags[i+1], false)
		must(t, err)
		all = append(all, some...)
	}
	return all
}

func kindsOf(met []*Match) (kinds []string) {
	for _, m := range met {
		kinds = append(kinds, m.Kind)
	}
	return kinds
}

// What arrives after the look, and before anything waits for news, is that news.
func TestWaitMissesNothingBetweenLookAndWatch(t *testing.T) {
	s := newScope(t, "bob")
	c := s.WhenMail()
	look, looks := c.look, 0
	var metBy watcher.Entry
	c.look = func(ctx context.Context, e watcher.Entry) finding {
		f := look(ctx, e)
		if looks++; looks == 1 {
			s.send(t, "bob", "alice", nil)
		}
		metBy = e
		return f
	}
	met, err := s.Wait(t.Context(), Wait{Conditions: []*Condition{c}, Timeout: time.Minute})
	must(t, err)
	if looks != 2 || metBy.Message == nil || met[0].Item.ID != metBy.Message.ID {
		t.Errorf("%d looks, the last one after %+v", looks, metBy)
	}
}

// Four conditions, of which any or every one must be met: what is met already returns at once.
func TestWaitForFour(t *testing.T) {
	s := newScope(t, "bob", "carol")
	asked := s.send(t, "alice", "bob", nil)
	id := string(asked.ID)
	wait := func(every bool) ([]string, error) {
		met, err := s.Wait(t.Context(), Wait{
			Conditions: s.conditions(t, "reply", id, "read", id, "idle", "bob", "busy", "carol"), Every: every, Timeout: time.Millisecond,
		})
		return kindsOf(met), err
	}
	expect := func(every bool, want ...string) {
		t.Helper()
		got, err := wait(every)
		isTimeout := err != nil && (&Given{}).Explain(err).Exit == failure.ExitTimeout
		if !slices.Equal(got, want) || isTimeout != (len(want) == 0) {
			t.Errorf("every %v: %v, %v, not %v", every, got, err, want)
		}
	}
	expect(false)
	s.happen(t, "carol", wire.TurnStarted)
	expect(false, "busy")
	expect(true)
	must(t, s.Team.Box("bob").MarkRead(t.Context(), asked.ID))
	s.happen(t, "bob", wire.TurnIdle)
	expect(false, "read", "idle", "busy")
	if _, err := wait(true); (&Given{}).Explain(err).Hint.String() != "do other work, or wait again: atm wait --reply "+asked.ID.Short(6) {
		t.Error((&Given{}).Explain(err).Hint)
	}
	s.send(t, "bob", "alice", asked)
	expect(true, "reply", "read", "idle", "busy")
	s.happen(t, "carol", wire.TurnIdle)
	expect(true)
}

// A state counts even if it is over before anybody looks; with every, all hold at the same time.
func TestWaitSeesEachState(t *testing.T) {
	for _, every := range []bool{false, true} {
		s := newScope(t, "bob", "carol")
		conditions := s.conditions(t, "busy", "bob", "busy", "carol")
		looks, lookedAtCarol := []func(context.Context, watcher.Entry) finding{conditions[0].look, conditions[1].look}, make(chan bool, 100)
		isFirst := true
		conditions[0].look = func(ctx context.Context, e watcher.Entry) finding {
			f := looks[0](ctx, e)
			if isFirst {
				<-lookedAtCarol
				s.happen(t, "bob", wire.TurnStarted) // one after the other
				s.happen(t, "bob", wire.TurnCompleted)
				s.happen(t, "carol", wire.TurnStarted)
				s.happen(t, "carol", wire.TurnCompleted)
			}
			isFirst = false
			return f
		}
		conditions[1].look = func(ctx context.Context, e watcher.Entry) finding {
			f := looks[1](ctx, e)
			lookedAtCarol <- true
			return f
		}
		timeout := time.Minute
		if every {
			timeout = 2 * tickEvery
		}
		met, err := s.Wait(t.Context(), Wait{Conditions: conditions, Every: every, Timeout: timeout})
		if isMet := err == nil && len(met) == 1; isMet == every {
			t.Errorf("every %v: %v, %v", every, kindsOf(met), err)
		}
	}
}

// A wait for one of several ends only if none of them can be met any more.
func TestWaitInVain(t *testing.T) {
	s := newScope(t, "bob", "carol")
	conditions := func() []*Condition { return s.conditions(t, "busy", "bob", "busy", "carol") }
	first := conditions()
	look, looks := first[1].look, 0
	first[1].look = func(ctx context.Context, e watcher.Entry) finding {
		switch looks++; looks {
		case 1:
			s.retire(t, "bob")
		case 3:
			s.happen(t, "carol", wire.TurnStarted)
		}
		return look(ctx, e)
	}
	met, err := s.Wait(t.Context(), Wait{Conditions: first, Timeout: time.Minute})
	if err != nil || met[0].Agent != "carol" {
		t.Errorf("%v, %v", kindsOf(met), err)
	}
	_, err = s.Wait(t.Context(), Wait{Conditions: s.conditions(t, "exit", "carol"), Timeout: time.Millisecond})
	if (&Given{}).Explain(err).Exit != failure.ExitTimeout {
		t.Error(err)
	}
	second := s.conditions(t, "exit", "carol")
	look = second[0].look
	second[0].look = func(ctx context.Context, e watcher.Entry) finding {
		if e == (watcher.Entry{}) && s.Team.Store.IsAgent("carol") {
			defer s.retire(t, "carol")
		}
		return look(ctx, e)
	}
	_, err = s.Wait(t.Context(), Wait{Conditions: second, Timeout: time.Minute})
	if (&Given{}).Explain(err).Exit != failure.ExitNotFound {
		t.Error(err)
	}
}
