//go:build unix

package mailbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// killJobs is the inbox that the takers of a stress run work off.
const killJobs = wire.Name("jobs")

// takerLease is short, so that many run out.
const takerLease = 150 * time.Millisecond

// post delivers to the shared inbox, no faster than it is worked off.
func (p *process) post() {
	b := p.store.Box(killJobs)
	for r := random(); ; time.Sleep(time.Duration(r.IntN(15)) * time.Millisecond) {
		if _, n, err := b.UnreadIDs(1); err != nil || n > 50 {
			p.failed(b, err)
			continue
		}
		p.deliver(&Post{Message: sealed(wire.NewID(), text(r)[:10], r.IntN(2) == 0), To: []*Box{b}})
	}
}

// hold takes, works, renews, and finishes, gives back, or lets the lease run out.
// It says from when until when it surely held: from what stands in the lease to
// the moment before it ends it.
func (p *process) hold() {
	ctx := context.Background()
	b := p.store.Box(killJobs)
	by := wire.Address{Agent: wire.Name(fmt.Sprintf("w%d", os.Getpid())), Team: "main"}
	for r := random(); ; {
		var show func(*Hold) (bool, error)
		if r.IntN(2) == 0 {
			show = func(*Hold) (bool, error) {
				time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
				return r.IntN(5) > 0, nil
			}
		}
		h, err := b.Hold(ctx, HoldOptions{By: by, For: takerLease}, show)
		var leased *LeasedError
		switch {
		case errors.Is(err, ErrNotHeld), errors.As(err, &leased):
			p.say("late")
			continue
		case p.failed(b, err):
			continue
		case h == nil:
			time.Sleep(time.Millisecond)
			continue
		}
		from := h.Until.Add(-takerLease)
		lost := false
		for range r.IntN(4) {
			time.Sleep(time.Duration(r.IntN(70)) * time.Millisecond)
			if r.IntN(2) > 0 {
				continue
			}
			switch err := h.Renew(ctx, takerLease); {
			case errors.Is(err, ErrNotHeld), errors.As(err, &leased):
				lost = true
			default:
				p.failed(b, err)
			}
		}
		end := time.Now()
		if h.Until.Before(end) || lost {
			end = h.Until
		}
		p.say("held %s %s %d %d", b.agent, h.ID, from.UnixNano(), end.UnixNano())
		switch r.IntN(6) {
		case 0:
			err = h.GiveBack(ctx, "")
		case 1:
			continue // it runs out
		default:
			if err = b.Finish(ctx, h.ID, by, h.Key, true); err == nil {
				p.say("finished %s %s", b.agent, h.ID)
			}
		}
		if !errors.Is(err, ErrNotHeld) && !errors.As(err, &leased) {
			p.failed(b, err)
		}
	}
}

// Many take from one inbox and are killed at random moments: no message is in two
// hands at once, none is finished twice, none is lost.
func TestHoldKilled(t *testing.T) {
	duration := stressTime(t)
	path := scratch(t)
	s := openStore(t, path, nil, killJobs)
	said := killed(t, path, duration, map[string]int{"post": 1, "hold": 6})
	type span struct{ from, to int64 }
	spans := map[wire.ID][]span{}
	said.each("held", func(_ wire.Name, rest string, n int) {
		var id string
		var k span
		if _, err := fmt.Sscan(rest, &id, &k.from, &k.to); err != nil || n != 1 {
			t.Fatalf("%q, %d times: %v", rest, n, err)
		}
		spans[wire.ID(id)] = append(spans[wire.ID(id)], k)
	})
	both := 0
	for id, list := range spans {
		slices.SortFunc(list, func(a, b span) int { return int(a.from - b.from) })
		for i := range list[1:] {
			if over := list[i].to - list[i+1].from; over > 0 {
				t.Errorf("%s was in two hands for %s", id, time.Duration(over))
				both++
			}
		}
	}
	said.each("finished", func(_ wire.Name, id string, n int) {
		if n > 1 {
			t.Errorf("%s was finished %d times", id, n)
		}
	})
	census := takeCensus(t, path, killJobs)
	census.sound(t)
	lost, places := 0, map[string]int{}
	said.each("ack", func(_ wire.Name, id string, _ int) {
		at := census.place(wire.ID(id))
		if places[at]++; at == "" {
			t.Errorf("lost: %s", id)
			lost++
		}
		if at != placeDone && said.lines["finished "+string(killJobs)+" "+id] > 0 {
			t.Errorf("%s was finished, and is in %q", id, at)
		}
	})
	// The log is whole, and tells of each taking once.
	told := map[string]int{}
	for _, e := range eventsOf(t, s.Box(killJobs)) {
		if wire.IsLeaseKind(e.Kind) {
			if told[e.EventID]++; told[e.EventID] > 1 {
				t.Errorf("told twice: %s", e.EventID)
			}
		}
	}
	// Whoever comes last gets all that is left, when the leases have run out.
	box := s.Box(killJobs)
	s.clock = func() time.Time { return time.Now().Add(time.Hour) }
	by := wire.Address{Agent: "last", Team: "main"}
	left := 0
	for {
		h, err := box.Hold(context.Background(), HoldOptions{By: by, For: time.Minute}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		if err := box.Finish(context.Background(), h.ID, by, h.Key, true); err != nil {
			t.Fatal(err)
		}
		left++
	}
	c, err := box.Count(context.Background())
	if err != nil || c.Unread+c.Held != 0 {
		t.Error("left: ", c, err)
	}
	report := fmt.Sprintf("%s, %d processes killed: %d messages, %d takings, %d finished, %d set aside, %d left and then finished, %d shown too late; in two hands %d, lost %d",
		duration, said.count["killed"], said.count["ack"], said.count["held"], said.count["finished"], c.Aside, left, said.count["late"], both, lost)
	t.Log(report)
	if stressed {
		fmt.Println(report)
	}
}
