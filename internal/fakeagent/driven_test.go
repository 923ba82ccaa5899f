//go:build unix

package fakeagent

import (
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

// reader reads the screens of a rig as a runner would.
type reader struct {
	*rig
	d    *driver.Driver
	last driver.Reading
}

func driven(t *testing.T, o Options) *reader {
	t.Helper()
	d, ok := driver.Named(orElse(o.Profile, "claude"))
	if !ok {
		t.Fatalf("no driver for %q", o.Profile)
	}
	return &reader{rig: start(t, o), d: d}
}

// reads waits until a reading is as wanted.
func (r *reader) reads(what string, ok func(driver.Reading) bool) driver.Reading {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%s: read last was %+v", what, r.last)
		}
	}()
	r.until(what, func(s *screen.Screen) bool {
		r.last = r.d.Read(driver.LookAt(s), r.last)
		return ok(r.last)
	})
	return r.last
}

func (r *reader) does(a reducer.Activity) driver.Reading {
	r.t.Helper()
	return r.reads(string(a), func(g driver.Reading) bool { return g.Activity == a && !g.Stale })
}

func (r *reader) waits() {
	r.t.Helper()
	r.reads("prompt", func(g driver.Reading) bool { return g.Prompt && g.Activity == reducer.Idle })
}

func (r *reader) asks() driver.Reading {
	r.t.Helper()
	return r.reads("dialog", func(g driver.Reading) bool {
		return g.Activity == reducer.Confirming && g.Dialog != nil && len(g.Dialog.Options) > 1 && !g.Stale
	})
}

// stops interrupts a turn with the driver's keys.
func (r *reader) stops() {
	r.t.Helper()
	n := len(r.logs("anything", func(Entries) bool { return true }).Of(Interrupted))
	for _, key := range r.d.InterruptKeys() {
		r.keys(string(key))
		time.Sleep(driver.InterruptPause)
	}
	r.logs("interrupt", func(es Entries) bool { return len(es.Of(Interrupted)) > n })
	r.waits()
}

// The drivers, which were made from the same captures, read what is drawn here.
func TestDriversRead(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := driven(t, Options{Profile: name, NoRestore: true})
			r.waits()
			r.keys("hello there")
			r.reads("draft", func(g driver.Reading) bool { return g.Draft == "hello there" && !g.Prompt })
			r.keys("\x15")
			r.waits()

			r.say("THINK 60s")
			r.does(reducer.Thinking)
			r.stops()
			r.say("STREAM 60s")
			if name != "opencode" && name != "gemini" { // there it looks like thinking
				r.does(reducer.Responding)
			}
			r.sees("word")
			r.stops()
			r.say("TOOL 60s [sleep 9]")
			r.does(reducer.ToolRunning)
			r.stops()

			r.say("CONFIRM touch made.txt")
			g := r.asks()
			if g.Dialog.Kind != "permission" || g.Dialog.Input != "touch made.txt" || len(g.Dialog.Options) != 3 {
				t.Fatalf("dialog: %+v", g.Dialog)
			}
			yes, ok := g.Dialog.Allowing()
			if !ok {
				t.Fatalf("nothing allows: %+v", g.Dialog.Options)
			}
			r.keys(yes.Keys)
			if got := r.logged(Answered).Of(Answered)[0].Option; got != "yes" {
				t.Errorf("%q chose %s", yes.Keys, got)
			}
			r.waits()

			// Denying is one of the options too.
			r.say("CONFIRM touch two.txt")
			no, ok := r.asks().Dialog.Denying()
			if !ok {
				t.Fatal("nothing denies")
			}
			r.keys(no.Keys)
			es := r.logs("two answers", func(es Entries) bool { return len(es.Of(Answered)) == 2 })
			if got := es.Of(Answered)[1].Option; got != "no" {
				t.Errorf("%q chose %s", no.Keys, got)
			}
			r.waits()

			r.say("QUOTE")
			r.sees("Here is what it showed")
			r.waits()

			r.say("QUESTION")
			r.reads("question", func(g driver.Reading) bool {
				return g.Dialog != nil && !g.Prompt && (g.Activity == reducer.AwaitingInput || g.Activity == reducer.Confirming)
			})
			r.keys("\r")
			r.waits()
		})
	}
}

func TestDriversReadTrust(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := driven(t, Options{Profile: name, Trust: true})
			g := r.asks()
			if g.Dialog.Kind != "trust" {
				t.Fatalf("%+v", g.Dialog)
			}
			yes, ok := g.Dialog.Allowing()
			if !ok { // trust is given for good
				for _, o := range g.Dialog.Options {
					if o.Allow {
						yes = o
						break
					}
				}
			}
			r.keys(yes.Keys)
			if got := r.logged(Answered).Of(Answered)[0].Option; got != "trust" {
				t.Errorf("%q chose %s", yes.Keys, got)
			}
			r.last = driver.Reading{}
			r.waits()
		})
	}
}

func TestDriversReadMore(t *testing.T) {
	t.Parallel()
	t.Run("bang", func(t *testing.T) {
		t.Parallel()
		r := driven(t, Options{})
		r.waits()
		r.keys("!ls")
		r.reads("bang mode", func(g driver.Reading) bool { return !g.Prompt && g.HasDraft })
	})
	t.Run("restored", func(t *testing.T) {
		t.Parallel()
		r := driven(t, Options{})
		r.waits()
		r.say("THINK 60s")
		r.does(reducer.Thinking)
		r.keys("\x1b")
		r.reads("the prompt put back", func(g driver.Reading) bool {
			return g.Activity == reducer.Idle && g.Draft == "THINK 60s" && !g.Prompt
		})
	})
	for _, name := range agents {
		t.Run("retry "+name, func(t *testing.T) {
			t.Parallel()
			r := driven(t, Options{Profile: name})
			r.waits()
			r.say("ERROR 800ms")
			r.reads("retry", func(g driver.Reading) bool { return g.Activity == reducer.Thinking && !g.Prompt })
			r.logged(TurnOver)
			r.reads("prompt", func(g driver.Reading) bool {
				return g.Prompt && (g.Activity == reducer.Idle || g.Activity == reducer.Error)
			})
		})
	}
	t.Run("draft while busy", func(t *testing.T) {
		t.Parallel()
		r := driven(t, Options{})
		r.waits()
		r.say("THINK 60s")
		r.does(reducer.Thinking)
		r.keys("a person's words")
		r.reads("draft", func(g driver.Reading) bool {
			return g.HasDraft && g.Activity == reducer.Thinking && !g.Prompt
		})
	})
	t.Run("placeholder", func(t *testing.T) {
		t.Parallel()
		for name, o := range map[string]Options{"claude": {}, "codex": {Profile: "codex"}, "opencode": {Profile: "opencode"}} {
			r := driven(t, o)
			r.waits()
			text := "one\ntwo\nthree\nfour " + strings.Repeat("and more ", 150)
			r.keys("\x1b[200~" + text + "\x1b[201~")
			r.until(name+" takes it", func(s *screen.Screen) bool { return r.d.Taken(driver.LookAt(s), text) })
		}
	})
	t.Run("junk", func(t *testing.T) {
		t.Parallel()
		r := driven(t, Options{Profile: "gemini", Junk: "62;22c"})
		r.reads("junk", func(g driver.Reading) bool { return g.Draft == "62;22c" && !g.Prompt })
	})
	t.Run("shell", func(t *testing.T) {
		t.Parallel()
		r := driven(t, Options{Profile: "plain"})
		r.waits()
		r.keys("sleep 60\r")
		r.state("tool_running")
		r.reads("busy", func(g driver.Reading) bool { return !g.Prompt })
		r.keys("\x03")
		r.waits()
	})
}

// In a narrow terminal as well: what it has no room for is cut off.
func TestDriversReadNarrow(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := driver.Named(name)
			r := &reader{rig: startIn(t, Options{Profile: name}, 44, 20, false), d: d}
			r.waits()
			r.say("SAY plum")
			r.sees("plum")
			r.waits()
		})
	}
}
