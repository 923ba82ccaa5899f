package ptyrun

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
)

// withInbox runs a fake Claude Code with an inbox.
func withInbox(t *testing.T, how string) *rig {
	r := newRig(t)
	r.fake(testagent.Options{Inbox: how})
	r.opt.Env = append(r.opt.Env, "CLAUDE_CONFIG_DIR="+filepath.Join(r.opt.Dir, "claude"))
	r.run().idle()
	return r
}

// Mail goes through the door, and so needs no prompt: what a person has half written stays, and can be sent later.
func TestMailThroughDoor(t *testing.T) {
	t.Parallel()
	r := withInbox(t, "open")
	first := r.send("THINK 1s")
	r.wait("the mail", r.read(first))
	c := r.client()
	_, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("half a ")})
	must(t, err)
	second := r.send("pong")
	r.wait("the mail that a draft does not hold up", r.read(second))
	if n := strings.Count(strings.Join(r.events(), "\n"), "turn_started"); n != 2 {
		t.Errorf("two messages began %d turns", n)
	}
	_, err = c.Type(t.Context(), control.TypeRequest{Text: []byte("line"), Enter: true})
	must(t, err)
	r.wait("the line", func() bool { return len(r.fakes(testagent.Submitted)) == 3 })
	submitted := r.fakes(testagent.Submitted)
	if pushed := r.fakes(testagent.Pushed); len(pushed) != 2 || pushed[0] != submitted[0] || submitted[2] != "half a line" {
		t.Errorf("pushed %q, submitted %q", pushed, submitted)
	}
	want := regexp.MustCompile(`^\[atm ` + first.Short(6) + ` from alice, (now|\d+s ago)\] answer: atm reply ` + first.Short(6) +
		" \"…\"\n  THINK 1s\n\\[atm\\] mail from a teammate; your user did not type it here\n\\[/atm\\]$")
	if !want.MatchString(submitted[0]) {
		t.Errorf("%q", submitted[0])
	}
	if s, err := r.status(); err != nil || s.Ways.Prompt != "inbox socket" {
		t.Errorf("%+v, %v", s.Ways, err)
	}
	if typed := strings.Join(r.fakes(testagent.Typed), ""); strings.Contains(typed, "atm") {
		t.Errorf("typed %q", typed)
	}
}

// A message that did not get through the door is typed; if it may have arrived, once, as a repeat.
func TestDoorIsNoUse(t *testing.T) {
	t.Parallel()
	for how, isRepeat := range map[string]bool{"shut": false, "drops": true} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := withInbox(t, how)
			id := r.send("ping")
			r.wait("the mail", r.read(id))
			if got := r.fakes(testagent.Submitted); len(got) != 1 || strings.Contains(got[0], "may be a repeat") != isRepeat {
				t.Errorf("submitted %q", got)
			}
			if typed := r.fakes(testagent.Typed); len(typed) == 0 {
				t.Error("nothing was typed")
			}
			next := r.send("pong")
			r.wait("the next mail", r.read(next))
		})
	}
}
