package reducer

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// TestRoom: of more mail than is kept the urgent and the due stay, and the rest
// may be told again.
func TestRoom(t *testing.T) {
	var s State
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	tell := func(m Mail) []Effect { return s.Apply(Input{Now: now, Arrived: &m}) }
	held := func(id wire.ID) bool { return s.mail.find(id) != nil }
	tell(Mail{}) // nothing
	for i := range MaxMail {
		if !s.HasRoom() {
			t.Fatal(i)
		}
		tell(Mail{ID: wire.ID(fmt.Sprint("m", i))})
	}
	if s.HasRoom() || len(s.mail.letters) != MaxMail {
		t.Fatal(len(s.mail.letters))
	}
	tell(Mail{ID: "late"})
	tell(Mail{ID: "urgent", Urgent: true})
	tell(Mail{ID: "due", Due: now.Add(time.Hour)})
	if held("late") || !held("urgent") || !held("due") || held("m1023") || held("m1022") || !held("m1021") || len(s.mail.letters) != MaxMail {
		t.Error("the wrong ones are held")
	}
	s.Apply(Input{Now: now, Taken: "m0"})
	if !s.HasRoom() {
		t.Error("no room")
	}
	tell(Mail{ID: "m0"})
	for i := range MaxMail {
		tell(Mail{ID: wire.ID(fmt.Sprint("u", i)), Urgent: true})
	}
	if held("m0") || !held("due") || !held("u1000") || held("u1023") || len(s.mail.letters) != MaxMail {
		t.Error("the wrong ones are held")
	}
}

// TestNext: when the clock is wanted.
func TestNext(t *testing.T) {
	var s State
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	apply := func(in Input) {
		in.Now = now
		s.Apply(in)
	}
	expect := func(what string, want time.Time) {
		t.Helper()
		if got := s.NextTick(); !got.Equal(want) {
			t.Errorf("%s: %v, not %v", what, got, want)
		}
	}
	expect("nothing", time.Time{})
	apply(Input{Arrived: &Mail{ID: "m1"}})
	expect("no due time", time.Time{})
	apply(Input{Arrived: &Mail{ID: "m2", Due: now.Add(time.Hour)}})
	apply(Input{Arrived: &Mail{ID: "m3", Due: now.Add(time.Minute)}})
	expect("the sooner", now.Add(time.Minute))
	e := wire.Event{Kind: wire.EventAnnounced, Source: "hook"}.With("id", "m1")
	apply(Input{Event: &e})
	now = now.Add(time.Minute)
	apply(Input{})
	expect("offered again", now.Add(offerFor-time.Minute))
	now = now.Add(offerFor)
	apply(Input{})
	expect("the later", time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC))
	apply(Input{Settled: "m2"})
	expect("all is done", time.Time{})
}
