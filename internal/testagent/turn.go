package testagent

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// What a turn is at.
const (
	thinking   = "thinking"
	responding = "responding"
	running    = "tool_running"
	retrying   = "thinking " // at an API that fails
)

// Answers of the fake model.
const (
	pong = "Pong from the fake model."
	done = "All done."
)

// turn is one turn of the conversation. It runs in a goroutine of its own and touches the agent,
// and its own fields, only in functions that the agent's loop runs: do.
type turn struct {
	a      *agent
	ctx    context.Context
	cancel context.CancelFunc
	prompt string
	began  time.Time

	steps    []step // what is still to be done
	phase    string
	hasShown bool   // something stands on the screen that an interrupt cannot take back
	saying   string // the answer that is being written
	tool     string // the command that runs
	isAsking bool   // for its permission
}

// took is how long it has lasted, in whole seconds, as agents show it.
func (t *turn) took() string {
	s := int(time.Since(t.began).Seconds())
	if s >= 60 {
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

// do has the loop run f, unless the turn is over.
func (t *turn) do(f func()) bool {
	ran := make(chan struct{})
	select {
	case t.a.events <- func() {
		if t.ctx.Err() == nil {
			f()
		}
		close(ran)
	}:
		<-ran
	case <-t.ctx.Done():
	}
	return t.ctx.Err() == nil
}

func (t *turn) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-t.ctx.Done():
		return false
	}
}

// run plays a turn from its prompt to its end.
func (t *turn) run() {
	text := t.prompt
	if t.a.o.Model != "" {
		answer, err := t.model(text)
		if err != nil {
			t.fail()
			return
		}
		if text = answer; len(steps(answer)) == 0 {
			text = "SAY [" + strings.TrimSpace(answer) + "]"
		}
	}
	if t.do(func() { t.steps = append(t.steps, steps(text)...) }) && t.script() {
		t.do(func() { t.a.finish(t, "completed") })
	}
}

// model is what Options.Model says to a text.
func (t *turn) model(text string) (string, error) {
	c := exec.CommandContext(t.ctx, "/bin/sh", "-c", t.a.o.Model)
	c.Stdin, c.WaitDelay = strings.NewReader(text), time.Second
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	t.a.log.add(Entry{Event: Modelled, Text: string(out) + errs.String(), Code: c.ProcessState.ExitCode()})
	return string(out), err
}

// script does one step after the other, those too that come meanwhile. False: the turn is over.
func (t *turn) script() bool {
	closing := pong
	for {
		var s step
		if !t.do(func() {
			if len(t.steps) > 0 {
				s, t.steps = t.steps[0], t.steps[1:]
			}
		}) {
			return false
		}
		switch s.word {
		case "":
			return closing == "" || t.say(closing, 0)
		case "TOOL", "CONFIRM":
			closing = done
		case "STREAM", "ECHO", "SAY", "QUOTE":
			closing = ""
		}
		if !t.step(s) {
			return false
		}
	}
}

func (t *turn) step(s step) bool {
	a := t.a
	switch s.word {
	case "THINK":
		return t.sleep(s.lasting)
	case "STREAM":
		return t.say(strings.TrimSpace(strings.Repeat("word ", min(max(int(s.lasting/(40*time.Millisecond)), 6), 400))), s.lasting)
	case "ECHO":
		return t.say("[["+s.arg+"]]", 0)
	case "SAY":
		return t.say(s.arg, 0)
	case "QUOTE":
		var lines []string
		return t.do(func() {
			narrow := *a
			narrow.cols -= 8
			d := a.permission(a, "touch made.txt")
			for _, line := range d.draw(&narrow, d) {
				if line = strings.TrimRight(ansi.Strip(line), " "); strings.Trim(line, "─ ") != "" {
					lines = append(lines, line)
				}
			}
		}) && t.say("Here is what it showed:\n\n"+strings.Join(lines, "\n"), 0)
	case "TOOL":
		if s.arg == "" {
			s.arg = fmt.Sprintf("sleep %g", s.lasting.Seconds())
		}
		return t.useTool(s.arg, s.lasting, false)
	case "CONFIRM":
		if s.arg == "" {
			s.arg = "touch made.txt"
		}
		return t.useTool(s.arg, 0, true)
	case "QUESTION":
		_, ok := t.ask(a.question)
		return ok
	case "LEAVE-ORPHAN":
		return t.do(func() { a.leaveOrphan(s.lasting) })
	case "EXIT":
		var code int
		fmt.Sscan(s.arg, &code)
		return t.do(func() { a.leave(exit{code: code}) })
	case "CRASH":
		return t.do(func() { a.leave(exit{signal: s.arg, isCrash: true}) })
	}
	return true
}

// say writes an answer word by word, after a moment, over so long.
func (t *turn) say(text string, over time.Duration) bool {
	if !t.sleep(30*time.Millisecond) || !t.do(func() { t.phase, t.saying, t.hasShown = responding, "", true }) {
		return false
	}
	pieces := []string{text}
	if over > 0 {
		pieces = strings.SplitAfter(text, " ")
	}
	for _, p := range pieces {
		if !t.do(func() { t.saying += p }) || !t.sleep(over/time.Duration(len(pieces))) {
			return false
		}
	}
	return t.do(func() {
		t.a.tell(t.a.answer(t.saying)...)
		t.saying, t.phase = "", thinking
	})
}

// useTool runs a command that is not really run; where it asks, after it was allowed.
func (t *turn) useTool(command string, lasting time.Duration, asks bool) bool {
	a := t.a
	if !t.do(func() { t.tool, t.isAsking, t.hasShown, t.phase = command, asks, true, running }) {
		return false
	}
	if asks {
		answer, ok := t.ask(func(a *agent, _ string) *dialog { return a.permission(a, command) })
		if ok && answer.effect != allow {
			t.do(func() { a.finish(t, "denied") })
			return false
		}
		if !ok || !t.do(func() { t.isAsking = false; a.tell(a.approved(command)...) }) {
			return false
		}
	}
	return t.sleep(lasting) && t.do(func() {
		a.tell(a.ran(command)...)
		t.tool, t.phase = "", thinking
	})
}

// ask shows a dialog until it is answered or went away.
func (t *turn) ask(newDialog func(a *agent, about string) *dialog) (option, bool) {
	var d *dialog
	if !t.do(func() {
		d = newDialog(t.a, "Which approach should be taken?")
		t.hasShown = true
		t.a.show(d)
	}) {
		return option{}, false
	}
	select {
	case o := <-d.chosen:
		return o, t.ctx.Err() == nil
	case <-t.ctx.Done():
		return option{}, false
	}
}

// fail retries for a while, and then gives the turn up.
func (t *turn) fail() {
	if t.do(func() { t.phase = retrying }) && t.sleep(300*time.Millisecond) {
		t.do(func() {
			t.a.tell(paragraph("", "", t.a.failed))
			t.a.finish(t, "failed")
		})
	}
}
