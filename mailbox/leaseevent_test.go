//go:build unix

package mailbox

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// leaseLog is what a log tells of leases, a word each.
func leaseLog(t tb, b *Box) (out []string) {
	t.Helper()
	for _, e := range eventsOf(t, b) {
		if wire.IsLeaseKind(e.Kind) || e.Kind == wire.EventAcked {
			said := strings.TrimPrefix(e.Kind, "message_") + " " + strings.TrimSuffix(e.Field("by"), "@main")
			if how := e.Field("how"); how != "" {
				said += ": " + how
			}
			out = append(out, said)
		}
	}
	return out
}

// What becomes of a message under a lease stands in the log, in order, once.
func TestLeaseEvents(t *testing.T) {
	now := time.Now()
	s := openStore(t, scratch(t), nil, "jobs")
	s.clock = func() time.Time { return now }
	jobs := s.Box("jobs")
	m := sealed(wire.NewID(), "work", false)
	deliver(t, jobs, m)
	hold := func(by wire.Name, show func(*Hold) (bool, error)) *Hold {
		t.Helper()
		h, err := jobs.Hold(ctx, HoldOptions{By: s.Box(by).Address(), For: time.Minute}, show)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	shown := func(taken bool) func(*Hold) (bool, error) { return func(*Hold) (bool, error) { return taken, nil } }
	hold("bob", shown(false)) // never had
	h := hold("bob", shown(true))
	if err := h.Renew(ctx, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := h.GiveBack(ctx, ""); err != nil {
		t.Fatal(err)
	}
	hold("carol", nil)
	now = now.Add(2 * time.Minute) // it runs out
	h = hold("dave", nil)
	if err := h.GiveBack(ctx, "exit status 3"); err != nil {
		t.Fatal(err)
	}
	hold("bob", nil)
	now = now.Add(2 * time.Minute)
	hold("bob", nil)
	now = now.Add(2 * time.Minute)
	for range 3 { // the fifth ran out: whoever looks sets it aside
		if _, err := jobs.Tidy(ctx); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"taken bob", "returned bob: given back", "taken carol", "returned carol: lease ran out", "taken dave", "returned dave: exit status 3",
		"taken bob", "returned bob: lease ran out", "taken bob", "returned bob: lease ran out", "aside bob",
	}
	if got := leaseLog(t, jobs); !slices.Equal(got, want) {
		t.Errorf("told\n%q, want\n%q", got, want)
	}
	if _, err := jobs.Unread(ctx, m.ID); err != nil {
		t.Fatal(err)
	}
	h = hold("carol", nil)
	if err := jobs.Finish(ctx, h.ID, h.by, h.Key, true); err != nil {
		t.Fatal(err)
	}
	if got := leaseLog(t, jobs)[len(want):]; !slices.Equal(got, []string{"taken carol", "acked carol"}) {
		t.Errorf("then %q", got)
	}
}

// A log that cannot be written keeps nobody from taking: the files are the truth.
func TestLeaseEventsAreEvidence(t *testing.T) {
	broken := false
	s := openStore(t, scratch(t), func(op atomicfile.Op, name string) error {
		if broken && strings.Contains(name, "events") {
			return errors.New("the log is broken")
		}
		return nil
	}, "jobs")
	jobs := s.Box("jobs")
	deliver(t, jobs, sealed(wire.NewID(), "work", false))
	broken = true
	h, err := jobs.Hold(ctx, HoldOptions{By: s.Box("bob").Address(), For: time.Minute}, nil)
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	if err := h.GiveBack(ctx, ""); err != nil {
		t.Fatal(err)
	}
	broken = false
	if got := leaseLog(t, jobs); len(got) != 0 {
		t.Error(got)
	}
}
