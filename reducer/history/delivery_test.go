package history

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// The turn of a message, for every kind of handover: that whose prompt it was in, or into which it was put, once that shows.
func TestDelivery(t *testing.T) {
	for _, c := range []struct {
		about  string
		events []string
		turn   string
		began  uint64 // the event; 0: none
		ended  uint64
		status string
	}{
		{"nothing yet", []string{"turn_started turn=t1"}, "", 0, 0, ""},
		{"typed in, then the turn begins", []string{"turn_idle", "injected id=ID", "turn_started turn=t1", "turn_completed turn=t1 status=completed", "turn_idle turn=t1"}, "t1", 3, 4, "completed"},
		{"the turn begins before it is known to be in", []string{"turn_idle", "injecting id=ID", "turn_started turn=t1", "injected id=ID", "turn_completed turn=t1 status=interrupted"}, "t1", 3, 5, "interrupted"},
		{"the turn ends before it is known to be in", []string{"turn_idle", "injecting id=ID", "turn_started turn=t1", "turn_completed turn=t1 status=failed", "injected id=ID"}, "t1", 3, 4, "failed"},
		{"begun by its runner, and named by a hook", []string{"pty injecting id=ID", "pty turn_started turn=r1 transport=pty", "turn_started session=d1 turn=t1", "pty injected id=ID turn=r1", "turn_completed session=d1 turn=t1 status=completed"}, "t1", 2, 5, "completed"},
		{"its program ends before that", []string{"injecting id=ID", "turn_started turn=t1", "exited code=7", "injected id=ID turn=t1"}, "t1", 2, 3, "failed"},
		{"read in the middle of a turn", []string{"turn_started turn=t1", "tool_call_start turn=t1", "message_read id=ID", "turn_completed turn=t1"}, "t1", 1, 4, "completed"},
		{"read between turns", []string{"turn_started turn=t1", "turn_completed turn=t1", "message_read id=ID", "turn_started turn=t2"}, "", 0, 0, ""},
		{"read between turns, then announced", []string{"message_read id=ID", "message_announced id=ID", "turn_started turn=t2", "message_read id=ID"}, "t2", 3, 0, ""},
		{"its typing is logged before the end of the turn before", []string{"turn_started turn=t0", "injecting id=ID", "turn_completed turn=t0 status=completed", "turn_started turn=t1", "injected id=ID turn=t1", "turn_completed turn=t1 status=failed"}, "t1", 4, 6, "failed"},
		{"read while it is typed, before the turn begins", []string{"injecting id=ID", "message_read id=ID", "turn_started turn=t2", "injected id=ID"}, "t2", 3, 0, ""},
		{"handed over by a hook, and moved when that shows", []string{"message_announced id=ID session=d1", "turn_started session=d1 turn=t1", "message_read id=ID session=d1", "turn_completed session=d1 turn=t1"}, "t1", 2, 4, "completed"},
		{"put into a session of which no hook tells", []string{"turn_idle", "message_announced id=ID session=d1", "turn_started turn=t1", "message_read id=ID session=d1", "turn_completed turn=t1 status=completed"}, "t1", 3, 5, "completed"},
		{"announced, and nothing shows that it came", []string{"turn_started turn=t1", "message_announced id=ID turn=t1", "turn_completed turn=t1 status=completed", "turn_started turn=t2"}, "", 0, 0, ""},
		{"kept while it works, and in the prompt of the next turn", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1", "turn_completed session=d1 turn=t1 status=completed", "message_read id=ID session=d1 turn=t2", "turn_started session=d1 turn=t2", "turn_completed session=d1 turn=t2 status=failed"}, "t2", 5, 6, "failed"},
		{"kept, and its turn has not begun", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1", "turn_completed session=d1 turn=t1 status=completed", "message_read id=ID session=d1 turn=t2"}, "", 0, 0, ""},
		{"steered into the turn that runs", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1", "message_read id=ID session=d1 turn=t1", "turn_completed session=d1 turn=t1 status=completed"}, "t1", 1, 4, "completed"},
		{"in the first of two prompts that are one turn", []string{"message_announced id=ID session=d1", "message_read id=ID session=d1 turn=t1", "turn_started session=d1 turn=t1", "turn_started session=d1 turn=t2 joins=t1", "turn_completed session=d1 turn=t2 status=completed"}, "t2", 3, 5, "completed"},
		{"in the second", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1", "message_read id=ID session=d1 turn=t2", "turn_started session=d1 turn=t2 joins=t1", "turn_completed session=d1 turn=t2 status=completed"}, "t2", 1, 5, "completed"},
		{"in a hook's answer while it works", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1 turn=t1", "message_read id=ID session=d1 turn=t1", "turn_completed session=d1 turn=t1 status=completed"}, "t1", 1, 4, "completed"},
		{"in a hook's answer, and only the next prompt shows it", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1 turn=t1", "pty state_change new=idle", "message_read id=ID session=d1 turn=t2", "turn_started session=d1 turn=t2"}, "t1", 1, 3, ""},
		{"in the answer as a conversation begins", []string{"session_start session=d1", "message_announced id=ID session=d1", "message_read id=ID session=d1 turn=t1", "turn_started session=d1 turn=t1"}, "t1", 4, 0, ""},
		{"in the answer to a prompt that was forgotten, and to the next", []string{"turn_started session=d1 turn=t1", "message_announced id=ID session=d1 turn=t1", "turn_completed session=d1 turn=t1 status=interrupted", "turn_started session=d1 turn=t2", "message_announced id=ID session=d1 turn=t2", "message_read id=ID session=d1 turn=t2", "turn_completed session=d1 turn=t2 status=completed"}, "t2", 4, 7, "completed"},
		{"the next turn is another", []string{"turn_started turn=t1", "message_read id=ID", "turn_completed turn=t1", "turn_started turn=t2", "turn_completed turn=t2 status=failed"}, "t1", 1, 3, "completed"},
		{"a turn that gets its name late", []string{"state_change new=thinking", "message_read id=ID", "turn_completed turn=t1 status=failed"}, "t1", 1, 3, "failed"},
		{"typing failed", []string{"injecting id=ID", "injection_failed id=ID outcome=stuck", "turn_started turn=t1", "turn_completed turn=t1"}, "", 0, 0, ""},
		{"put back before its turn began, while another is open", []string{"message_announced id=ID session=d1", "turn_started session=d2 turn=t1", "message_again id=ID", "turn_completed session=d2 turn=t1"}, "", 0, 0, ""},
		{"typing failed, while another's turn is open", []string{"injecting id=ID session=d1", "turn_started session=d2 turn=t1", "injection_failed id=ID outcome=stuck"}, "", 0, 0, ""},
		{"another's message", []string{"turn_started turn=t1", "message_read id=other", "turn_completed turn=t1"}, "", 0, 0, ""},
		{"the process ends", []string{"turn_started turn=t1", "message_read id=ID", "exited code=1"}, "t1", 1, 3, "failed"},
		{"its runner is killed, and another one begins", []string{"pty spawned pid=1", "turn_started turn=t1", "message_read id=ID", "pty spawned pid=2"}, "t1", 2, 4, "failed"},
		{"another turn follows, and nobody said how it ended", []string{"turn_started turn=t1", "message_read id=ID", "turn_started turn=t2"}, "t1", 1, 3, ""},
		{"put back after that, and handed over again", []string{"injecting id=ID", "turn_started turn=t1", "injected id=ID", "exited code=143", "spawned pid=2", "injecting id=ID", "turn_started turn=t2", "injected id=ID", "turn_completed turn=t2 status=completed"}, "t2", 7, 9, "completed"},
		{"put back after its turn was completed", []string{"injecting id=ID", "turn_started turn=t1", "injected id=ID", "turn_completed turn=t1 status=completed", "injecting id=ID", "turn_started turn=t2"}, "t1", 2, 4, "completed"},
		{"another session begins", []string{"turn_started session=d1 turn=t1", "message_read id=ID session=d1", "session_start session=d2", "turn_started session=d2 turn=t9", "turn_completed session=d2 turn=t9", "session_end session=d2"}, "t1", 1, 0, ""},
		{"and its own goes on", []string{"turn_started session=d1 turn=t1", "message_read id=ID", "session_start session=d2", "turn_started session=d2 turn=t9", "tool_call_start session=d1 turn=t1", "turn_completed session=d1 turn=t1 status=failed", "turn_idle session=d2 turn=t9"}, "t1", 1, 6, "failed"},
		{"handed to one of two, the other begins a turn", []string{"session_start session=d1", "session_start session=d2", "message_announced id=ID session=d1", "turn_started session=d2 turn=t9", "turn_completed session=d2 turn=t9", "message_read id=ID session=d1 turn=t1", "turn_started session=d1 turn=t1", "session_end session=d1 reason=other"}, "t1", 7, 8, "interrupted"},
		{"handed anew to another", []string{"message_announced id=ID session=d1", "session_end session=d1", "message_announced id=ID session=d2", "message_read id=ID session=d2 turn=t1", "turn_started session=d2 turn=t1"}, "t1", 5, 0, ""},
		{"a session that gets its name late", []string{"turn_started turn=t1", "message_read id=ID", "tool_call_start session=d1 turn=t1", "turn_completed session=d1 turn=t1 status=completed"}, "t1", 1, 4, "completed"},
		{"its stop is blocked, and it goes on", []string{"turn_started session=d1 turn=t1", "message_read id=ID", "turn_completed session=d1 turn=t1", "tool_call_start session=d1 turn=t1 tool_call_id=c1"}, "t1", 1, 0, ""},
		{"and ends then", []string{"turn_started session=d1 turn=t1", "message_read id=ID", "turn_completed session=d1 turn=t1", "tool_call_start session=d1 turn=t1 tool_call_id=c1", "turn_completed session=d1 turn=t1 status=interrupted"}, "t1", 1, 5, "interrupted"},
	} {
		t.Run(c.about, func(t *testing.T) {
			id := wire.NewID()
			var turns History
			for _, e := range events(c.events, id) {
				if e.Session != "" {
					e.Source = "hook"
				}
				turns.Apply(&e)
			}
			p := turns.Delivery(id).Turn
			if p == nil {
				p = &Turn{}
			}
			status := p.Status
			if status == Open {
				status = ""
			}
			if p.ID != c.turn || p.BeganBy.Seq != c.began || p.EndedBy.Seq != c.ended || status != c.status {
				t.Errorf("turn %q from %d to %d, %q", p.ID, p.BeganBy.Seq, p.EndedBy.Seq, p.Status)
			}
		})
	}
}

// A delivery is cut short when no answer can come any more.
func TestDeliveryCutShort(t *testing.T) {
	for _, c := range []struct {
		about  string
		events []string
		cut    bool
	}{
		{"waits", nil, false},
		{"typed in", []string{"injecting", "injected"}, false},
		{"the program ends before a turn begins", []string{"injecting", "injected", "exited"}, true},
		{"its runner was killed, and another begins", []string{"injecting", "injected", "spawned"}, true},
		{"and is handed to that one", []string{"injecting", "injected", "spawned", "injecting"}, false},
		{"the program ends while it is typed", []string{"injecting", "exited"}, false}, // it is unread, and handed over again
		{"its turn is open", []string{"injecting", "injected", "turn_started"}, false},
		{"its turn is completed", []string{"injecting", "injected", "turn_started", "turn_completed"}, false},
		{"the program ends after that", []string{"injecting", "injected", "turn_started", "turn_completed", "exited", "spawned"}, false},
		{"the program ends within", []string{"injecting", "injected", "turn_started", "exited"}, true},
		{"the program ends before it has what a hook gave", []string{"turn_started", "message_announced", "turn_completed", "exited"}, true},
	} {
		t.Run(c.about, func(t *testing.T) {
			id := wire.NewID()
			var turns History
			for i, kind := range c.events {
				e := wire.Event{Seq: uint64(i + 1), At: time.Now(), Source: "pty", Kind: kind}
				switch kind {
				case "injecting", "injected", "message_announced":
					e = e.With("id", string(id))
				case "turn_started":
					e.TurnID = "t1"
				case "turn_completed":
					e.TurnID = "t1"
					e = e.With("status", "completed")
				case "exited":
					e = e.With("signal", "TERM")
				}
				turns.Apply(&e)
			}
			if turns.Delivery(id).WasCutShort() != c.cut {
				t.Errorf("%+v", turns.Delivery(id))
			}
		})
	}
}
