package testagent

import (
	"cmp"
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// turn is one turn of the conversation: steps, one after the other. What ends a step is a timer, an answered dialog, or
// the command that plays the model; all of them run in the agent's loop, and do nothing when the turn is over.
type turn struct {
	prompt  string
	began   time.Time
	steps   []step // what is still to be done
	closing string // what is said when all is done

	hasShown bool          // something stands on the screen that an interrupt cannot take back
	saying   string        // the answer that is being written,
	since    time.Time     // from then on
	lasting  time.Duration // for so long
	tool     string        // the command that waits for its permission
	cancel   context.CancelFunc
}

// took is how long it has lasted, in whole seconds, as agents show it.
func (t *turn) took() string {
	if t == nil {
		return ""
	}
	return time.Since(t.began).Truncate(time.Second).String()
}

// said is as much of the answer as is written by now.
func (t *turn) said() string {
	words := strings.SplitAfter(t.saying, " ")
	n := len(words)
	if t.lasting > 0 {
		n = min(n, 1+int(float64(n)*float64(time.Since(t.since))/float64(t.lasting)))
	}
	return strings.Join(words[:n], "")
}

func (a *agent) begin(text string) {
	a.log.add(Entry{Event: Submitted, Text: text})
	ctx, cancel := context.WithCancel(context.Background())
	t := &turn{prompt: text, began: time.Now(), closing: "Pong from the fake model.", cancel: cancel}
	a.turn, a.pending = t, block{rows: a.Asked, text: text}
	if a.o.Model == "" {
		t.steps = steps(text)
		a.in(0, t, a.step) // when the prompt was drawn
		return
	}
	go func() {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", a.o.Model)
		c.Stdin, c.WaitDelay = strings.NewReader(text), time.Second
		out, err := c.Output()
		said := steps(string(out))
		if len(said) == 0 {
			said = []step{{word: "SAY", arg: strings.TrimSpace(string(out))}}
		}
		a.in(0, t, func() {
			if err != nil { // as when the model's server fails
				a.tell(a.Failed, "")
				a.finish()
				return
			}
			t.steps = append(t.steps, said...)
			a.step()
		})
	}()
}

// in has the loop run f in a while, if t is still the turn.
func (a *agent) in(d time.Duration, t *turn, f func()) {
	a.after(d, func() {
		if a.turn == t {
			f()
		}
	})
}

// step does the next thing, those too that came meanwhile.
func (a *agent) step() {
	t := a.turn
	if len(t.steps) == 0 && t.closing == "" {
		a.tell(a.Ended, "")
		a.finish()
		return
	}
	s := step{word: "SAY", arg: t.closing}
	if len(t.steps) > 0 {
		s, t.steps = t.steps[0], t.steps[1:]
	}
	switch s.word {
	case "THINK":
		a.in(s.lasting, t, a.step)
	case "STREAM":
		a.say(strings.TrimSpace(strings.Repeat("word ", min(max(int(s.lasting/(40*time.Millisecond)), 6), 400))), s.lasting)
	case "ECHO":
		a.say("[["+s.arg+"]]", 0)
	case "SAY":
		a.say(s.arg, 0)
	case "CONFIRM":
		t.tool, t.hasShown = s.arg, true
		a.show(&dialog{prompt: a.Permission, kind: "permission", about: s.arg, then: func(o option) {
			t.tool, t.closing = "", "All done."
			if o.denies() {
				a.tell(a.Denied, s.arg)
				a.finish()
				return
			}
			a.in(0, t, func() { // when the screen was drawn without the dialog
				a.tell(a.Ran, s.arg)
				a.step()
			})
		}})
	case "QUESTION":
		t.hasShown = true
		a.show(&dialog{prompt: a.Question, kind: "question", about: "Which approach should be taken?", then: func(option) { a.step() }})
	case "LEAVE-ORPHAN":
		a.leaveOrphan(s.lasting)
		a.step()
	case "EXIT":
		code, _ := strconv.Atoi(s.arg)
		a.leave(code)
	case "CRASH":
		crash()
	}
}

// say writes an answer, after a moment, over so long.
func (a *agent) say(text string, lasting time.Duration) {
	t := a.turn
	a.in(30*time.Millisecond, t, func() {
		t.closing, t.hasShown = "", true
		t.saying, t.since, t.lasting = text, time.Now(), lasting
		a.in(lasting, t, func() {
			a.tell(a.Answer, text)
			t.saying = ""
			a.step()
		})
	})
}

func (a *agent) finish() {
	a.turn.cancel()
	a.turn = nil
	if len(a.queue) > 0 {
		next := a.queue[0]
		a.queue = a.queue[1:]
		a.begin(next)
	}
}

func (a *agent) interrupt() {
	t, kind := a.turn, "stopped"
	if a.Restores && !t.hasShown {
		kind = "restored"
	}
	a.log.add(Entry{Event: Interrupted, Kind: kind, Text: t.prompt})
	var back []string // to the box
	if kind == "restored" {
		a.pending = block{}
		back = []string{t.prompt}
	} else {
		if t.saying != "" {
			a.tell(a.Answer, t.said())
		}
		a.tell(a.Stopped, "")
	}
	if a.Restores {
		back, a.queue = append(back, a.queue...), nil
	}
	if a.draft != "" {
		back = append(back, a.draft)
	}
	a.draft = strings.Join(back, "\n")
	a.finish()
}

// step is one thing that a submitted text asks for.
type step struct {
	word    string
	lasting time.Duration
	arg     string
}

// word finds a word of the script with the length of time or the number behind it, and what stands
// in brackets behind that.
var word = regexp.MustCompile(`\b(THINK|STREAM|CONFIRM|QUESTION|ECHO|SAY|LEAVE-ORPHAN|EXIT|CRASH)\b` +
	`(?: ([0-9][0-9.]*(?:ms|s|m|h)?)\b)?(?: *\[([^\]]*)\])?`)

func steps(text string) (all []step) {
	found := word.FindAllStringSubmatchIndex(text, -1)
	for i, m := range found {
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		s := step{word: group(1), lasting: lasting(group(2)), arg: group(3)}
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		rest, _, _ := strings.Cut(text[m[1]:end], "\n")
		switch s.word {
		case "ECHO":
			s.arg = text
		case "EXIT":
			s.arg = group(2)
		case "SAY":
			s.arg = cmp.Or(s.arg, strings.TrimSpace(group(2)+" "+strings.TrimSpace(rest)))
		case "CONFIRM":
			s.arg = cmp.Or(s.arg, strings.TrimSpace(group(2)+" "+strings.TrimSpace(rest)), "touch made.txt")
		}
		all = append(all, s)
	}
	return all
}

// lasting reads a length of time: 20ms, 1.5s, or a number of seconds.
func lasting(s string) time.Duration {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	d, _ := time.ParseDuration(s)
	return d
}
