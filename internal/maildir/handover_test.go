package maildir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// handOver hands mail to a session, which has received what an earlier call gave it.
func handOver(t testing.TB, b *maildir.Box, session, call string, now time.Time) *claim.Claim {
	t.Helper()
	_, err := claim.Settle(ctx, b, false, readBy(session))
	must(t, err)
	h, err := claim.HandOver(ctx, b, holder.New(holder.Session, session, call, now), false, inbox.ReadOptions{Limit: 20})
	must(t, err)
	return h
}

// readBy says for claim.Settle that a session has received what was sent to it.
func readBy(session string) func(claim.Given) delivery.Effect {
	return func(g claim.Given) delivery.Effect {
		if g.To.IsShown() && g.To.IsSession(session) {
			return delivery.MarkRead
		}
		return delivery.Nothing
	}
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
	given := claim.AllGiven(bob)
	if len(given) != 3 || given[0] != (claim.Given{ID: list[0], To: holder.New(holder.Session, "s1", "1", now).Shown(now)}) {
		t.Fatal(given)
	}
	_, err := claim.Settle(ctx, bob, false, func(g claim.Given) delivery.Effect {
		if g.ID == list[0] {
			return delivery.Repeat
		}
		return delivery.Nothing
	})
	must(t, err)
	again := handed(t, handOver(t, bob, "s2", "2", now.Add(2*time.Second)), true, list[0])
	events, err := claim.Settle(ctx, bob, false, readBy("s1")) // the first has changed hands
	if err != nil || len(events) != 2 || events[0].Kind != wire.EventRead || events[0].Session != "s1" || events[0].Source != "hook" ||
		events[0].Field("batch") == "" || events[0].Field("batch") != events[1].Field("batch") {
		t.Error(events, err)
	}
	takeCensus(t, bob).is(t, map[wire.ID]string{list[0]: "new", list[1]: "done", list[2]: "cur"})
	must(t, again.Release(ctx)) // as it was before
	handed(t, handOver(t, bob, "s3", "1", now.Add(3*time.Second)), true, list[0])
	must(t, again.Expire(ctx)) // not its own any more
	if g := claim.AllGiven(bob); len(g) != 1 || g[0].To.Session() != "s3" || !g[0].IsLive(now) {
		t.Error(g)
	}
}

// A program may show a message before it is recorded that it was sent. It counts as read whichever comes first.
func TestSettleMeanwhile(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	list := deliverN(t, bob, 2)
	h := handed(t, handOver(t, bob, "s1", "push", time.Now()), false, list...)
	isSent := false
	events, err := claim.Settle(ctx, bob, false, func(claim.Given) delivery.Effect {
		if !isSent {
			sent(t, h)
			isSent = true
		}
		return delivery.MarkRead
	})
	if must(t, err); len(events) != 2 {
		t.Errorf("%d of 2 are read: %v", len(events), claim.AllGiven(bob))
	}
}

// The name of a holder's directory says all of it, whatever a program calls its sessions.
func TestHolderName(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, h := range []holder.Holder{
		holder.New(holder.Runner, "0190", "", now), holder.New(holder.Session, "a:b,c/d", "prompt 1", now).Shown(now),
		holder.New(holder.Push, "s", "push", now).Ended(), holder.New(holder.Lease, "carol@other", "", now).Shown(now.Add(time.Hour)),
		holder.New(holder.Lease, "", "", now).Ended(), holder.New(holder.Session, strings.Repeat("\u65e5", 200), strings.Repeat("../", 200), now),
	} {
		name := h.Name()
		if again := holder.Parse(name); again != h || len(name) > 255 || strings.ContainsAny(name, "/\\:") || name[0] == '.' {
			t.Errorf("%v is %s, read as %v", h, name, again)
		}
	}
	one, other := strings.Repeat("x", 300)+"1", strings.Repeat("x", 300)+"2"
	if h := holder.New(holder.Session, one, "", now); !h.IsSession(one) || h.IsSession(other) {
		t.Errorf("a long id is not its own: %v", h)
	}
	for _, name := range []string{"x", "lease", "lease,x,,,,", "lease,1,20260101T000000.000,,,%zz", "runner,1,20260101T000000.000,,,a,b"} {
		if h := holder.Parse(name); h != (holder.Holder{Times: 1, Who: name}) || h.Name() != name || h.IsLive(now, true) {
			t.Errorf("%s is %v", name, h)
		}
	}
}

// What lies in a directory that is no holder's, or is a file, or from another time, hides no message.
func TestOddHolders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"x", "lease,1,21260101T000000.000,21270101T000000.000,,carol", "lease,1,20260101T000000.000,21270101T000000.000,,carol",
		"session,1,20260101T000000.000,20260101T000100.000,,x", "runner,1,20260101T000000.000,,,x", "a file", "held is a file",
	} {
		bob := newBob(t)
		list := deliverN(t, bob, 2)
		held := filepath.Join(bob.Path(), "inbox/held")
		switch name {
		case "held is a file":
			write(t, held, "x")
		case "a file":
			write(t, filepath.Join(held, name), "x")
		default:
			must(t, os.MkdirAll(filepath.Join(held, name), 0o700))
			must(t, os.Rename(filepath.Join(bob.Path(), "inbox/new", string(list[0])+".json"), filepath.Join(held, name, string(list[0])+".json")))
		}
		equal(t, name+": unread", unclaimed(bob), list...)
		if name != "held is a file" { // nothing can be handed out, but everything can be read
			h := handOver(t, bob, "s1", "1", time.Now())
			equal(t, name+": handed over", idsOf(h.Items), list...)
			must(t, h.Release(ctx))
		}
		equal(t, name+": read", read(t, bob), list...)
	}
}
