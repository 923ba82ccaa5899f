package maildir

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// handOver makes a call of a session's hook that can carry mail, at a given time.
func handOver(t testing.TB, b *Box, session, name string, now time.Time) *Handover {
	t.Helper()
	return calls(t, b, HookCall{Session: session, Name: name, ProvesReceipt: true, CanCarryMail: true, Now: now})
}

func calls(t testing.TB, b *Box, call HookCall) *Handover {
	t.Helper()
	h, err := b.HandOver(ctx, call, ReadOptions{Limit: 20})
	must(t, err)
	return h
}

// sent records that the answer was written.
func sent(t testing.TB, h *Handover) *Handover {
	t.Helper()
	announced, err := h.Sent(ctx)
	if err != nil || len(announced) != len(h.Items) {
		t.Fatal(announced, err)
	}
	return h
}

func handed(t testing.TB, h *Handover, repeat bool, ids ...wire.ID) *Handover {
	t.Helper()
	equal(t, "handed over", idsOf(h.Items), ids...)
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
	bob := newBob(t)
	now := time.Now()
	list := append(deliverN(t, bob, 2), deliver(t, bob, withAck(message("with ack")))...)
	sent(t, handed(t, handOver(t, bob, "s1", "prompt 1", now), false, list...))
	if c := takeCensus(t, bob); c.place(list[0]) != "new" {
		t.Error("moved before anything showed that it was received")
	}
	for _, ids := range [][]wire.ID{nil, list} {
		if b, err := bob.Peek(ctx, ReadOptions{IDs: ids}); err != nil || len(b.Items) != 3 {
			t.Error(b, err)
		}
	}
	var file []struct {
		IDs     []wire.ID `json:"ids"`
		At      time.Time `json:"at"`
		Owner   string    `json:"owner"`
		Times   int       `json:"times"`
		Offered bool      `json:"offered"`
	}
	data, _ := os.ReadFile(bob.store.root.Join("bob/run/claims.json"))
	if err := json.Unmarshal(data, &file); err != nil || len(file) != 3 || !slices.Equal(file[0].IDs, list[:1]) || !file[0].At.Equal(now) || file[0].Owner != "session:s1" || file[0].Times != 1 || !file[0].Offered {
		t.Errorf("%s: %v", data, err)
	}
	// Calls of another session, the same call again and the session's end prove nothing.
	for _, call := range []HookCall{
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
	takeCensus(t, bob).is(t, map[wire.ID]string{list[0]: "done", list[1]: "done", list[2]: "cur"})
	if _, err := os.Stat(bob.store.root.Join("bob/run/claims.json")); !os.IsNotExist(err) {
		t.Error("a claim of nothing is left: ", err)
	}
}

// A hook that is installed twice hands each message over once, and its second call proves nothing.
func TestSameCallTwice(t *testing.T) {
	t.Parallel()
	for _, loose := range []bool{false, true} {
		bob := newBob(t)
		list := deliverN(t, bob, 1)
		call := HookCall{Session: "s1", Name: "stop", IsAmbiguous: loose, ProvesReceipt: true, CanCarryMail: true, Now: time.Now()}
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
	ends := func(call HookCall) func(*testing.T, *Box, string, time.Time) time.Time {
		return func(t *testing.T, bob *Box, session string, now time.Time) time.Time {
			call.Session, call.Name, call.Now = session, "end", now
			if h := calls(t, bob, call); len(h.Received) > 0 {
				t.Error("that shows nothing")
			}
			return now.Add(time.Second)
		}
	}
	for about, lapse := range map[string]func(*testing.T, *Box, string, time.Time) time.Time{
		"the session's end": ends(HookCall{EndsSession: true}),
		"it begins anew":    ends(HookCall{IsNewProgram: true}),
		"ten minutes": func(t *testing.T, bob *Box, session string, now time.Time) time.Time {
			handed(t, handOver(t, bob, "other", "look", now.Add(9*time.Minute)), false)
			return now.Add(11 * time.Minute)
		},
	} {
		t.Run(about, func(t *testing.T) {
			bob := newBob(t)
			list := deliverN(t, bob, 1)
			now := time.Now().Add(-time.Hour)
			sent(t, handed(t, handOver(t, bob, "s1", "1", now), false, list...))
			now = lapse(t, bob, "s1", now)
			list = append(list, deliverN(t, bob, 1)...)
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
			equal(t, "read", read(t, bob), list...) // nothing is lost
			if h = handed(t, handOver(t, bob, "s5", "5", now), false); h.GivenUp != 0 {
				t.Error(h.GivenUp)
			}
		})
	}
}

// What is pushed may wait in the program behind other calls: it counts as received once a call shows it.
func TestPushed(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	list := deliverN(t, bob, 2)
	now := time.Now().Add(-time.Hour)
	push := HookCall{Session: "s1", Name: "push", CanCarryMail: true, IsPush: true, Now: now}
	sent(t, handed(t, calls(t, bob, push), false, list...))
	if h := handOver(t, bob, "s1", "tool", now.Add(time.Second)); len(h.Items)+len(h.Received) != 0 {
		t.Errorf("a call that does not show them: %d again, %d received", len(h.Items), len(h.Received))
	}
	if h := handOver(t, bob, "s2", "other", now.Add(2*time.Second)); len(h.Items) != 0 {
		t.Errorf("another session got %d", len(h.Items))
	}
	shows := HookCall{Session: "s1", Name: "prompt", Shown: []string{"000000", list[0].Short(12)}, Now: now.Add(3 * time.Second)}
	if h := calls(t, bob, shows); len(h.Received) != 1 || h.Received[0].MessageID() != list[0] {
		t.Errorf("received: %v", h.Received)
	}
	// Its program was killed.
	after := HookCall{Session: "s2", Name: "next", CanCarryMail: true, Now: now.Add(4 * time.Second), IsGone: func(session string) bool { return session == "s1" }}
	sent(t, handed(t, calls(t, bob, after), true, list[1]))
}

// No more is pushed into a session than it takes at a time: its hooks hand over the others.
func TestPushedTooMany(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	now := time.Now().Add(-time.Hour)
	push := func() *Handover {
		now = now.Add(time.Second)
		return calls(t, bob, HookCall{Session: "s1", Name: now.String(), CanCarryMail: true, IsPush: true, Now: now})
	}
	first := deliverN(t, bob, maxPushed)
	for h := push(); len(h.Items) > 0; h = push() { // a page at a time
		sent(t, h)
	}
	more := deliverN(t, bob, 1)
	if h := push(); len(h.Items) != 0 || !h.IsFull {
		t.Errorf("%d messages more, full: %v", len(h.Items), h.IsFull)
	}
	shows := HookCall{Session: "s1", Name: "prompt", Shown: []string{first[0].Short(12)}, CanCarryMail: true, Now: now.Add(time.Second)}
	h := calls(t, bob, shows)
	if len(h.Received) != 1 {
		t.Errorf("received: %v", h.Received)
	}
	handed(t, h, false, more...).NotSent(ctx)
	if h := handed(t, push(), false, more...); h.IsFull {
		t.Error("one was received, and it is still full")
	}
}

// If the claims file is damaged or cannot be read there are no claims: messages are shown once more, doctor reports the
// file, and claiming goes on.
func TestBrokenClaims(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", "[", "{}", `"x"`, `[1]`, `[{"ids":"x"}]`, `[{"ids":["../../x"],"owner":"runner:x"}]`, strings.Repeat("[", 1<<16),
		`[{"ids":["ID"],"owner":"lease:carol","at":"2126-01-01T00:00:00Z","until":"2127-01-01T00:00:00Z"}]`,
		`[{"ids":["ID"],"owner":"lease:carol","at":"2026-01-01T00:00:00Z","until":"2127-01-01T00:00:00Z"}]`,
		`[{"ids":["ID"],"owner":"session:x","at":"2026-01-01T00:00:00Z","until":"2026-01-01T00:01:00Z"}]`,
		"not readable", "run is a file",
	} {
		var unreadable bool
		bob := openStore(t, scratch(t), func(op, name string) error {
			if unreadable && op == "open" && name == "bob/run/claims.json" {
				return syscall.EACCES
			}
			return nil
		}, "bob").Box("bob")
		list := deliverN(t, bob, 2)
		path := bob.store.root.Join("bob/run/claims.json")
		switch text {
		case "run is a file":
			write(t, bob.store.root.Join("bob/run"), "x")
		default:
			write(t, path, strings.ReplaceAll(text, "ID", string(list[0])))
		}
		unreadable = text == "not readable"
		equal(t, fmt.Sprintf("%.40s: unread", text), unclaimed(bob), list...)
		if text == "{" || unreadable {
			if h, err := bob.Examine(false); err != nil || h.BadClaims == nil {
				t.Errorf("%s: the doctor is not told: %v", text, err)
			}
		}
		if text != "run is a file" { // nothing can be claimed, but everything can be read
			handed(t, handOver(t, bob, "s1", "1", time.Now()), false, list...).NotSent(ctx)
		}
		equal(t, fmt.Sprintf("%.40s: read", text), read(t, bob), list...)
	}
}
