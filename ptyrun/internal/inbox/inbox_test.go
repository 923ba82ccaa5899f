package inbox

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/queue"
	"github.com/agentteammail/atm/internal/testframe"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/wire"
)

// newPretended returns the mail of bob, whose program is pretended, and alice's mailbox.
func newPretended(t *testing.T) (in *Inbox, alice *maildir.Box) {
	dir, err := durable.Open(t.TempDir())
	must(t, err)
	store := maildir.NewStore(dir, "main")
	t.Cleanup(func() { store.Close() })
	must(t, errors.Join(dir.Mkdir(".locks"), store.Create(t.Context(), "alice"), store.Create(t.Context(), "bob")))
	hold, err := claim.HoldRunner(t.Context(), store, "bob")
	must(t, err)
	t.Cleanup(func() { hold.Release() })
	r := &run.Run{
		Loop: loop.New(t.Context(), slog.New(slog.DiscardHandler), time.Now), Box: store.Box("bob"), Timing: &run.StandardTiming,
		Agent: pretendedAgent{}, Notify: func(string) {},
	}
	in = New(r, hold, Options{Inject: Body, Dropped: func() {}})
	r.Fold = in.Fold
	return in, store.Box("alice")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A pretendedAgent is one that is told nothing.
type pretendedAgent struct{ run.Agent }

func (pretendedAgent) State() run.AgentState { return run.AgentState{} }

// A pretendedWay takes texts back, or not.
type pretendedWay struct{ back delivery.Event }

func (pretendedWay) Gate(time.Time) control.Gate { return control.GateOpen }
func (pretendedWay) Put(*run.Text, func(error)) (e delivery.Event, why string) {
	return delivery.In, ""
}
func (pretendedWay) Has(*run.Text, time.Time) (e delivery.Event, why string) { return "", "" }
func (w pretendedWay) TakeBack(*run.Text) delivery.Event                     { return w.back }

// What each end of a delivery means for its message, by whichever way it went.
func TestEnds(t *testing.T) {
	in, _ := newPretended(t)
	for _, c := range []struct {
		in                         delivery.State
		event, back                delivery.Event
		isRead, isRepeat, isQueued bool
		tries                      int
	}{
		{in: delivery.Claimed, event: delivery.Moot, isQueued: true},
		{in: delivery.Put, event: delivery.Moot, back: delivery.Gone, isQueued: true},
		{in: delivery.Put, event: delivery.Moot, back: delivery.Kept, isQueued: true, isRepeat: true},
		{in: delivery.Put, event: delivery.NotIn, back: delivery.Gone, isQueued: true},
		{in: delivery.Put, event: delivery.Silent, back: delivery.Gone, isQueued: true, tries: 1},
		{in: delivery.Put, event: delivery.Silent, back: delivery.Kept, isQueued: true, isRepeat: true, tries: 1},
		{in: delivery.Put, event: delivery.Ended, isQueued: true, isRepeat: true, tries: 1},
		{in: delivery.Sent, event: delivery.NotIn, back: delivery.Gone, isQueued: true, isRepeat: true},
		{in: delivery.Sent, event: delivery.Silent, back: delivery.Kept, isQueued: true, isRepeat: true, tries: 1},
		{in: delivery.Sent, event: delivery.Ended, isQueued: true, isRepeat: true, tries: 1},
		{in: delivery.Sent, event: delivery.Receipt, isRead: true},
	} {
		id := wire.NewID()
		m := &wire.Message{ID: id, From: wire.Address{Agent: "alice", Team: "main"}, Body: "hello", SentAt: time.Now().UTC()}
		post := &maildir.Post{Message: m, To: []*maildir.Box{in.Box}}
		maildir.Deliver(t.Context(), post)
		must(t, post.Outcomes[0].Err)
		it, err := in.Box.Get(id)
		must(t, err)
		in.Arrived(it, in.Now())
		claim, err := in.hold.Claim(t.Context(), []wire.ID{id})
		must(t, err)
		in.unqueue(id)
		in.giving = &giving{Text: run.Text{State: c.in, IDs: []wire.ID{id}}, way: pretendedWay{c.back}, claim: claim}
		in.Happened(c.event, "of the test")
		if isQueued := slices.Contains(in.next, id); in.giving != nil || isQueued != c.isQueued || in.tries[id] != c.tries {
			t.Errorf("%s, %s, %s: queued %v, tries %d", c.in, c.event, c.back, isQueued, in.tries[id])
		}
		in.unqueue(id)

		in.claims.Wait()
		again, err := in.hold.Claim(t.Context(), []wire.ID{id})
		must(t, err)
		if isRead := len(again.Items) == 0; isRead != c.isRead || again.Repeat[id] != c.isRepeat {
			t.Errorf("%s, %s, %s: read %v, a repeat %v", c.in, c.event, c.back, isRead, again.Repeat[id])
		}
		must(t, again.Release(t.Context()))
	}
}

// A text that is given beside the loop when the program ends has failed.
func TestEndWhileGiven(t *testing.T) {
	in, _ := newPretended(t)
	in.Agent = nil
	p := &Prompt{done: make(chan error, 1)}
	in.giving = &giving{Text: run.Text{State: delivery.Put}, way: pretendedWay{}, prompt: p}
	in.Abandon("the program has ended")
	if err := <-p.done; err == nil {
		t.Error("it counts as given")
	}
}

// Mail for which the queue had no room reaches it when there is room.
func TestMoreMailThanIsHeld(t *testing.T) {
	t.Parallel()
	in, alice := newPretended(t)
	var ids []wire.ID
	var posts []*maildir.Post
	for range queue.Max + 3 {
		m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, To: []wire.Address{in.Box.Address()}, Body: "x", SentAt: time.Now().UTC()}
		ids = append(ids, m.ID)
		posts = append(posts, &maildir.Post{Message: m, Sender: alice, To: []*maildir.Box{in.Box}})
	}
	maildir.Deliver(t.Context(), posts...)

	now := time.Now()
	for _, id := range ids {
		it, err := in.Box.Get(id)
		must(t, err)
		in.Arrived(it, now)
	}
	if !in.hasMoreMail || in.queue.HasRoom() {
		t.Fatal("there is room")
	}
	for _, id := range ids[:100] {
		must(t, in.Box.MarkRead(t.Context(), id))
		in.queue.Remove(id)
	}
	in.readMoreMail()
	for in.isReadingMail {
		(<-in.Calls())()
	}
	for i := range 97 { // the messages that had no room were typed
		if !in.queue.HasRoom() {
			t.Fatalf("after %d", i)
		}
		it := &wire.Item{Message: &wire.Message{ID: wire.NewID()}, State: wire.Unread}
		it.ID = it.Message.ID
		in.Arrived(it, now)
	}
	if in.queue.HasRoom() {
		t.Error("they were not told of")
	}
}

// frames matches what begins and ends typed mail.
var frames = regexp.MustCompile(`\[/?atm\b[^\]]*\]`)

// Whatever senders write, a model that knows only the rule finds the messages that were typed, and where they end, also
// where a program gets all of it as one line.
func TestFrames(t *testing.T) {
	opencode, _ := driver.Named("opencode") // which acts on nothing in a text
	testround.Check(t, 100, func(t *rapid.T) {
		hostile := testframe.Hostile()
		var items []*wire.Item
		for i := range rapid.IntRange(1, 3).Draw(t, "messages") {
			items = append(items, &wire.Item{Message: &wire.Message{
				ID: wire.ID(fmt.Sprintf("01900000-0000-7000-8000-0000000000a%d", i)), From: wire.Address{Agent: "mallory", Team: "main"}, SentAt: time.Now(),
				Subject: hostile.Draw(t, "subject"), Type: hostile.Draw(t, "type"), Body: hostile.Draw(t, "body"),
			}})
		}
		l := &letter.Renderer{Now: time.Now(), Team: "main", Digits: letter.ShortLength(idsOf(items))}
		text := letter.Typable((&Inbox{}).letterText(items, nil, l, opencode))
		got, ours := testframe.Parse(text, false)
		if len(got) != len(items) || len(ours) != 1 || ours[0] != letter.End || !strings.HasSuffix(text, "\n"+letter.End) {
			t.Fatalf("%d messages are %d, with %q: %q", len(items), len(got), ours, text)
		}
		for i, it := range items {
			want := strings.TrimRight(letter.EscapeMail(l.Text(it.Message)), "\n")
			if found := strings.TrimRight(strings.Join(got[i].Text, "\n"), "\n"); found != want || got[i].ID != l.Short(it.ID) {
				t.Fatalf("%s %q was sent as %q", got[i].ID, found, want)
			} else if testframe.Vendors.MatchString(found) {
				t.Fatalf("%q comes through in %q", testframe.Vendors.FindString(found), found)
			}
		}
		line := strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")) // as a program without bracketed paste gets it
		all := frames.FindAllString(line, -1)
		if len(all) != len(items)+1 || all[len(items)] != letter.End || strings.Contains(line, "\n") {
			t.Fatalf("in one line: %q of %q", all, line)
		}
	})
}
