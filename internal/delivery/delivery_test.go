package delivery

import (
	"errors"
	"fmt"
	"testing"
)

var (
	states = []State{Unread, Claimed, Put, Sent, Read, Back, Unsure}
	events = []Event{Got, Moot, In, Off, NotIn, Receipt, Silent, Gone, Kept, Ended}
)

// What the table promises, for every state and event.
func TestTable(t *testing.T) {
	for _, s := range states {
		for _, e := range events {
			to, effect := Next(s, e)
			wrong := func(why string) { t.Errorf("%s, %s: %s, %s: %s", s, e, to, effect, why) }
			mayHaveIt := s == Put || s == Sent
			switch {
			case s.IsOver() && (to != s || effect != Nothing):
				wrong("it is over")
			case to == Read && s != Read && (e != Receipt || effect != MarkRead):
				wrong("only a receipt makes it read")
			case e == Receipt && !s.IsOver() && s != Unread && to != Read:
				wrong("a receipt makes it read")
			case to == Back && s != Back && (effect != Release || mayHaveIt && !(s == Put && e == Gone)):
				wrong("the program may have it")
			case to == Unsure && s != Unsure && (effect != Repeat || !mayHaveIt):
				wrong("nothing of it was given")
			case e == Ended && s != Unread && !to.IsOver():
				wrong("nobody ends the claim")
			}
		}
	}
}

// Each state leads to each end, but what was sent off is never given back.
func TestEnds(t *testing.T) {
	for _, s := range states {
		seen, next := map[State]bool{s: true}, []State{s}
		for len(next) > 0 {
			from := next[0]
			next = next[1:]
			for _, e := range events {
				if to, _ := Next(from, e); !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
		if !s.IsOver() && !(seen[Read] && seen[Unsure] && seen[Back] == (s != Sent)) {
			t.Errorf("%s leads to %v", s, seen)
		}
	}
}

func TestEventOf(t *testing.T) {
	for want, err := range map[Event]error{Off: nil, NotIn: errors.New("shut")} {
		if got := EventOf(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
	if got := EventOf(fmt.Errorf("%w: no answer", ErrUnsure)); got != Off {
		t.Error(got)
	}
}

func ExampleNext() {
	s := Unread
	for _, e := range []Event{Got, In, Off, Silent, Kept} {
		var effect Effect
		s, effect = Next(s, e)
		fmt.Printf("%s: %s, %s\n", e, s, effect)
	}
	// Output:
	// got: claimed, give
	// in: put, await
	// off: sent, await
	// silent: sent, take back
	// kept: unsure, repeat
}
