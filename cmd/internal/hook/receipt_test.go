package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

func mails(t testing.TB, bob *member, n int) (ids []wire.ID) {
	t.Helper()
	for range n {
		ids = append(ids, mail(t, bob, "x"))
	}
	return ids
}

func idsOf(items []*wire.Item) (ids []wire.ID) {
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

// handOver makes a call of a session's hook that can carry mail, at a given time.
func handOver(t testing.TB, b *member, session, name string, now time.Time) result {
	t.Helper()
	return calls(t, b, agents.Call{Session: session, Name: name, ProvesReceipt: true, ReplyAs: agents.AsContext, Now: now})
}

// A result is what a call has settled, and what it has handed over.
type result struct {
	*claim.Claim
	received []wire.Event
}

func calls(t testing.TB, b *member, c agents.Call) result {
	t.Helper()
	c.Box = b.Box
	received, err := c.Settle(ctx, func(string) bool { return false })
	must(t, err)
	h := &claim.Claim{}
	if c.ReplyAs != agents.NoReply {
		h, err = c.HandOver(ctx, inbox.ReadOptions{Limit: 20})
		must(t, err)
	}
	return result{h, received}
}

// sent records that the answer was written.
func sent(t testing.TB, h result) result {
	t.Helper()
	announced, err := h.Sent(ctx)
	if err != nil || len(announced) != len(h.Items) {
		t.Fatal(announced, err)
	}
	return h
}

func handed(t testing.TB, h result, repeat bool, ids ...wire.ID) result {
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
	bob := team(t)
	now := time.Now()
	list := append(mails(t, bob, 2), mail(t, bob, "with ack", func(m *wire.Message) { m.RequiresAck = true }))
	sent(t, handed(t, handOver(t, bob, "s1", "prompt 1", now), false, list...))
	if where(t, bob, list[0]) != wire.Unread {
		t.Error("moved before anything showed that it was received")
	}
	for _, ids := range [][]wire.ID{nil, list} {
		if b, err := inbox.Peek(ctx, bob.Box, inbox.ReadOptions{IDs: ids}); err != nil || len(b.Items) != 3 {
			t.Error(b, err)
		}
	}
	// Calls of another session, the same call again and the session's end prove nothing.
	for _, call := range []agents.Call{
		{Session: "s2", Name: "other", ProvesReceipt: true, ReplyAs: agents.AsContext, Now: now},
		{Session: "s1", Name: "2", Now: now},
		{Session: "s1", Name: "prompt 1", ProvesReceipt: true, ReplyAs: agents.AsContext, Now: now},
		{Session: "s2", Name: "end", EndsSession: true, Now: now},
	} {
		if h := handed(t, calls(t, bob, call), false); len(h.received) > 0 {
			t.Error(call, h)
		}
	}
	// Even after a long time no other session gets it: this one is alive.
	h := handed(t, handOver(t, bob, "s1", "tool 1", now.Add(time.Hour)), false)
	if len(h.received) != 3 || h.received[0].Field("batch") == "" || h.received[0].Field("batch") != h.received[2].Field("batch") ||
		h.received[0].Kind != wire.EventRead || h.received[0].Session != "s1" || h.received[0].Source != "hook" {
		t.Error(h.received)
	}
	for i, want := range []wire.State{wire.Done, wire.Done, wire.Owed} {
		if got := where(t, bob, list[i]); got != want {
			t.Errorf("message %d is %s", i, got)
		}
	}
	if given := claim.AllGiven(bob.Box); len(given) > 0 {
		t.Errorf("a claim of nothing is left: %v", given)
	}
}

// Of a program that records what its model has had, only the record proves that an answer arrived: one that was lost on its
// way is handed over once more, marked.
func TestRecord(t *testing.T) {
	t.Parallel()
	bob, now := team(t), time.Now()
	record := filepath.Join(t.TempDir(), "transcript.jsonl")
	call := func(name string, at time.Time) result {
		return calls(t, bob, agents.Call{Session: "s1", Name: name, Record: record, ProvesReceipt: true, ReplyAs: agents.AsContext, Now: at})
	}
	list := mails(t, bob, 2)
	must(t, os.WriteFile(record, []byte("{}\n"), 0o600))
	sent(t, handed(t, call("tool 1", now), false, list...))
	shown := fmt.Sprintf("{\"content\":[\"atm: 2 new messages\\n[atm %s from alice, now]\\n  x: [atm %s from bob\"]}\n", list[0].Short(6), list[1].Short(6))
	must(t, os.WriteFile(record, []byte(shown), 0o600))
	if h := handed(t, call("stop 1", now.Add(time.Second)), false); len(h.received) != 1 || h.received[0].MessageID() != list[0] {
		t.Errorf("received %v", h.received)
	}
	sent(t, handed(t, call("prompt 2", now.Add(time.Minute)), true, list[1]))
	must(t, os.Remove(record)) // nobody can tell any more
	if h := handed(t, call("stop 2", now.Add(2*time.Minute)), false); len(h.received) != 1 {
		t.Errorf("received %v", h.received)
	}

	// What a hook has answered that was killed then is read as well, once the record has it.
	killed := mails(t, bob, 1)
	handed(t, call("prompt 3", now.Add(3*time.Minute)), false, killed...)
	must(t, os.WriteFile(record, fmt.Appendf(nil, "{\"text\":\"[atm %s from alice\"}\n", killed[0].Short(8)), 0o600))
	if h := calls(t, bob, agents.Call{Session: "s1", Name: "tool 3", Record: record, ProvesReceipt: true, Now: now.Add(3*time.Minute + time.Second)}); len(h.received) != 1 {
		t.Errorf("received %v", h.received)
	}
}

// A hook that is installed twice hands each message over once, and its second call proves nothing.
func TestSameCallTwice(t *testing.T) {
	t.Parallel()
	for _, loose := range []bool{false, true} {
		bob := team(t)
		list := mails(t, bob, 1)
		call := agents.Call{Session: "s1", Name: "stop", IsAmbiguous: loose, ProvesReceipt: true, ReplyAs: agents.AsContext, Now: time.Now()}
		first, second := handed(t, calls(t, bob, call), false, list...), handed(t, calls(t, bob, call), false)
		if first.IsRepeated || !second.IsRepeated || len(second.received) > 0 {
			t.Error("the second does not know of the first")
		}
		sent(t, first)
		call.Now = call.Now.Add(time.Minute)
		if third := calls(t, bob, call); loose != (len(third.received) == 1) || loose == third.IsRepeated {
			t.Errorf("loose %v: a minute later: received %v, repeated %v", loose, third.received, third.IsRepeated)
		}
	}
}

// A message is handed over once more if nothing proves that it was received, and then only Read shows it.
func TestHandedOverInVain(t *testing.T) {
	t.Parallel()
	ends := func(call agents.Call) func(*testing.T, *member, string, time.Time) time.Time {
		return func(t *testing.T, bob *member, session string, now time.Time) time.Time {
			call.Session, call.Name, call.Now = session, "end", now
			if h := calls(t, bob, call); len(h.received) > 0 {
				t.Error("that shows nothing")
			}
			return now.Add(time.Second)
		}
	}
	for about, lapse := range map[string]func(*testing.T, *member, string, time.Time) time.Time{
		"the session's end": ends(agents.Call{EndsSession: true}),
		"it begins anew":    ends(agents.Call{IsNewProgram: true}),
		"ten minutes": func(t *testing.T, bob *member, session string, now time.Time) time.Time {
			handed(t, handOver(t, bob, "other", "look", now.Add(9*time.Minute)), false)
			return now.Add(11 * time.Minute)
		},
	} {
		t.Run(about, func(t *testing.T) {
			bob := team(t)
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
			batch, err := inbox.Read(ctx, bob.Box, inbox.ReadOptions{}, func(b inbox.Batch) (int, error) { return len(b.Items), nil })
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
	bob := team(t)
	list := mails(t, bob, 2)
	now := time.Now().Add(-time.Hour)
	push := agents.Call{Session: "s1", Name: "push", ReplyAs: agents.AsContext, IsPush: true, Now: now}
	sent(t, handed(t, calls(t, bob, push), false, list...))
	if h := handOver(t, bob, "s1", "tool", now.Add(time.Second)); len(h.Items)+len(h.received) != 0 {
		t.Errorf("a call that does not show them: %d again, %d received", len(h.Items), len(h.received))
	}
	if h := handOver(t, bob, "s2", "other", now.Add(2*time.Second)); len(h.Items) != 0 {
		t.Errorf("another session got %d", len(h.Items))
	}
	shows := agents.Call{Session: "s1", Name: "prompt", Shown: []string{"000000", list[0].Short(12)}, Now: now.Add(3 * time.Second)}
	if h := calls(t, bob, shows); len(h.received) != 1 || h.received[0].MessageID() != list[0] {
		t.Errorf("received: %v", h.received)
	}
	// Its program was killed.
	after := agents.Call{Session: "s2", Name: "next", ReplyAs: agents.AsContext, Now: now.Add(4 * time.Second)}
	after.Box = bob.Box
	_, err := after.Settle(ctx, func(session string) bool { return session == "s1" })
	must(t, err)
	sent(t, handed(t, calls(t, bob, after), true, list[1]))
}

// What was typed into Gemini CLI's box is received with the prompt that it became.
func TestTypedIntoGemini(t *testing.T) {
	t.Parallel()
	bob := team(t)
	list, now := mails(t, bob, 1), time.Now()
	sent(t, handed(t, calls(t, bob, agents.Call{Session: "g1", Name: "push", ReplyAs: agents.AsContext, IsPush: true, Now: now}), false, list...))
	call1(t, Gemini, bob, `{"session_id":"g1","hook_event_name":"BeforeAgent","prompt":"[atm `+list[0].Short(6)+` from alice, now]\n  hello"}`, now.Add(time.Second))
	if ids, err := bob.UnreadIDs(); err != nil || len(ids) > 0 {
		t.Errorf("unread: %v, %v", ids, err)
	}
}

// No more is pushed into a session than it takes at a time: its hooks hand over the others.
func TestPushedTooMany(t *testing.T) {
	t.Parallel()
	bob := team(t)
	now := time.Now().Add(-time.Hour)
	push := func() result {
		now = now.Add(time.Second)
		return calls(t, bob, agents.Call{Session: "s1", Name: now.String(), ReplyAs: agents.AsContext, IsPush: true, Now: now})
	}
	first := mails(t, bob, 20)
	for h := push(); len(h.Items) > 0; h = push() { // a page at a time
		sent(t, h)
	}
	more := mails(t, bob, 1)
	if h := push(); len(h.Items) != 0 || !h.IsFull {
		t.Errorf("%d messages more, full: %v", len(h.Items), h.IsFull)
	}
	shows := agents.Call{Session: "s1", Name: "prompt", Shown: []string{first[0].Short(12)}, ReplyAs: agents.AsContext, Now: now.Add(time.Second)}
	h := calls(t, bob, shows)
	if len(h.received) != 1 {
		t.Errorf("received: %v", h.received)
	}
	handed(t, h, false, more...).Release(ctx)
	if h := handed(t, push(), false, more...); h.IsFull {
		t.Error("one was received, and it is still full")
	}
}

// Mail that is pushed in several pieces at once is one turn of the model's, though each has a prompt: nothing is added to
// one of them, and both messages have that one.
func TestPromptsThatComeTogether(t *testing.T) {
	t.Parallel()
	bob := team(t)
	mail(t, bob, "one more")
	for _, id := range []string{"p1", "p2"} {
		prompt := fmt.Sprintf(`{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt_id":%q,"prompt":"A session sent:\n[atm 68d64e from lead, now]\n  note"}`, id)
		if out, _ := call1(t, Claude, bob, prompt, time.Now()); out != "" {
			t.Errorf("%s: %s", id, out)
		}
	}
	call1(t, Claude, bob, `{"session_id":"s1","hook_event_name":"Stop","prompt_id":"p2","stop_hook_active":true,"last_assistant_message":"both"}`, time.Now())
	turns := history.Full(events(t, bob), 0)
	if len(turns) != 1 || turns[0].ID != "p2" || turns[0].Status != reducer.Completed || turns[0].Response != "both" {
		t.Errorf("%+v", turns)
	}
}
