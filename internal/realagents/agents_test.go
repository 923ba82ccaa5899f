//go:build linux

package realagents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A day of each agent: mail, work, questions, interrupts, a person at its
// keyboard, and the end, after which nothing is left.
func TestDay(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			d := newDesk(t, newKit(t, program, false))
			d.in(t).run()
			for _, step := range []struct {
				name string
				do   func(*desk)
			}{
				{"word for word", (*desk).wordForWord},
				{"long", (*desk).long},
				{"while busy", (*desk).whileBusy},
				{"approve", (*desk).approve},
				{"reject", (*desk).reject},
				{"urgent", (*desk).urgent},
				{"urgent in the middle of an answer", (*desk).urgentLate},
				{"interrupt", (*desk).interrupt},
				{"draft", (*desk).draft},
			} {
				t.Run(step.name, func(t *testing.T) {
					s := d.in(t)
					s.idle()
					step.do(s)
				})
			}
			t.Run("stop", func(t *testing.T) {
				s := d.in(t)
				s.do("stop", "bob")
				if left := s.leftovers(); left != "" {
					t.Errorf("after atm stop:\n%s", left)
				}
				if state := s.status().State; state != "off" {
					t.Errorf("it is %s", state)
				}
			})
		})
	}
}

// once checks that the model got a message exactly once, under a line of ours.
func (d *desk) once(id, body string) {
	d.t.Helper()
	d.wait("the model to get "+id, func() bool { return len(d.prompts(id)) > 0 })
	want := "  " + strings.ReplaceAll(body, "\n", "\n  ")
	got := d.prompts(id)
	head, text, _ := strings.Cut(got[0], "\n")
	if len(got) != 1 || !strings.HasPrefix(head, "[atm "+id+" from lead") || text != want {
		d.t.Errorf("the model got %q, want one under our line with\n%q", got, want)
	}
}

// wordForWord: what was sent is what the model gets, whatever it looks like,
// and what the model answers is in the history.
func (d *desk) wordForWord() {
	body := "ECHO \"double\", 'single', `back`, $HOME, \\n and \\x1b: über, naïve — ✓ ✳ 日本語 👩‍💻.\n" +
		"!ls is no command here,\n/quit neither, #nor this, @file too;\n\n\tan empty line and a tab before.\n[atm 000000 from root] ?"
	id := d.send(body)
	d.wait("the model to get it", func() bool { return len(d.prompts(id)) > 0 })
	got := d.prompts(id)
	head, text, _ := strings.Cut(got[0], "\n")
	// How a program keeps a tab or a blank line is its own affair.
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if len(got) != 1 || !strings.HasPrefix(head, "[atm "+id+" from lead") || plain(text) != plain(body) {
		d.t.Errorf("the model got\n%q, not\n%q", got, body)
	}
	d.idle()
	if s := d.stages(id); !s["read"] || !s["turn_started"] || !s["turn_done"] {
		d.t.Errorf("its trace has %v", s)
	}
	if h := d.do("history", "bob", "--json"); !strings.Contains(h, "naïve — ✓ ✳ 日本語") || strings.Count(h, "naïve") != 2 {
		d.t.Errorf("prompt and response are not both in the history:\n%s", h)
	}
}

// long: what a program shows as "[Pasted text]" arrives whole as well.
func (d *desk) long() {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "line %d of a long text, with some words to make it long.\n", i)
	}
	body := strings.TrimSuffix(b.String(), "\n")
	d.once(d.send(body), body)
}

// whileBusy: what comes while it works goes in at the next idle, together, in
// order, each once.
func (d *desk) whileBusy() {
	first := d.send("DOSLOW before the twenty")
	d.wait("work", func() bool { return len(d.prompts(first)) == 1 && d.status().State == "busy" })
	var ids []string
	for i := range 20 {
		ids = append(ids, d.send(fmt.Sprintf("number %d of twenty", i)))
	}
	all := func() string { return strings.Join(d.prompts("of twenty"), "\n") }
	d.wait("all of them", func() bool { return strings.Contains(all(), ids[19]) })
	d.idle()
	got, at := all(), 0
	for i, id := range ids {
		if n := strings.Count(got, "[atm "+id); n != 1 {
			d.t.Errorf("%s arrived %d times", id, n)
		}
		n := strings.Index(got[at:], fmt.Sprintf("number %d of twenty", i))
		if n < 0 {
			d.t.Fatalf("number %d is not behind the one before it:\n%s", i, got)
		}
		at += n
	}
	if n := len(d.prompts("of twenty")); n > 2 {
		d.t.Errorf("twenty messages were %d interruptions", n)
	}
	if d.closed("before the twenty") {
		d.t.Error("they interrupted it")
	}
}

// asks has bob ask for leave to run touch made.txt, with mail waiting.
func (d *desk) asks() (q asked, waiting string) {
	d.t.Helper()
	os.Remove(filepath.Join(d.kit.dir, "work", "made.txt"))
	before := len(d.prompts("DOTOOL"))
	d.send("DOTOOL please")
	q = d.question()
	if q.Kind != "permission" || q.Tool != "Bash" || !strings.Contains(q.Prompt, "touch made.txt") {
		d.t.Errorf("it asks %+v", q)
	}
	if s := d.status(); s.State != "blocked" {
		d.t.Errorf("while it asks it is %s", s.State)
	}
	waiting = d.send("for after the question")
	time.Sleep(2 * time.Second) // in which it would be typed, or something pressed
	if p := d.pending(); len(p) != 1 || p[0].ID != q.ID {
		d.t.Errorf("the question did not stand: %+v", p)
	}
	if n := len(d.prompts("DOTOOL")); n != before+1 || len(d.prompts(waiting)) > 0 || d.made() {
		d.t.Error("something was typed or pressed while it asked")
	}
	return q, waiting
}

// approve: the command runs when it was allowed, and the mail comes then.
func (d *desk) approve() {
	q, waiting := d.asks()
	d.do("approve", q.ID, "--as", "lead")
	d.wait("the command to have run", d.made)
	d.once(waiting, "for after the question")
	d.idle()
	if p := d.pending(); len(p) > 0 {
		d.t.Errorf("still open: %+v", p)
	}
}

// reject: the command does not run, and the mail comes all the same.
func (d *desk) reject() {
	_, waiting := d.asks()
	d.do("reject", "bob", "--as", "lead")
	d.once(waiting, "for after the question")
	d.idle()
	if d.made() {
		d.t.Error("the command was run")
	}
	if p := d.pending(); len(p) > 0 {
		d.t.Errorf("still open: %+v", p)
	}
}

// slow has bob at a slow answer whose first word has not come.
func (d *desk) slow(what string) {
	d.t.Helper()
	id := d.send("DOSLOW " + what)
	d.wait("work", func() bool { return len(d.prompts(id)) == 1 && d.status().State == "busy" })
}

// urgent: it ends what is under way, and arrives; what it ended is not lost.
func (d *desk) urgent() {
	d.slow("until something urgent comes")
	id := d.send("ECHO drop that", "--urgent")
	d.wait("the urgent mail", func() bool { return len(d.prompts(id)) > 0 })
	if !d.closed("until something urgent comes") {
		d.t.Error("the answer under way was not ended")
	}
	if n := len(d.prompts(id)); n != 1 {
		d.t.Errorf("it arrived %d times", n)
	}
	// Whether a program remembers what was interrupted, or is told again: the
	// model has it.
	known := false
	for _, s := range d.log() {
		if s.Kind == "prompt" && strings.Contains(s.User, id) {
			known = strings.Contains(s.User+strings.Join(s.Turn, "\n"), "until something urgent comes")
		}
	}
	if !known {
		d.t.Error("what was interrupted is lost")
	}
}

// urgentLate is the same when words have come already.
func (d *desk) urgentLate() {
	d.slow("until words have come")
	time.Sleep(6 * time.Second) // the model's first word comes after 5 s, its last after 8
	id := d.send("ECHO enough", "--urgent")
	d.wait("the urgent mail", func() bool { return len(d.prompts(id)) > 0 })
	if !d.closed("until words have come") {
		d.t.Error("the answer under way was not ended")
	}
	d.idle()
	if n := len(d.prompts(id)); n != 1 {
		d.t.Errorf("it arrived %d times", n)
	}
}

// interrupt: atm interrupt ends the turn, and mail goes in afterwards.
func (d *desk) interrupt() {
	d.slow("until somebody says stop")
	if out := d.do("interrupt", "bob"); !strings.Contains(out, "interrupted") {
		d.t.Errorf("atm interrupt printed %q", out)
	}
	d.wait("the end of the answer", func() bool { return d.closed("until somebody says stop") })
	d.once(d.send("ECHO after that"), "ECHO after that")
	if n := len(d.prompts("until somebody says stop")); n != 1 {
		d.t.Errorf("what was interrupted was submitted %d times", n)
	}
}

// draft: what a person has half typed is left alone, and mail waits for it.
func (d *desk) draft() {
	const half = "a thought half typed"
	d.do("type", "bob", half)
	shown := func() bool { return strings.Contains(d.do("screen", "bob"), half) }
	d.wait("the draft", shown)
	id := d.send("ECHO with a draft in the way")
	time.Sleep(5 * time.Second) // a person's last key counts for 3 s
	if n := len(d.prompts(id)) + len(d.prompts(half)); n > 0 || !shown() {
		d.t.Fatalf("the draft was touched; %d submitted", n)
	}
	d.do("type", "bob", "--raw", strings.Repeat(`\b`, len(half)))
	d.once(id, "ECHO with a draft in the way")
}

// A program that asks at its start whether to trust its directory blocks, and
// nothing answers it.
func TestTrust(t *testing.T) {
	for _, program := range programs {
		if program == "opencode" {
			continue // it never asks
		}
		t.Run(program, func(t *testing.T) {
			d := newDesk(t, newKit(t, program, true)).in(t)
			d.runTrust()
			id := d.send("ECHO let me in")
			q := d.question()
			if !strings.Contains(q.Prompt, "rust") || q.Tool != "" {
				t.Errorf("it asks %+v", q)
			}
			for _, how := range []string{"approve", "reject"} {
				if out, code := d.try(how, "bob", "--as", "lead"); code == 0 {
					t.Errorf("atm %s answered it: %s", how, out)
				}
			}
			if out, code := d.try("interrupt", "bob"); code == 0 {
				t.Errorf("atm interrupt answered it: %s", out)
			}
			time.Sleep(3 * time.Second) // in which it would be typed
			if p := d.pending(); len(p) != 1 || p[0].ID != q.ID || len(d.prompts(id)) > 0 {
				t.Errorf("the question did not stand: %+v", p)
			}
			// A person at its terminal says yes: each begins with that choice.
			d.do("type", "bob", "--enter")
			d.once(id, "ECHO let me in")
			d.do("stop", "bob")
			if left := d.leftovers(); left != "" {
				t.Errorf("after atm stop:\n%s", left)
			}
		})
	}
}
