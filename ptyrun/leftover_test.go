package ptyrun

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/internal/inbox"
	"github.com/agentteammail/atm/wire"
)

// thinking reports whether a turn of ours is under way without an answer.
func thinking(t *testing.T, o testagent.Options, body string) *rig {
	return newRig(t).fake(o).think(body)
}

// think runs the fake agent and has it work on a message.
func (r *rig) think(body string) *rig {
	r.run().idle()
	r.Wait("the first to be read", r.Read(r.Send(body)))
	r.Wait("work", r.shows("esc to interrupt"))
	return r
}

// A prompt that an interrupt restores to the draft blocks no mail and is not lost: the agent gets it again after the
// urgent one.
func TestUrgentUndoes(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"THINK 10m", "THINK 10m " + strings.Repeat("and a line\n", 60)} {
		r := thinking(t, testagent.Options{}, body)
		r.Wait("the urgent one to be read", r.Read(r.Send("stop that", urgent)))
		r.Wait("the first again", func() bool {
			after := strings.Join(r.Fakes(testagent.Submitted)[1:], "\n")
			_, again, _ := strings.Cut(after, "stop that\n")
			return strings.Contains(again, "may be a repeat") && strings.Contains(again, "THINK 10m")
		})
		if s := strings.Join(r.Fakes(testagent.Submitted), "\n"); strings.Count(s, "THINK 10m") != 2 {
			t.Errorf("submitted %q", s)
		}
	}
}

// A program that is stopped before its model has shown anything may not have asked it: the next one gets the message again.
func TestStoppedTooEarly(t *testing.T) {
	t.Parallel()
	r := thinking(t, testagent.Options{}, "THINK 10m")
	_, err := r.Client().Restart(t.Context(), control.RestartRequest{})
	must(t, err)
	r.Wait("the first again", func() bool {
		got := r.Fakes(testagent.Submitted)
		return len(got) == 2 && strings.Contains(got[1], "may be a repeat") && strings.Contains(got[1], "THINK 10m")
	})
	r.Wait("work", func() bool { return strings.Contains(strings.Join(r.Screen(), "\n"), "esc to interrupt") })
	_, err = r.Client().Stop(t.Context())
	must(t, err)
	r.Wait("the end", r.Has("exited"))
	if ids, err := r.Bob.UnreadIDs(); err != nil || len(ids) != 1 {
		t.Error(ids, err)
	}
}

// What a program has done something about is not given to the next.
func TestStoppedAtWork(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.Wait("the first to be read", r.Read(r.Send("hello")))
	r.Wait("its answer", r.Has("turn_completed"))
	_, err := r.Client().Restart(t.Context(), control.RestartRequest{})
	must(t, err)
	r.Wait("the next to be read", r.Read(r.Send("the next")))
	if got := r.Fakes(testagent.Submitted); len(got) != 2 {
		t.Errorf("submitted %q", got)
	}
}

// A text whose turn a person interrupts is not typed again, and blocks no mail.
func TestInterruptUndoes(t *testing.T) {
	t.Parallel()
	r := thinking(t, testagent.Options{}, "THINK 10m")
	if _, err := r.Client().Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Wait("the next to be read", r.Read(r.Send("do this instead")))
	if got := r.Fakes(testagent.Submitted); len(got) != 2 || strings.Contains(got[1], "THINK") {
		t.Errorf("submitted %q", got)
	}
}

// Whoever has interrupted a turn finds its end in the log.
func TestInterruptIsLogged(t *testing.T) {
	t.Parallel()
	r := thinking(t, testagent.Options{}, "THINK 10m")
	lock, err := r.Store.Locks().Lock(t.Context(), "bob.events", lockfile.Exclusive, time.Minute, nil)
	must(t, err)
	defer lock.Unlock()
	done := make(chan error, 1)
	go func() {
		_, err := r.Client().Interrupt(t.Context())
		done <- err
	}()
	r.Wait("the end", func() bool {
		select {
		case err := <-done:
			t.Fatalf("it was over before: %v", err)
		default:
		}
		return len(r.Fakes(testagent.Interrupted)) > 0
	})
	select {
	case <-done:
		t.Fatal("it was over before its end was logged")
	case <-time.After(2 * quick.Idle):
	}
	lock.Unlock()
	must(t, <-done)
	if !r.Has("turn_completed")() {
		t.Error("its end is not in the log")
	}
}

// A restored draft that a person has edited is theirs.
func TestUndoneIsTheirsWhoTouchIt(t *testing.T) {
	t.Parallel()
	r := thinking(t, testagent.Options{}, "THINK 10m")
	c := r.Client()
	if _, err := c.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Wait("the end", r.Has("turn_completed"))
	if o, err := c.Type(t.Context(), control.TypeRequest{Text: []byte(" but not so long")}); err != nil || !o.NotSubmitted {
		t.Fatal(o, err)
	}
	id := r.Send("hello")
	time.Sleep(quick.PersonQuiet + 5*quick.Idle) // long enough to type it
	if s := strings.Join(r.Screen(), "\n"); !r.Unread(id) || !strings.Contains(s, "but not so long") {
		t.Errorf("a person's draft was touched:\n%s", s)
	}
}

// What began the open turn of a killed runner is typed again, marked as a repeat.
func TestTypedWhenKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after string
		again bool
	}{{"", true}, {"tool_call_start", true}, {"turn_completed", false}} {
		r := newRig(t)
		id := r.Send("THINK 1s")
		must(t, r.Bob.MarkRead(t.Context(), id))
		events := []wire.Event{{Kind: "spawned"}, {Kind: wire.TurnStarted}, {Kind: "state_change"}, {Kind: wire.EventInjected}}
		events[2] = events[2].With("new", "thinking")
		events[3] = events[3].With("id", string(id))
		if c.after != "" {
			events = append(events, wire.Event{Kind: c.after})
		}
		for _, e := range events {
			e.Source = "pty"
			must(t, r.Bob.Log().Append(t.Context(), e))
		}
		r.fake(testagent.Options{}).run().idle()
		r.Wait("the next to be read", r.Read(r.Send("the next")))
		got := strings.Join(r.Fakes(testagent.Submitted), "\n")
		if strings.Contains(got, "THINK") != c.again || strings.Contains(got, "may be a repeat") != c.again {
			t.Errorf("after %q submitted %q", c.after, got)
		}
	}
}

// What the open turn of a killed or stopped program was given is undone. A word is an event; behind a slash is its turn, or
// which message it is about.
func TestUndoGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ log, undone string }{
		{"spawned turn_started/2 thinking injected/a,2", "a"},
		{"spawned injected/a injected/b turn_started thinking", "a b"},
		{"spawned turn_started/1 turn_idle/1 injected/a,2 turn_started/2", "a"},
		{"spawned turn_started injected/a tool_call_start", "a"},
		{"spawned turn_started injected/a turn_completed turn_started", ""},
		{"spawned turn_started injected/a idle", ""}, // no hook told of its end
		{"injected/a fresh_start", ""},               // what came with a root is past
		{"spawned turn_started injected/a exited", ""},
		{"spawned turn_started/2 turn_idle/2 injected/a,2", ""}, // it had answered before that was logged
		{"injected/a,2", "a"},                                   // the log begins there

		// It goes on whatever else happens, or what its hooks tell late.
		{"spawned turn_started injected/a delivery_stage/x message_read/b message_acked/b", "a"},
		{"spawned turn_started injected/a stream_error injecting/b injection_failed/b", "a"},
		{"spawned injected/a session_start turn_started", "a"},

		// It was dealt with since.
		{"spawned injected/a message_again/a", ""},
		{"spawned injected/a message_again/a message_read/a", ""},
		{"spawned injected/a message_acked/a", ""},
		{"spawned injected/a spawned", ""},
		{"spawned injected/a injected/b replied/a", "b"},

		// Its hooks gave it.
		{"spawned hook.message_announced/a hook.message_read/a turn_started", "a"},
		{"spawned hook.message_read/a turn_started hook.message_announced/a", "a"},
		{"spawned turn_started hook.message_announced/a turn_completed hook.message_read/a", ""},
		{"spawned turn_started hook.message_announced/a message_read/a", ""}, // it has read it itself

		// What ends with the program was open.
		{"spawned turn_started injected/a stopped session_end turn_completed", "a"},
		{"spawned turn_started hook.message_announced/a stopped hook.message_read/a turn_completed exited", "a"},
		{"spawned turn_started injected/a turn_completed stopped session_end exited", ""},
		{"spawned injected/a injected/b message_again/b", "a"}, // the next runner was killed, too
	} {
		r := newRig(t)
		ids := map[string]wire.ID{"a": r.Send("one"), "b": r.Send("two")}
		must(t, errors.Join(r.Bob.MarkRead(t.Context(), ids["a"]), r.Bob.MarkRead(t.Context(), ids["b"])))
		replied, stopped := map[wire.ID]bool{}, time.Time{}
		for word := range strings.FieldsSeq(c.log) {
			kind, about, _ := strings.Cut(word, "/")
			switch kind {
			case "replied":
				replied[ids[about]] = true
				continue
			case "stopped":
				stopped = time.Now()
				continue
			}
			e := wire.Event{Source: wire.SourcePTY, Kind: kind}
			if of, isHooks := strings.CutPrefix(kind, "hook."); isHooks {
				e.Source, e.Kind = wire.SourceHook, of
			}
			for about := range strings.SplitSeq(about, ",") {
				if id := ids[about]; id != "" {
					e = e.With("id", string(id))
				} else {
					e.TurnID = about
				}
			}
			if kind == wire.FreshStart {
				e.Source = wire.SourceCLI
			}
			if kind == "thinking" || kind == "idle" {
				e.Kind = "state_change"
				e = e.With("new", kind)
			}
			must(t, r.Bob.Log().Append(t.Context(), e))
		}
		isAnswered := func(_ context.Context, m *wire.Message) bool { return replied[m.ID] }
		must(t, errors.Join(inbox.UndoGiven(t.Context(), r.Bob, stopped, isAnswered), inbox.UndoGiven(t.Context(), r.Bob, stopped, isAnswered)))
		var undone []string
		for _, name := range []string{"a", "b"} {
			if r.Unread(ids[name]) {
				undone = append(undone, name)
			}
		}
		if got := strings.Join(undone, " "); got != c.undone {
			t.Errorf("%s: undone %q, want %q", c.log, got, c.undone)
		}
	}
}

// An answer may be on its way while its program is stopped, or be cut off before it marks the message as read: it shows
// that the model has the message. One that somebody gives it once more stays unread.
func TestAnsweredWhileStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	replied := map[wire.ID]bool{}
	undo := func() {
		t.Helper()
		isAnswered := func(_ context.Context, m *wire.Message) bool { return replied[m.ID] }
		must(t, inbox.UndoGiven(t.Context(), r.Bob, time.Time{}, isAnswered))
	}
	given := func(body string, with ...func(*wire.Message)) wire.ID {
		t.Helper()
		id := r.Send(body, with...)
		must(t, r.Bob.MarkRead(t.Context(), id))
		must(t, r.Bob.Log().Append(t.Context(), wire.Event{Source: wire.SourcePTY, Kind: wire.EventInjected}.With("id", string(id))))
		return id
	}
	late, silent, asked := given("one"), given("two"), given("three")
	owed := given("four", func(m *wire.Message) { m.RequiresAck = true })
	undo()
	if !r.Unread(late) || !r.Unread(silent) || !r.Unread(asked) {
		t.Fatal("not given back")
	}
	replied[late], replied[asked], replied[owed] = true, true, true
	must(t, r.Bob.MarkRead(t.Context(), asked))
	must(t, r.Bob.MarkUnread(t.Context(), asked)) // a person wants it done again
	undo()
	if r.Unread(late) || !r.Unread(silent) || !r.Unread(asked) {
		t.Errorf("unread: late %v, silent %v, asked %v", r.Unread(late), r.Unread(silent), r.Unread(asked))
	}
	if it, err := r.Bob.Get(owed); err != nil || it.State != wire.Done {
		t.Errorf("of the one that wants an ack, which the answer is: %+v, %v", it, err)
	}
}
