package fakeagent

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// phase is what a turn is at.
type phase int

const (
	thinking phase = iota
	responding
	running
	retrying
)

// turn is one turn of the conversation. It runs in a goroutine of its own and
// touches the agent, and its own fields, only in functions that the agent's
// loop runs: do.
type turn struct {
	a      *agent
	ctx    context.Context
	cancel context.CancelFunc
	id     string
	prompt string
	more   []step // added while it runs

	began   time.Time
	verb    string
	phase   phase
	said    bool   // something stands on the screen that an interrupt cannot take back
	saying  string // the answer that is being written
	last    string // the answer that was written last
	tool    string // the command that runs
	toolAt  time.Time
	asks    bool // the tool waits for its permission
	attempt int
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
	case <-t.ctx.Done():
		return false
	}
	<-ran
	return t.ctx.Err() == nil
}

func (t *turn) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// run plays a turn from its prompt to its end, and as often again as a hook
// wants.
func (t *turn) run(text string) {
	if reason, ok := t.a.hooks.prompt(t.id, text); !ok {
		t.do(func() { t.a.refuse(t, reason) })
		return
	}
	for again := 0; ; again++ {
		if !t.play(text) {
			return
		}
		// A hook may keep the turn going; the program itself puts an end to
		// that after eight times.
		reason := t.a.hooks.stop(t.id, t.last, again > 0)
		if reason == "" || again >= 8 {
			break
		}
		t.a.log.add(Entry{Event: Blocked, Kind: "stop", Text: reason})
		text = reason
	}
	t.do(func() { t.a.finish(t, "completed") })
}

// play does what a text, or the model that it is shown to, asks for. False: the
// turn is over.
func (t *turn) play(text string) bool {
	if t.a.o.Model == "" {
		return t.script(text)
	}
	answer, err := t.model(text)
	switch {
	case t.ctx.Err() != nil:
		return false
	case err != nil:
		return t.fail(300 * time.Millisecond)
	case len(steps(answer)) > 0:
		return t.script(answer)
	}
	return t.say(orElse(strings.TrimRight(answer, "\n"), done), 0)
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

// script does what a text asks for. False: the turn is over.
func (t *turn) script(text string) bool {
	t.more = append(t.more, steps(text)...)
	spoke, used := false, false
	for {
		var s step
		if !t.do(func() {
			if len(t.more) > 0 {
				s, t.more = t.more[0], t.more[1:]
			}
		}) {
			return false
		}
		if s.word == "" {
			break
		}
		answers, ok := t.step(s)
		if !ok {
			return false
		}
		spoke = spoke || answers
		used = used || s.word == "TOOL" || s.word == "CONFIRM"
	}
	switch {
	case spoke:
		return true
	case used:
		return t.say(done, 0)
	}
	return t.sleep(t.a.o.Think) && t.say(pong, 0)
}

// step does one; answers says that it needs no answer after it.
func (t *turn) step(s step) (answers, ok bool) {
	a := t.a
	switch s.word {
	case "THINK":
		ok = t.do(func() { t.phase = thinking }) && t.sleep(s.lasting)
	case "STREAM":
		return true, t.stream(s.lasting)
	case "ECHO":
		return true, t.sleep(a.o.Think) && t.say("[["+s.arg+"]]", 0)
	case "SAY":
		return true, t.sleep(a.o.Think) && t.say(orElse(s.arg, done), 0)
	case "QUOTE":
		text := ""
		return true, t.do(func() { text = "Here is what it showed:\n\n" + a.p.quote(a) }) && t.say(text, 0)
	case "TOOL":
		ok = t.useTool(orElse(s.arg, "sleep "+fmt.Sprintf("%g", s.lasting.Seconds())), s.lasting, false)
	case "CONFIRM":
		ok = t.useTool(orElse(s.arg, "touch made.txt"), 0, true)
	case "QUESTION":
		_, ok = t.ask(a.p.question(a))
	case "TRUST":
		_, ok = t.ask(a.p.trust(a))
	case "ERROR":
		return true, t.fail(orElse(s.lasting, 300*time.Millisecond))
	case "FLOOD":
		ok = t.flood(int(s.amount * (1 << 20)))
	case "LEAVE-ORPHAN":
		ok = t.do(func() { a.leaveOrphan(orElse(s.lasting, time.Minute), s.arg == "tty") })
	case "RESTART":
		ok = t.do(func() { a.leave(leaving{restart: true}) })
	case "EXIT":
		ok = t.do(func() { a.leave(leaving{code: int(s.amount)}) })
	case "CRASH":
		ok = t.do(func() { a.leave(leaving{crash: orElse(s.arg, "KILL")}) })
	}
	return false, ok
}

// say writes an answer, over so long.
func (t *turn) say(text string, over time.Duration) bool {
	if !t.do(func() { t.phase, t.saying, t.said = responding, "", true }) {
		return false
	}
	pieces := strings.SplitAfter(text, " ")
	pause := over / time.Duration(len(pieces))
	if over == 0 {
		pieces = []string{text}
	}
	for _, p := range pieces {
		if !t.do(func() { t.saying += p }) || !t.sleep(pause) {
			return false
		}
	}
	return t.do(func() {
		t.a.tell(t.a.p.answer(t.saying))
		t.last, t.saying, t.phase = t.saying, "", thinking
	})
}

// stream writes words, so many a second that they can be seen to come.
func (t *turn) stream(over time.Duration) bool {
	n := min(max(int(over/(40*time.Millisecond)), 6), 400)
	return t.say(strings.TrimSpace(strings.Repeat("word ", n)), over)
}

// useTool runs a command that is not really run, where it asks: after it was
// allowed.
func (t *turn) useTool(command string, lasting time.Duration, asks bool) bool {
	a := t.a
	use := newID("tu")
	if reason, ok := a.hooks.beforeTool(t.id, use, command); !ok {
		a.log.add(Entry{Event: Blocked, Kind: "tool", Text: reason})
		return t.do(func() { a.tell(a.p.refused(command, reason)) })
	}
	if !t.do(func() { t.tool, t.toolAt, t.asks, t.said, t.phase = command, time.Now(), asks, true, running }) {
		return false
	}
	if asks {
		var d *dialog
		if !t.do(func() { d = a.p.permission(a, command) }) {
			return false
		}
		a.hooks.wants(t.id, command)
		answer, ok := t.ask(d)
		if !ok {
			return false
		}
		if answer.effect != allow {
			t.do(func() { a.finish(t, "denied") })
			return false
		}
		if !t.do(func() { t.asks, t.toolAt = false, time.Now(); a.tell(a.p.approved(command)) }) {
			return false
		}
	}
	if !t.sleep(lasting) {
		return false
	}
	a.hooks.afterTool(t.id, use, command)
	return t.do(func() {
		a.tell(a.p.ran(command))
		t.tool, t.phase = "", thinking
	})
}

// ask shows a dialog until it is answered or went away.
func (t *turn) ask(d *dialog) (option, bool) {
	if !t.do(func() { t.said = true; t.a.show(d) }) {
		return option{}, false
	}
	select {
	case o := <-d.chosen:
		return o, t.ctx.Err() == nil
	case <-t.ctx.Done():
		return option{}, false
	}
}

// fail retries for so long, and then gives the turn up.
func (t *turn) fail(over time.Duration) bool {
	for i := range 4 {
		if !t.do(func() { t.phase, t.attempt = retrying, i+1 }) || !t.sleep(over/4) {
			return false
		}
	}
	t.a.hooks.failed(t.id)
	t.do(func() { t.a.tell(t.a.p.failed()); t.a.finish(t, "failed") })
	return false
}

// flood writes so many bytes past the screen, a piece at a time, so that an
// interrupt can still come between.
func (t *turn) flood(total int) bool {
	line := strings.Repeat("The quick brown fox, \x1b[31mred\x1b[39m, 世界 ", 2) + "\r\n"
	piece := strings.Repeat(line, 1+32<<10/len(line))
	for total > 0 {
		n := min(total, len(piece))
		if n < len(piece) {
			n = max(strings.LastIndexByte(piece[:n], '\n')+1, min(total, len(line)))
		}
		if !t.do(func() { t.said = true; t.a.screen.raw(piece[:n]) }) {
			return false
		}
		total -= max(n, 1)
	}
	return t.do(func() { t.a.screen.forget() })
}
