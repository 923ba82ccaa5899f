package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// What an event costs does not grow with the log, whatever becomes of its messages.
func BenchmarkOf(b *testing.B) {
	for _, c := range []struct {
		about string
		event func(n int) wire.Event
	}{
		{"turns", func(n int) wire.Event { // each with a message
			turn := fmt.Sprint("t", n/3)
			return []wire.Event{{Kind: wire.TurnStarted, TurnID: turn}, {Kind: wire.EventRead}, {Kind: wire.TurnCompleted, TurnID: turn}}[n%3]
		}},
		{"no turn comes", func(int) wire.Event { return wire.Event{Kind: wire.EventAnnounced, Session: "s"} }},
		{"other turns come", func(n int) wire.Event {
			return []wire.Event{{Kind: wire.EventAnnounced, Session: "s"}, {Kind: wire.TurnStarted, TurnID: fmt.Sprint("t", n), Session: "other"}}[n%2]
		}},
		{"the program restarts", func(n int) wire.Event {
			return []wire.Event{{Kind: wire.EventRead, TurnID: "over"}, {Kind: "spawned"}}[n%2]
		}},
		{"all in one turn", func(n int) wire.Event {
			if n == 0 {
				return wire.Event{Kind: wire.TurnStarted, TurnID: "t"}
			}
			return wire.Event{Kind: wire.EventRead}
		}},
		{"many deltas", func(n int) wire.Event { // of two sessions
			of := fmt.Sprint("s", n%2)
			if n < 2 {
				return wire.Event{Kind: wire.TurnStarted, TurnID: "t" + of, Session: of}
			}
			return wire.Event{Kind: "message_delta", TurnID: "t" + of, Session: of}.With("delta", "abcde")
		}},
	} {
		for _, size := range []int{10_000, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", c.about, size), func(b *testing.B) {
				list := make([]wire.Event, size)
				for n := range list {
					e := c.event(n)
					e.Seq, e.At, e.Source = uint64(n+1), time.Unix(int64(n), 0), "hook"
					list[n] = e.With("id", string(wire.NewID()))
				}
				for b.Loop() {
					Of(list)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/event")
			})
		}
	}
}
