package maildir_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/wire"
)

// handOver hands mail to a session, which has received what an earlier call gave it.
func handOver(t testing.TB, b *maildir.Box, session, call string, now time.Time) *claim.Claim {
	t.Helper()
	_, err := claim.Settle(ctx, b, sentTo(b, claimfile.OfSession(session), now), nil, now)
	must(t, err)
	h, err := claim.HandOver(ctx, b, claim.Recipient{Owner: claimfile.OfSession(session), Call: call, Now: now}, inbox.ReadOptions{Limit: 20})
	must(t, err)
	return h
}

// sentTo lists what was sent to a recipient.
func sentTo(b *maildir.Box, to claimfile.Owner, now time.Time) (given []claim.Given) {
	for _, g := range claim.AllGiven(b, now) {
		if g.IsSent && g.To.Owner == to {
			given = append(given, g)
		}
	}
	return given
}

// sent records that the answer was written.
func sent(t testing.TB, h *claim.Claim) *claim.Claim {
	t.Helper()
	announced, err := h.Sent(ctx)
	if err != nil || len(announced) != len(h.Items) {
		t.Fatal(announced, err)
	}
	return h
}

func handed(t testing.TB, h *claim.Claim, repeat bool, ids ...wire.ID) *claim.Claim {
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
	given := claim.AllGiven(bob, now)
	if len(given) != 3 || given[0] != (claim.Given{ID: list[0], To: claim.Recipient{Owner: claimfile.OfSession("s1"), Call: "1", Now: claimfile.Moment(now)}, IsSent: true, IsLive: true}) {
		t.Fatal(given)
	}
	_, err := claim.Settle(ctx, bob, nil, given[:1], now.Add(time.Second))
	must(t, err)
	again := handed(t, handOver(t, bob, "s2", "2", now.Add(2*time.Second)), true, list[0])
	events, err := claim.Settle(ctx, bob, given, nil, now) // of the first, what was given then is out of date
	if err != nil || len(events) != 2 || events[0].Kind != wire.EventRead || events[0].Session != "s1" || events[0].Source != "hook" ||
		events[0].Field("batch") == "" || events[0].Field("batch") != events[1].Field("batch") {
		t.Error(events, err)
	}
	takeCensus(t, bob).is(t, map[wire.ID]string{list[0]: "new", list[1]: "done", list[2]: "cur"})
	must(t, again.Release(ctx)) // as it was before
	handed(t, handOver(t, bob, "s3", "1", now.Add(3*time.Second)), true, list[0])
	must(t, again.Expire(ctx)) // not its own any more
	if g := claim.AllGiven(bob, now.Add(3*time.Second)); len(g) != 1 || g[0].To.Session() != "s3" || !g[0].IsLive {
		t.Error(g)
	}
}

// The form of an owner in the file stays.
func TestOwnerInFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]claimfile.Owner{
		"runner:0190": {Kind: claimfile.Runner, ID: "0190"}, "session:a:b": claimfile.OfSession("a:b"), "push:s": claimfile.PushedTo("s"), "lease:carol@other": {Kind: claimfile.Lease, ID: "carol@other"}, "lease:": {Kind: claimfile.Lease},
	} {
		var o claimfile.Owner
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
		path := bob.Store().Dir().Join("bob/run/claims.json")
		switch text {
		case "run is a file":
			write(t, bob.Store().Dir().Join("bob/run"), "x")
		default:
			write(t, path, strings.ReplaceAll(text, "ID", string(list[0])))
		}
		unreadable = text == "not readable"
		equal(t, fmt.Sprintf("%.40s: unread", text), unclaimed(bob), list...)
		if text == "{" || unreadable {
			if h, err := keep.Examine(bob, false); err != nil || h.Errs["claims.bad"] == nil {
				t.Errorf("%s: the doctor is not told: %v", text, err)
			}
		}
		if text != "run is a file" { // nothing can be claimed, but everything can be read
			handed(t, handOver(t, bob, "s1", "1", time.Now()), false, list...).Release(ctx)
		}
		equal(t, fmt.Sprintf("%.40s: read", text), read(t, bob), list...)
	}
}
