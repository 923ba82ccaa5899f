package mail

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// What of an event people read, and what not.
func TestDescribeEvent(t *testing.T) {
	const id = "01890000-0000-7000-8000-00000000abcd"
	for line, want := range map[string]string{
		`{"kind":"state_change","new":"tool_running","detail":"make"}`:                                     "is now|tool running, make",
		`{"kind":"state_change","new":"idle","answer":"Yes","by":"me"}`:                                    "is now|idle; answered: Yes by me",
		`{"kind":"confirm_required","tool":"Bash","prompt":"git  push"}`:                                   "asks:|Bash: git push",
		`{"kind":"confirm_required","tool":"Bash","input":"git pull","prompt":"Run it?"}`:                  "asks:|Bash: git pull: Run it?",
		`{"kind":"waiting_for_input","prompt":"Which?"}`:                                                   "asks:|Which?",
		`{"kind":"turn_completed","turn_id":"t1","status":"completed"}`:                                    "turn ended:|",
		`{"kind":"turn_completed","turn_id":"t1","status":"failed"}`:                                       "turn ended:|failed",
		`{"kind":"turn_started","turn_id":"t1","prompt":"secret"}`:                                         "turn started|",
		`{"kind":"dropped_counters","dropped":3}`:                                                          "lost events:|3",
		`{"kind":"exited","code":1}`:                                                                       "program ended:|code 1",
		`{"kind":"exited","code":143,"reason":"stop"}`:                                                     "program stopped|",
		`{"kind":"message_read","id":"` + id + `"}`:                                                        "read|00abcd",
		`{"kind":"injection_failed","id":"` + id + `","reason":"no prompt"}`:                               "could not be handed|00abcd: no prompt",
		`{"kind":"` + wire.CommandFailed + `","event":"idle","command":"make","reason":"it ended with 1"}`: "command failed:|idle: make: it ended with 1",
	} {
		e, err := wire.DecodeEvent([]byte(`{"seq":1,"at":"2026-01-01T00:00:00Z","team":"main","agent":"bob","source":"cli",` + line[1:]))
		must(t, err)
		phrase, about := describeEvent(&e, &letter.Renderer{Digits: 6})
		if got := phrase + "|" + about; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// An event that comes again is known, but not one with its number in a log that was replaced.
func TestLogLineKey(t *testing.T) {
	bob, carol := wire.Address{Agent: "bob", Team: "main"}, wire.Address{Agent: "carol", Team: "main"}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	event := func(of wire.Address, seq uint64, at time.Time) string {
		return logLine{watcher.Entry{Address: of, Event: &wire.Event{Seq: seq, At: at}}, time.Now()}.key()
	}
	first := event(bob, 1, at)
	if event(bob, 1, at) != first {
		t.Error("the same event is another one")
	}
	m := logLine{Entry: watcher.Entry{Address: bob, Message: &wire.Message{ID: wire.NewID()}}}.key()
	for name, other := range map[string]string{
		"the next": event(bob, 2, at), "another member's": event(carol, 1, at), "a later log's": event(bob, 1, at.Add(time.Second)), "a message": m,
	} {
		if other == first {
			t.Errorf("%s is taken for it", name)
		}
	}
	if (logLine{}).key() != "" {
		t.Error("nothing has a key")
	}
}

// Lines come by their time, and no more of a log is read than is shown.
func TestInOrder(t *testing.T) {
	read := 0
	source := func(seconds ...int64) iter.Seq[logLine] {
		return func(yield func(logLine) bool) {
			for _, s := range seconds {
				if read++; !yield(logLine{at: time.Unix(s, 0)}) {
					return
				}
			}
		}
	}
	var got []int64
	for l := range inOrder([]iter.Seq[logLine]{source(3, 4), source(), source(1, 2, 5, 6, 7, 8)}) {
		if got = append(got, l.at.Unix()); len(got) == 4 {
			break
		}
	}
	if !slices.Equal(got, []int64{1, 2, 3, 4}) || read > 5 {
		t.Errorf("%v, %d were read", got, read)
	}
}
