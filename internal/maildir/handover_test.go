package maildir

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// handOver hands mail to a session, which has received what an earlier call gave it.
func handOver(t testing.TB, b *Box, session, call string, now time.Time) *Claim {
	t.Helper()
	_, err := b.Settle(ctx, sentTo(b, OfSession(session), now), nil, now)
	must(t, err)
	h, err := b.HandOver(ctx, Recipient{Owner: OfSession(session), Call: call, Now: now}, ReadOptions{Limit: 20})
	must(t, err)
	return h
}

// sentTo lists what was sent to a recipient.
func sentTo(b *Box, to Owner, now time.Time) (given []Given) {
	for _, g := range b.Given(now) {
		if g.IsSent && g.To.Owner == to {
			given = append(given, g)
		}
	}
	return given
}

// sent records that the answer was written.
func sent(t testing.TB, h *Claim) *Claim {
	t.Helper()
	announced, err := h.Sent(ctx)
	if err != nil || len(announced) != len(h.Items) {
		t.Fatal(announced, err)
	}
	return h
}

func handed(t testing.TB, h *Claim, repeat bool, ids ...wire.ID) *Claim {
	t.Helper()
	equal(t, "handed over", idsOf(h.Items), ids...)
	for _, id := range ids {
		if h.Repeat[id] != repeat {
			t.Errorf("%s may be a repeat: %v", id, h.Repeat[id])
		}
	}
	return h
}

// What was handed over stays unread until it is settled. Other sessions do not get it, and a reader does. What may be lost
// is handed over once more, marked.
func TestHandOver(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	now := time.Now().Add(-time.Minute)
	list := append(deliverN(t, bob, 2), deliver(t, bob, withAck(message("with ack")))...)
	sent(t, handed(t, handOver(t, bob, "s1", "1", now), false, list...))
	handed(t, handOver(t, bob, "s2", "1", now), false)
	equal(t, "shown to a reader", unclaimed(bob), list...)
	given := bob.Given(now)
	if len(given) != 3 || given[0] != (Given{list[0], Recipient{Owner: OfSession("s1"), Call: "1", Now: inClaim(now)}, true, true}) {
		t.Fatal(given)
	}
	_, err := bob.Settle(ctx, nil, given[:1], now.Add(time.Second))
	must(t, err)
	again := handed(t, handOver(t, bob, "s2", "2", now.Add(2*time.Second)), true, list[0])
	events, err := bob.Settle(ctx, given, nil, now) // of the first, what was given then is out of date
	if err != nil || len(events) != 2 || events[0].Kind != wire.EventRead || events[0].Session != "s1" || events[0].Source != "hook" ||
		events[0].Field("batch") == "" || events[0].Field("batch") != events[1].Field("batch") {
		t.Error(events, err)
	}
	takeCensus(t, bob).is(t, map[wire.ID]string{list[0]: "new", list[1]: "done", list[2]: "cur"})
	must(t, again.Release(ctx)) // as it was before
	handed(t, handOver(t, bob, "s3", "1", now.Add(3*time.Second)), true, list[0])
	must(t, again.Expire(ctx)) // not its own any more
	if g := bob.Given(now.Add(3 * time.Second)); len(g) != 1 || g[0].To.Session() != "s3" || !g[0].IsLive {
		t.Error(g)
	}
}

// The form of an owner in the file stays.
func TestOwnerInFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Owner{
		"runner:0190": {ofRunner, "0190"}, "session:a:b": OfSession("a:b"), "push:s": PushedTo("s"), "lease:carol@other": {ofLease, "carol@other"}, "lease:": {kind: ofLease},
	} {
		var o Owner
		must(t, o.UnmarshalText([]byte(text)))
		if again, _ := o.MarshalText(); o != want || string(again) != text {
			t.Errorf("%s is %v, written as %s", text, o, again)
		}
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
			handed(t, handOver(t, bob, "s1", "1", time.Now()), false, list...).Release(ctx)
		}
		equal(t, fmt.Sprintf("%.40s: read", text), read(t, bob), list...)
	}
}
