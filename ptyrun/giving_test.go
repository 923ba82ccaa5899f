package ptyrun

import (
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// A pretendedWay takes texts back, or not.
type pretendedWay struct{ back delivery.Event }

func (pretendedWay) gate(time.Time) control.Gate                           { return control.GateOpen }
func (pretendedWay) put(*giving)                                           {}
func (pretendedWay) has(*giving, time.Time) (e delivery.Event, why string) { return "", "" }
func (w pretendedWay) takeBack(*giving) delivery.Event                     { return w.back }

// What each end of a delivery means for its message, by whichever way it went.
func TestEnds(t *testing.T) {
	h := startFake(t, testagent.Options{}, nil)
	r := h.r
	r.poll(time.Minute, func() bool { return r.gate(r.now()) == control.GateOpen })
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
		r.call(func() { r.mail.giving = &giving{state: delivery.Unread} }) // so that nothing else is given
		id := wire.NewID()
		m := &wire.Message{ID: id, From: wire.Address{Agent: "alice", Team: "main"}, Body: "hello", SentAt: time.Now().UTC()}
		post := &maildir.Post{Message: m, To: []*maildir.Box{r.Box}}
		maildir.Deliver(t.Context(), post)
		must(t, post.Outcomes[0].Err)
		r.poll(time.Minute, func() bool { return r.queue.MayHandOver(id, r.now()) })
		claim, err := r.Hold.Claim(t.Context(), []wire.ID{id})
		must(t, err)
		r.call(func() {
			r.mail.unqueue(id)
			r.mail.giving = &giving{state: c.in, way: pretendedWay{c.back}, claim: claim, ids: []wire.ID{id}}
			r.happened(c.event, "of the test")
			if isQueued := slices.Contains(r.mail.queue, id); r.mail.giving != nil || isQueued != c.isQueued || r.mail.tries[id] != c.tries {
				t.Errorf("%s, %s, %s: queued %v, tries %d", c.in, c.event, c.back, isQueued, r.mail.tries[id])
			}
			r.mail.giving = &giving{state: delivery.Unread}
			r.mail.unqueue(id)
		})
		r.claims.wait()
		again, err := r.Hold.Claim(t.Context(), []wire.ID{id})
		must(t, err)
		if isRead := len(again.Items) == 0; isRead != c.isRead || again.Repeat[id] != c.isRepeat {
			t.Errorf("%s, %s, %s: read %v, a repeat %v", c.in, c.event, c.back, isRead, again.Repeat[id])
		}
		must(t, again.Release(t.Context()))
	}
}
