package testagent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// turn is one turn of the conversation. It takes one step after the other. A timer, an answer, or the command that
// plays the model ends a step; each runs in the agent's loop, and does nothing once the turn is over.
type turn struct {
	prompt  string
	began   time.Time
	steps   []step // those to come
	closing string // the answer after the last step; "": there was one

	hasShown  bool          // the screen shows something that an interrupt cannot take back
	saying    string        // the answer that is being written
	answer    string        // the last one
	since     time.Time     // when its writing began
	duration  time.Duration // of its writing
	tool      string        // the command that waits for permission
	isWaiting bool          // it declares so
	cancel    context.CancelFunc
}

// age is how long the turn has lasted, in whole seconds, as agents show it.
func (t *turn) age() string {
	if t == nil {
		return ""
	}
	return time.Since(t.began).Truncate(time.Second).String()
}

// written returns the part of the answer that is written by now.
func (t *turn) written() string {
	words := strings.SplitAfter(t.saying, " ")
	n := len(words)
	if t.duration > 0 {
		n = min(n, 1+int(float64(n)*float64(time.Since(t.since))/float64(t.duration)))
	}
	return strings.Join(words[:n], "")
}

func (a *agent) startTurn(text string) {
	a.log.add(Entry{Event: Submitted, Text: text})
	ctx, cancel := context.WithCancel(context.Background())
	t := &turn{prompt: text, began: time.Now(), closing: "Pong from the fake model.", cancel: cancel}
	a.turn, a.pending = t, block{rows: a.Asked, text: text}
	a.turns++
	a.callHooks("UserPromptSubmit", map[string]any{"prompt": text})
	a.tellStatus("busy")
	if a.o.Model == "" {
		t.steps = parseSteps(text)
		a.afterInTurn(0, t, a.nextStep) // once the prompt is drawn
		return
	}
	go func() {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", a.o.Model)
		c.Stdin, c.WaitDelay = strings.NewReader(text), time.Second
		out, err := c.Output()
		answer := parseSteps(string(out))
		if len(answer) == 0 {
			answer = []step{{word: "SAY", arg: strings.TrimSpace(string(out))}}
		}
		a.afterInTurn(0, t, func() {
			if err != nil { // as if the model's server fails
				a.print(a.Failed, "")
				a.endTurn()
				return
			}
			t.steps = append(t.steps, answer...)
			a.nextStep()
		})
	}()
}

// afterInTurn makes the loop run f after d, if the turn is still t.
func (a *agent) afterInTurn(d time.Duration, t *turn, f func()) {
	a.after(d, func() {
		if a.turn == t {
			f()
		}
	})
}

// pause makes the loop run f after a step's duration, and once there is the file that it names.
func (a *agent) pause(s step, t *turn, f func()) {
	a.afterInTurn(s.duration, t, func() {
		if _, err := os.Stat(s.arg); s.arg != "" && err != nil {
			a.pause(step{arg: s.arg, duration: 10 * time.Millisecond}, t, f)
			return
		}
		f()
	})
}

// nextStep takes the next step.
func (a *agent) nextStep() {
	t := a.turn
	if len(t.steps) == 0 && t.closing == "" {
		a.print(a.Ended, "")
		a.endTurn()
		return
	}
	s := step{word: "SAY", arg: t.closing}
	if len(t.steps) > 0 {
		s, t.steps = t.steps[0], t.steps[1:]
	}
	switch s.word {
	case "THINK":
		a.pause(s, t, a.nextStep)
	case "WAIT":
		t.isWaiting = true
		a.pause(s, t, func() {
			t.isWaiting = false
			a.nextStep()
		})
	case "STREAM":
		a.say(strings.TrimSpace(strings.Repeat("word ", min(max(int(s.duration/(40*time.Millisecond)), 6), 400))), s.duration)
	case "ECHO":
		a.say("[["+s.arg+"]]", 0)
	case "SAY":
		a.say(s.arg, 0)
	case "CONFIRM":
		t.tool, t.hasShown = s.arg, true
		a.show(&dialog{prompt: a.Permission, kind: "permission", about: s.arg, then: func(o option) {
			t.tool, t.closing = "", "All done."
			if o.denies() {
				a.print(a.Denied, s.arg)
				a.endTurn()
				return
			}
			a.afterInTurn(0, t, func() { // once the dialog is gone from the screen
				a.print(a.Ran, s.arg)
				a.callHooks("PostToolUse", map[string]any{"tool_name": "Bash"})
				a.nextStep()
			})
		}})
	case "QUESTION":
		t.hasShown = true
		a.show(&dialog{prompt: a.Question, kind: "question", about: "Which approach should be taken?", then: func(option) { a.nextStep() }})
	case "LIMIT":
		text, after, isIn := strings.Cut(s.arg, "|+")
		if n, err := strconv.Atoi(strings.TrimSuffix(after, "]")); isIn && err == nil {
			s.arg = fmt.Sprintf("%s|%d]", text, time.Now().Unix()+int64(n))
		}
		a.print(a.Limited, s.arg)
		a.endTurn()
	case "LEAVE-ORPHAN":
		a.leaveOrphan(s.duration)
		a.nextStep()
	case "EXIT":
		code, _ := strconv.Atoi(s.arg)
		a.exitWith(code)
	case "CRASH":
		killSelf()
	}
}

// say writes an answer, spread over the duration.
func (a *agent) say(text string, duration time.Duration) {
	t := a.turn
	a.afterInTurn(30*time.Millisecond, t, func() {
		t.closing, t.hasShown = "", true
		t.saying, t.answer, t.since, t.duration = text, text, time.Now(), duration
		a.afterInTurn(duration, t, func() {
			a.print(a.Answer, text)
			t.saying = ""
			a.nextStep()
		})
	})
}

func (a *agent) endTurn() {
	a.turn.cancel()
	a.callHooks("Stop", map[string]any{"last_assistant_message": a.turn.answer})
	a.tellStatus("idle")
	a.turn, a.hasWorked = nil, true
	if len(a.queue) > 0 {
		next := a.queue[0]
		a.queue = a.queue[1:]
		a.startTurn(next)
	}
}

func (a *agent) interrupt() {
	t, kind := a.turn, "stopped"
	if !t.hasShown {
		kind = "restored"
	}
	a.log.add(Entry{Event: Interrupted, Kind: kind, Text: t.prompt})
	var back []string // into the box
	if kind == "restored" {
		a.pending = block{}
		back = []string{t.prompt}
	} else {
		if t.saying != "" {
			a.print(a.Answer, t.written())
		}
		a.print(a.Stopped, "")
	}
	back, a.queue = append(back, a.queue...), nil
	if a.draft != "" {
		back = append(back, a.draft)
	}
	a.draft = strings.Join(back, "\n")
	a.endTurn()
}

// step is one word of a submitted text, with its arguments.
type step struct {
	word     string
	duration time.Duration
	arg      string
}

// wordPattern matches a word, the duration or number behind it, and the text in brackets behind that.
var wordPattern = regexp.MustCompile(`\b(THINK|WAIT|STREAM|CONFIRM|QUESTION|ECHO|SAY|LIMIT|LEAVE-ORPHAN|EXIT|CRASH)\b` +
	`(?: ([0-9][0-9.]*(?:ms|s|m|h)?)\b)?(?: *\[([^\]]*)\])?`)

func parseSteps(text string) (all []step) {
	found := wordPattern.FindAllStringSubmatchIndex(text, -1)
	for i, m := range found {
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		s := step{word: group(1), arg: group(3)}
		s.duration, _ = time.ParseDuration(group(2))
		if n, err := strconv.ParseFloat(group(2), 64); err == nil { // a bare number is seconds
			s.duration = time.Duration(n * float64(time.Second))
		}
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
		case "SAY", "LIMIT":
			s.arg = cmp.Or(s.arg, strings.TrimSpace(group(2)+" "+strings.TrimSpace(rest)))
		case "CONFIRM":
			s.arg = cmp.Or(s.arg, strings.TrimSpace(group(2)+" "+strings.TrimSpace(rest)), "touch made.txt")
		}
		all = append(all, s)
	}
	return all
}
