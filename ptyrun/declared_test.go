package ptyrun

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// declaring runs a program that declares its state. All that needs a hold time for idle would take for ever.
func declaring(t *testing.T) *rig {
	r := newRig(t).fake(testagent.Options{Declares: true})
	timing := quick
	timing.Idle = time.Hour
	r.opt.timing = &timing
	return r
}

// says returns what bob's changes of state rest on, in order.
func (r *rig) says() (out []string) {
	all, _ := r.Bob.Log().Newest(1 << 20)
	for i := range all {
		if e := &all[i]; e.Kind == "state_change" {
			out = append(out, e.Text("new")+" "+e.Text("evidence"))
		}
	}
	return out
}

// lastSaid is the last of what says returns.
func (r *rig) lastSaid() string {
	all := append([]string{""}, r.says()...)
	return all[len(all)-1]
}

func (r *rig) said(what string) func() bool {
	return func() bool { return slices.Contains(r.says(), what) }
}

// What a program declares counts at once: its work, its end, and that a person ended it.
func TestDeclared(t *testing.T) {
	t.Parallel()
	r := declaring(t).run()
	r.Wait("the prompt", r.said("idle declared"))
	id := r.Send("THINK 300ms SAY first")
	r.Wait("the message to be read", r.Read(id))
	r.Wait("the end of its turn", r.Has(`turn_completed status="completed"`))
	r.Wait("idle", func() bool { return strings.HasSuffix(strings.Join(r.says(), ", "), "idle declared") })

	r.Send("STREAM 1h")
	r.Wait("work", func() bool { return strings.HasPrefix(r.lastSaid(), "thinking") })
	c := r.Client()
	if _, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("\x1b"), Raw: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("idle, at once after a person's Escape", func() bool {
		return strings.HasSuffix(strings.Join(r.says(), ", "), "idle declared")
	})
}

// A program that declares that it waits is blocked, also if its screen shows no dialog. Nothing is typed meanwhile.
func TestDeclaredBlocked(t *testing.T) {
	t.Parallel()
	r := declaring(t)
	r.run().Wait("the prompt", r.said("idle declared"))
	r.Wait("the first message to be read", r.Read(r.Send("WAIT [answered] THINK 100ms SAY over")))
	r.Wait("it to be blocked", r.said("confirming declared"))
	id := r.Send("SAY second")
	if s, err := r.status(); err != nil || s.Gate != control.GateDialog || s.State != "confirming" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := r.Client().Answer(context.Background(), ask.Answer{}); err == nil {
		t.Error("a declaration was answered")
	}
	if !r.Unread(id) || len(r.questions()) > 0 {
		t.Error("mail was typed, or a question was asked")
	}
	must(t, os.WriteFile(filepath.Join(r.opt.Dir, "answered"), nil, 0o600))
	r.Wait("the end of its turn", r.Has(`turn_completed status="completed"`))
	r.Wait("the second message to be read", r.Read(id))
}

// A dialog that is on the screen is asked as ever. Its answer is reported before what the program declares then.
func TestDeclaredDialog(t *testing.T) {
	t.Parallel()
	r := declaring(t)
	r.opt.timing.Idle = quick.Idle // an answer waits for a part of it, and its screen may say first that it is idle
	r.run().Wait("the prompt", r.said("idle declared"))
	for _, answer := range []func(c *control.Client) (control.Outcome, error){
		func(c *control.Client) (control.Outcome, error) {
			return c.Answer(t.Context(), ask.Answer{})
		},
		func(c *control.Client) (control.Outcome, error) {
			return c.Answer(t.Context(), ask.Answer{Deny: true})
		},
		func(c *control.Client) (control.Outcome, error) { // a person presses Escape
			return c.Type(t.Context(), control.TypeRequest{Text: []byte("\x1b"), Raw: true})
		},
	} {
		before := len(r.Events())
		ask := control.TypeRequest{Text: []byte("CONFIRM touch made.txt"), Enter: true} // for a turn of ours, idle is held
		if _, err := r.Client().Type(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		since := func() string { return strings.Join(r.Events()[before:], "\n") }
		r.Wait("the question", func() bool { return strings.Contains(since(), "confirm_required") })
		if _, err := answer(r.Client()); err != nil {
			t.Fatal(err)
		}
		r.Wait("the answer's report", func() bool {
			all, _ := r.Bob.Log().Newest(1 << 20)
			return slices.ContainsFunc(all[before:], func(e wire.Event) bool { return e.Kind == "state_change" && e.Text("id") != "" })
		})
		r.Wait("idle", func() bool { return strings.HasSuffix(since(), `state_change new="idle"`) })
		if _, end, _ := strings.Cut(since(), "turn_completed"); strings.Contains(end, "thinking") {
			t.Errorf("it works after its turn: %s", since())
		}
	}
}

// While a hook is fresh, what the program declares does not count against it; but it does then, because no hook says that
// a person ended the turn.
func TestDeclaredAgainstHooks(t *testing.T) {
	t.Parallel()
	r := declaring(t)
	r.opt.timing.Stale = 4 * time.Second
	r.run().Wait("the prompt", r.said("idle declared"))
	begun := wire.Event{Source: "hook", Session: "s", Kind: wire.TurnStarted, TurnID: "t"}
	for _, e := range []wire.Event{{Source: "hook", Session: "s", Kind: "session_start"}, begun} {
		must(t, r.Bob.Log().Append(t.Context(), e))
	}
	r.Wait("the hook to be heard", func() bool {
		s, err := r.status()
		return err == nil && s.Gate == control.GateBusy
	})
	for _, keys := range []string{"STREAM 1h\r", "\x1b"} {
		if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte(keys), Raw: true}); err != nil {
			t.Fatal(err)
		}
		r.Wait("what the keys do", func() bool {
			s, err := r.status()
			return err == nil && (s.State == "idle") == (keys == "\x1b")
		})
	}
	r.Wait("idle", func() bool { return slices.Contains(r.says()[1:], "idle declared") })
	all, _ := r.Bob.Log().Newest(1 << 20)
	var heard time.Time
	for _, e := range all {
		switch {
		case e.Source == "hook":
			heard = e.At
		case !heard.IsZero() && e.Text("new") == "idle" && e.At.Sub(heard) < r.opt.timing.Stale:
			t.Errorf("idle %s after the hook", e.At.Sub(heard))
		}
	}
}

// What goes beyond the limits of the protocol is reported once.
func TestDeclaredTooMuch(t *testing.T) {
	t.Parallel()
	needs(t, "sh")
	script := `i=0; while [ $i -lt 400 ]; do printf '\033]7501;state=working:id=%d\007' $i; i=$((i+1)); done; echo over; cat`
	r := newRig(t)
	r.opt.Command, r.opt.Env = []string{"sh", "-c", script}, os.Environ()
	r.opt.Driver, _ = driver.Named("plain")
	r.run().Wait("the end of the flood", r.shows("over"))
	count := func() (n int) {
		for _, e := range r.Events() {
			if strings.HasPrefix(e, "stream_error") {
				n++
			}
		}
		return n
	}
	r.Wait("the report", func() bool { return count() == 1 })
	if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("more"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("what was typed", r.shows("more"))
	if n := count(); n != 1 {
		t.Errorf("%d reports", n)
	}
}
