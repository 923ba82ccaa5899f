//go:build unix

package mailbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// notes are the names in dated.
func notes(t tb, b *Box) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(b.Path(), "inbox", "dated"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func dated(due, expires time.Time) *wire.Message {
	m := sealed(wire.NewID(), "a body", false)
	m.DueAt, m.ExpiresAt = due, expires
	return m
}

func TestNotesOfTimes(t *testing.T) {
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	now := time.Now().Truncate(time.Millisecond).UTC()
	deliver(t, bob, sealed(wire.NewID(), "no time", false))
	if got := notes(t, bob); got != nil {
		t.Fatal(got)
	}
	m := dated(now.Add(time.Minute), time.Time{})
	early := dated(now.Add(-time.Hour), time.Time{})
	for range 2 { // the same delivered again is the same
		deliver(t, bob, m)
		deliver(t, bob, early)
	}
	over := func(at time.Time, want ...Due) {
		t.Helper()
		got, err := bob.Overdue(at)
		if err != nil || len(got) != len(want) {
			t.Fatal(got, err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%+v, want %+v", got[i], want[i])
			}
		}
	}
	over(now, Due{early.ID, early.DueAt, NotTold})
	over(now.Add(time.Hour), Due{early.ID, early.DueAt, NotTold}, Due{m.ID, m.DueAt, NotTold})

	// Sent again it keeps the time that it was delivered with.
	again := *m
	again.DueAt = m.DueAt.Add(time.Second)
	p := &Post{Message: &again, To: []*Box{bob}, Given: true}
	if Deliver(ctx, p); p.Outcomes[0].Err != nil || !p.Outcomes[0].Known {
		t.Fatalf("%+v", p.Outcomes[0])
	}
	over(now.Add(time.Hour), Due{early.ID, early.DueAt, NotTold}, Due{m.ID, m.DueAt, NotTold})

	// Told in steps, by several at once; delivered again it stays told.
	for range 2 {
		if err := bob.Tell(Due{m.ID, m.DueAt, NotTold}, LeadTold); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, bob, m)
	over(now.Add(time.Hour), Due{early.ID, early.DueAt, NotTold}, Due{m.ID, m.DueAt, LeadTold})
	if err := bob.Tell(Due{m.ID, m.DueAt, LeadTold}, AgentTold); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := bob.Answered(m.ID, m.DueAt); err != nil {
			t.Fatal(err)
		}
	}
	over(now.Add(time.Hour), Due{early.ID, early.DueAt, NotTold})

	// A note without a message goes when that cannot be on its way any more.
	lost := Due{wire.NewID(), now.Add(-time.Hour), NotTold}
	path := filepath.Join(bob.Path(), "inbox", "dated", datedName(lost.At, lost.ID, string(NotTold)))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bob.ForgetNote(lost); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal("it went at once")
	}
	s.clock = func() time.Time { return time.Now().Add(2 * staleNote) }
	if err := bob.ForgetNote(lost); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("it is still there")
	}
	s.clock = nil

	// Odd names mean nothing, and a time that no clock shows is as far as names go.
	for _, n := range []string{"x", "000000000000001.x.due", ".000.tmp", "99." + string(m.ID) + ".due", strings.Repeat("9", 15) + "." + string(m.ID)} {
		if err := os.WriteFile(filepath.Join(bob.Path(), "inbox", "dated", n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	over(now, Due{early.ID, early.DueAt, NotTold})
	far := dated(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{})
	old := dated(time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{})
	deliver(t, bob, far)
	deliver(t, bob, old)
	if got, err := bob.Overdue(now); err != nil || len(got) != 2 || got[0].ID != old.ID {
		t.Fatal(got, err)
	}
	if err := bob.Answered(old.ID, old.DueAt); err != nil {
		t.Fatal(err)
	}
	over(now, Due{early.ID, early.DueAt, NotTold})
}

func TestExpiredIsCounted(t *testing.T) {
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	now := time.Now()
	fresh, gone, read := dated(time.Time{}, now.Add(time.Minute)), dated(time.Time{}, now.Add(-time.Minute)), dated(time.Time{}, now.Add(-time.Minute))
	for _, m := range []*wire.Message{fresh, gone, read} {
		deliver(t, bob, m)
	}
	count := func(unread, expired int) {
		t.Helper()
		if c, err := bob.Count(ctx); err != nil || c.Unread != unread || c.Expired != expired {
			t.Errorf("%+v, %v", c, err)
		}
	}
	count(3, 2)
	if ok, err := bob.Take(ctx, read.ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	count(2, 1)
	if n := len(notes(t, bob)); n != 2 {
		t.Error(notes(t, bob))
	}
	if ok, err := bob.Unread(ctx, read.ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	count(3, 2)
	if _, err := bob.Withdraw(ctx, read.ID, bob.Address()); err != nil {
		t.Fatal(err)
	}
	count(2, 1)
	s.clock = func() time.Time { return now.Add(2 * staleNote) }
	count(2, 2)
	if n := len(notes(t, bob)); n != 2 {
		t.Error("the note of what was withdrawn stays:", notes(t, bob))
	}
}

// A message whose note cannot be made is not delivered without it.
func TestNoteFails(t *testing.T) {
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	if err := os.WriteFile(filepath.Join(bob.Path(), "inbox", "dated"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Post{Message: dated(time.Now(), time.Time{}), To: []*Box{bob}}
	Deliver(ctx, p)
	if o := p.Outcomes[0]; o.Err == nil || o.Stored {
		t.Errorf("%+v", o)
	}
	if _, err := bob.Get(p.Message.ID); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// Who was killed after the message that replaces another was delivered notes it
// when they deliver it again; what lies there counts, not what is brought.
func TestSupersededAgain(t *testing.T) {
	for _, c := range []struct {
		name          string
		given, stored bool
		still         int
	}{
		{"made here", false, true, 0},
		{"given", true, true, 0},
		{"not what was delivered", true, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bob := openStore(t, scratch(t), nil, "bob").Box("bob")
			m := dated(time.Now().Add(-time.Minute), time.Time{})
			deliver(t, bob, m)
			better := dated(time.Time{}, time.Time{})
			if c.stored {
				better.Supersedes = m.ID
			}
			deliver(t, bob, better)
			r, err := bob.enter()
			if err == nil {
				err = r.note(m) // it was killed before this was gone
				r.close()
			}
			if err != nil {
				t.Fatal(err)
			}
			again := *better
			again.Supersedes = m.ID
			p := &Post{Message: &again, To: []*Box{bob}, Given: c.given}
			if Deliver(t.Context(), p); p.Outcomes[0].Err != nil || !p.Outcomes[0].Known {
				t.Fatalf("%+v", p.Outcomes[0])
			}
			if due, err := bob.Overdue(time.Now()); err != nil || len(due) != c.still {
				t.Error(due, err)
			}
		})
	}
}
