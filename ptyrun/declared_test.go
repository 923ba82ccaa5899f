package ptyrun

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
)

// declaring runs a program that declares its state. All that needs a hold time for idle would take for ever.
func declaring(t *testing.T, profile string) *rig {
	r := newRig(t).fake(testagent.Options{Profile: profile, Declares: true})
	timing := quick
	timing.idle = time.Hour
	r.opt.timing = &timing
	return r
}

// says returns what bob's changes of state rest on, in order.
func (r *rig) says() (out []string) {
	all, _ := r.bob.Log().Newest(1 << 20)
	for i := range all {
		if e := &all[i]; e.Kind == "state_change" {
			out = append(out, e.Text("new")+" "+e.Text("evidence"))
		}
	}
	return out
}

func (r *rig) said(what string) func() bool {
	return func() bool { return slices.Contains(r.says(), what) }
}

// What a program declares counts at once: its work, its end, and that a person ended it.
func TestDeclared(t *testing.T) {
	for _, profile := range []string{"claude", "codex"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			r := declaring(t, profile).run()
			r.wait("the prompt", r.said("idle declared"))
			id := r.send("THINK 300ms SAY first")
			r.wait("the message to be read", r.read(id))
			r.wait("the end of its turn", r.has(`turn_completed status="completed"`))
			r.wait("idle", func() bool { return strings.HasSuffix(strings.Join(r.says(), ", "), "idle declared") })

			r.send("STREAM 1h")
			r.wait("work", func() bool { return strings.HasPrefix(r.says()[len(r.says())-1], "responding") })
			c := r.client()
			if _, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("\x1b"), Raw: true}); err != nil {
				t.Fatal(err)
			}
			r.wait("idle, at once after a person's Escape", func() bool {
				return strings.HasSuffix(strings.Join(r.says(), ", "), "idle declared")
			})
		})
	}
}

// A program that declares that it waits is blocked, also if its screen shows no dialog. Nothing is typed meanwhile, and
// no rule answers.
func TestDeclaredBlocked(t *testing.T) {
	t.Parallel()
	r := declaring(t, "claude")
	r.opt.Decide = func(driver.Dialog) Decision {
		t.Error("a rule was asked about a declaration")
		return Allow
	}
	r.run().wait("the prompt", r.said("idle declared"))
	r.wait("the first message to be read", r.read(r.send("WAIT 1s THINK 100ms SAY over")))
	r.wait("it to be blocked", r.said("confirming declared"))
	id := r.send("SAY second")
	if s, err := r.status(); err != nil || s.Gate != control.GateDialog || s.State != "confirming" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := r.client().Answer(context.Background(), control.AnswerRequest{}); err == nil {
		t.Error("a declaration was answered")
	}
	if !r.unread(id) || len(r.questions()) > 0 {
		t.Error("mail was typed, or a question was asked")
	}
	r.wait("the end of its turn", r.has(`turn_completed status="completed"`))
	r.wait("the second message to be read", r.read(id))
}

// A dialog that is on the screen is asked as ever.
func TestDeclaredDialog(t *testing.T) {
	t.Parallel()
	r := declaring(t, "claude").run()
	r.wait("the prompt", r.said("idle declared"))
	r.send("CONFIRM touch made.txt")
	r.wait("the question", r.has(`confirm_required`))
	if _, err := r.client().Answer(t.Context(), control.AnswerRequest{}); err != nil {
		t.Fatal(err)
	}
	r.wait("the end of its turn", r.has(`turn_completed status="completed"`))
}

// What goes beyond the limits of the protocol is reported once.
func TestDeclaredTooMuch(t *testing.T) {
	t.Parallel()
	needs(t, "sh")
	script := `i=0; while [ $i -lt 400 ]; do printf '\033]7501;state=working:id=%d\007' $i; i=$((i+1)); done; echo over; cat`
	r := newRig(t)
	r.opt.Command, r.opt.Env = []string{"sh", "-c", script}, os.Environ()
	r.opt.Driver, _ = driver.Named("plain")
	r.run().wait("the end of the flood", r.shows("over"))
	count := func() (n int) {
		for _, e := range r.events() {
			if strings.HasPrefix(e, "stream_error") {
				n++
			}
		}
		return n
	}
	r.wait("the report", func() bool { return count() == 1 })
	if _, err := r.client().Type(t.Context(), control.TypeRequest{Text: []byte("more"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.wait("what was typed", r.shows("more"))
	if n := count(); n != 1 {
		t.Errorf("%d reports", n)
	}
}
