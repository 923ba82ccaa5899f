package hook

import (
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/handover"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

func mails(t testing.TB, bob *maildir.Box, n int) (ids []wire.ID) {
	t.Helper()
	for range n {
		ids = append(ids, mail(t, bob, "x"))
	}
	return ids
}

func idsOf(items []*maildir.Item) (ids []wire.ID) {
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

// handOver makes a call of a session's hook that can carry mail, at a given time.
func handOver(t testing.TB, b *maildir.Box, session, name string, now time.Time) *handover.Handover {
	t.Helper()
	return calls(t, b, handover.Call{Session: session, Name: name, ProvesReceipt: true, CanCarryMail: true, Now: now})
}

func calls(t testing.TB, b *maildir.Box, call handover.Call) *handover.Handover {
	t.Helper()
	h, err := call.HandOver(ctx, b, maildir.ReadOptions{Limit: 20})
	must(t, err)
	return h
}

// sent records that the answer was written.
func sent(t testing.TB, h *handover.Handover) *handover.Handover {
	t.Helper()
	announced, err := h.Sent(ctx)
	if err != nil || len(announced) != len(h.Items) {
		t.Fatal(announced, err)
	}
	return h
}

func handed(t testing.TB, h *handover.Handover, repeat bool, ids ...wire.ID) *handover.Handover {
	t.Helper()
	if got := idsOf(h.Items); !slices.Equal(got, ids) {
		t.Errorf("handed over: %v, not %v", got, ids)
	}
	for _, id := range ids {
		if h.Repeat[id] != repeat {
			t.Errorf("%s may be a repeat: %v", id, h.Repeat[id])
		}
	}
	return h
}

// A message that a hook hands over stays unread until the session's next call. Other hooks skip it; a reader gets it.
func TestHandOver(t *testing.T) {
	t.Parallel()
	bob := team(t, nil)
	now := time.Now()
	list := append(mails(t, bob, 2), mail(t, bob, "with ack", func(m *wire.Message) { m.RequiresAck = true }))
	sent(t, handed(t, handOver(t, bob, "s1", "prompt 1", now), false, list...))
	if where(t, bob, list[0]) != maildir.Unread {
		t.Error("moved before anything showed that it was received")
	}
	for _, ids := range [][]wire.ID{nil, list} {
		if b, err := bob.Peek(ctx, maildir.ReadOptions{IDs: ids}); err != nil || len(b.Items) != 3 {
			t.Error(b, err)
		}
	}
	// Calls of another session, the same call again and the session's end prove nothing.
	for _, call := range []handover.Call{
		{Session: "s2", Name: "other", ProvesReceipt: true, CanCarryMail: true, Now: now},
		{Session: "s1", Name: "2", Now: now},
		{Session: "s1", Name: "prompt 1", ProvesReceipt: true, CanCarryMail: true, Now: now},
		{Session: "s2", Name: "end", EndsSession: true, Now: now},
	} {
		if h := handed(t, calls(t, bob, call), false); len(h.Received) > 0 {
			t.Error(call, h)
		}
	}
	// Even after a long time no other session gets it: this one is alive.
	h := handed(t, handOver(t, bob, "s1", "tool 1", now.Add(time.Hour)), false)
	if len(h.Received) != 3 || h.Received[0].Field("batch") == "" || h.Received[0].Field("batch") != h.Received[2].Field("batch") ||
		h.Received[0].Kind != wire.EventRead || h.Received[0].Session != "s1" || h.Received[0].Source != "hook" {
		t.Error(h.Received)
	}
	for i, want := range []maildir.State{maildir.Done, maildir.Done, maildir.Owed} {
		if got := where(t, bob, list[i]); got != want {
			t.Errorf("message %d is %s", i, got)
		}
	}
	if given := bob.Given(now); len(given) > 0 {
		t.Errorf("a claim of nothing is left: %v", given)
	}
}

// A hook that is installed twice hands each message over once, and its second call proves nothing.
func TestSameCallTwice(t *testing.T) {
	t.Parallel()
	for _, loose := range []bool{false, true} {
		bob := team(t, nil)
		list := mails(t, bob, 1)
		call := handover.Call{Session: "s1", Name: "stop", IsAmbiguous: loose, ProvesReceipt: true, CanCarryMail: true, Now: time.Now()}
		first, second := handed(t, calls(t, bob, call), false, list...), handed(t, calls(t, bob, call), false)
		if first.Repeated || !second.Repeated || len(second.Received) > 0 {
			t.Error("the second does not know of the first")
		}
		sent(t, first)
		call.Now = call.Now.Add(time.Minute)
		if third := calls(t, bob, call); loose != (len(third.Received) == 1) || loose == third.Repeated {
			t.Errorf("loose %v: a minute later: received %v, repeated %v", loose, third.Received, third.Repeated)
		}
	}
}

// A message is handed over once more if nothing proves that it was received, and then only Read shows it.
func TestHandedOverInVain(t *testing.T) {
	t.Parallel()
	ends := func(call handover.Call) func(*testing.T, *maildir.Box, string, time.Time) time.Time {
		return func(t *testing.T, bob *maildir.Box, session string, now time.Time) time.Time {
			call.Session, call.Name, call.Now = session, "end", now
			if h := calls(t, bob, call); len(h.Received) > 0 {
				t.Error("that shows nothing")
			}
			return now.Add(time.Second)
		}
	}
	for about, lapse := range map[string]func(*testing.T, *maildir.Box, string, time.Time) time.Time{
		"the session's end": ends(handover.Call{EndsSession: true}),
		"it begins anew":    ends(handover.Call{IsNewProgram: true}),
		"ten minutes": func(t *testing.T, bob *maildir.Box, session string, now time.Time) time.Time {
			handed(t, handOver(t, bob, "other", "look", now.Add(9*time.Minute)), false)
			return now.Add(11 * time.Minute)
		},
	} {
		t.Run(about, func(t *testing.T) {
			bob := team(t, nil)
			list := mails(t, bob, 1)
			now := time.Now().Add(-time.Hour)
			sent(t, handed(t, handOver(t, bob, "s1", "1", now), false, list...))
			now = lapse(t, bob, "s1", now)
			list = append(list, mails(t, bob, 1)...)
			h := sent(t, handOver(t, bob, "s2", "2", now))
			if !slices.Equal(idsOf(h.Items), list) || !h.Repeat[list[0]] || h.Repeat[list[1]] {
				t.Error(idsOf(h.Items), h.Repeat)
			}
			now = lapse(t, bob, "s2", now)
			h = sent(t, handed(t, handOver(t, bob, "s3", "3", now), true, list[1]))
			if h.GivenUp != 1 {
				t.Errorf("%d are left", h.GivenUp)
			}
			now = lapse(t, bob, "s3", now)
			if h = handed(t, handOver(t, bob, "s4", "4", now), false); h.GivenUp != 2 {
				t.Errorf("%d are left", h.GivenUp)
			}
			batch, err := bob.Read(ctx, maildir.ReadOptions{}, func(b maildir.Batch) (int, error) { return len(b.Items), nil })
			must(t, err)
			if got := idsOf(batch.Items); !slices.Equal(got, list) { // nothing is lost
				t.Errorf("read: %v, not %v", got, list)
			}
			if h = handed(t, handOver(t, bob, "s5", "5", now), false); h.GivenUp != 0 {
				t.Error(h.GivenUp)
			}
		})
	}
}

// What is pushed may wait in the program behind other calls: it counts as received once a call shows it.
func TestPushed(t *testing.T) {
	t.Parallel()
	bob := team(t, nil)
	list := mails(t, bob, 2)
	now := time.Now().Add(-time.Hour)
	push := handover.Call{Session: "s1", Name: "push", CanCarryMail: true, IsPush: true, Now: now}
	sent(t, handed(t, calls(t, bob, push), false, list...))
	if h := handOver(t, bob, "s1", "tool", now.Add(time.Second)); len(h.Items)+len(h.Received) != 0 {
		t.Errorf("a call that does not show them: %d again, %d received", len(h.Items), len(h.Received))
	}
	if h := handOver(t, bob, "s2", "other", now.Add(2*time.Second)); len(h.Items) != 0 {
		t.Errorf("another session got %d", len(h.Items))
	}
	shows := handover.Call{Session: "s1", Name: "prompt", Shown: []string{"000000", list[0].Short(12)}, Now: now.Add(3 * time.Second)}
	if h := calls(t, bob, shows); len(h.Received) != 1 || h.Received[0].MessageID() != list[0] {
		t.Errorf("received: %v", h.Received)
	}
	// Its program was killed.
	after := handover.Call{Session: "s2", Name: "next", CanCarryMail: true, Now: now.Add(4 * time.Second), IsGone: func(session string) bool { return session == "s1" }}
	sent(t, handed(t, calls(t, bob, after), true, list[1]))
}

// No more is pushed into a session than it takes at a time: its hooks hand over the others.
func TestPushedTooMany(t *testing.T) {
	t.Parallel()
	bob := team(t, nil)
	now := time.Now().Add(-time.Hour)
	push := func() *handover.Handover {
		now = now.Add(time.Second)
		return calls(t, bob, handover.Call{Session: "s1", Name: now.String(), CanCarryMail: true, IsPush: true, Now: now})
	}
	first := mails(t, bob, handover.MaxPushed)
	for h := push(); len(h.Items) > 0; h = push() { // a page at a time
		sent(t, h)
	}
	more := mails(t, bob, 1)
	if h := push(); len(h.Items) != 0 || !h.IsFull {
		t.Errorf("%d messages more, full: %v", len(h.Items), h.IsFull)
	}
	shows := handover.Call{Session: "s1", Name: "prompt", Shown: []string{first[0].Short(12)}, CanCarryMail: true, Now: now.Add(time.Second)}
	h := calls(t, bob, shows)
	if len(h.Received) != 1 {
		t.Errorf("received: %v", h.Received)
	}
	handed(t, h, false, more...).Release(ctx)
	if h := handed(t, push(), false, more...); h.IsFull {
		t.Error("one was received, and it is still full")
	}
}
