package fakeagent

import (
	"bytes"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// settleAfter is how long a lone ESC may be the beginning of something.
const settleAfter = 25 * time.Millisecond

// A read of so many bytes may be the beginning of a paste without marks, which
// the terminal's buffers cut up; it ends with a pause.
const (
	burst      = 200
	burstPause = 100 * time.Millisecond
)

// read brings what the terminal sends to the loop, until the terminal is gone
// or it is told to be deaf.
func (a *agent) read() {
	buf := make([]byte, 64<<10)
	left, deaf := a.o.Deaf, a.o.Deaf > 0
	for {
		room := buf
		if deaf && left < len(room) {
			room = buf[:left]
		}
		n, err := os.Stdin.Read(room)
		at := time.Now()
		if n > 0 {
			p := bytes.Clone(room[:n])
			a.events <- func() { a.received(p, at) }
		}
		if err != nil || n == 0 {
			a.events <- a.hungUp
			return
		}
		if left -= n; !deaf || left > 0 {
			continue
		}
		a.events <- func() { a.log.add(Entry{Event: Deaf}) }
		if a.o.DeafFor == 0 {
			return
		}
		time.Sleep(a.o.DeafFor)
		deaf = false
	}
}

// received is what one read brought.
func (a *agent) received(p []byte, at time.Time) {
	if !a.opened {
		a.log.input(Lost, p)
		return
	}
	a.log.input(Input, p)
	a.reads++
	if a.p.guess > 0 && (len(a.held) > 0 || len(p) >= burst && bytes.IndexByte(p, 0x1b) < 0) {
		// Much at once may be a paste; what follows closely belongs to it.
		a.held = append(a.held, p...)
		n := a.reads
		a.after(burstPause, func() {
			if a.reads == n {
				p := a.held
				a.held = nil
				a.feed(p, at)
			}
		})
		return
	}
	a.feed(p, at)
}

func (a *agent) feed(p []byte, at time.Time) {
	a.at = at
	for _, k := range a.keys.feed(p) {
		a.keyed(k)
	}
	if a.keys.half() {
		n := a.reads
		a.after(settleAfter, func() {
			if a.reads == n {
				for _, k := range a.keys.settle() {
					a.keyed(k)
				}
			}
		})
	}
}

// keyed does what a keystroke does. It always takes it.
func (a *agent) keyed(k keystroke) bool {
	if a.going != nil {
		return true
	}
	if k.name == "reply" {
		a.replied(k.text)
		return true
	}
	if a.dialog != nil && a.inDialog(k) {
		return true
	}
	switch k.name {
	case "text":
		a.typed(k.text)
	case "paste":
		a.pasted(k.text)
	case "newline":
		a.typed("\n")
	case "tab":
	case "enter":
		a.enter()
	case "esc":
		a.escape()
	case "backspace":
		a.draft.backspace()
	case "ctrl-u":
		a.draft.cutLine()
	case "ctrl-c":
		a.controlC()
	case "ctrl-d":
		if a.draft.empty() && a.turn == nil {
			a.leave(leaving{})
		}
	case "up":
		// What waits comes back to be edited.
		if n := len(a.queue); n > 0 && a.draft.empty() {
			a.draft.typed(a.queue[n-1])
			a.queue = a.queue[:n-1]
		}
	}
	return true
}

// replied is an answer of the terminal's, or what it reports by itself.
func (a *agent) replied(s string) {
	a.log.add(Entry{Event: Reply, Text: s})
	if a.awaited == "" || !strings.HasPrefix(s, "\x1b[") {
		return
	}
	a.awaited = strings.ReplaceAll(a.awaited, s[len(s)-1:], "")
	if a.awaited == "" {
		a.greet()
	}
}

// losing takes off a text what is to be lost.
func (a *agent) losing(s string) string {
	cut := 0
	for a.drop > 0 && cut < len(s) {
		_, size := utf8.DecodeRuneInString(s[cut:])
		cut += size
		a.drop--
	}
	if cut > 0 {
		a.log.add(Entry{Event: Dropped, Text: s[:cut]})
	}
	return s[cut:]
}

func (a *agent) typed(s string) {
	a.lastText = a.at
	if s = a.losing(s); s == "" {
		return
	}
	a.draft.typed(s)
	a.log.add(Entry{Event: Typed, Text: s})
}

func (a *agent) pasted(s string) {
	// A paste that says so is no burst of typing, and ends one.
	a.lastText = time.Time{}
	if a.o.SwallowPaste {
		a.lastText = a.at
	}
	if s = a.losing(s); s == "" {
		return
	}
	a.log.add(Entry{Event: Typed, Kind: "paste", Text: s})
	lines, chars := orElse(a.o.PlaceholderLines, a.p.lines), orElse(a.o.PlaceholderChars, a.p.chars)
	tooLong := lines > 0 && strings.Count(s, "\n") >= lines
	tooWide := chars > 0 && utf8.RuneCountInString(s) > chars
	if a.p.placeholder == nil && (tooLong || tooWide) {
		a.p.placeholder = claude().placeholder
	}
	if tooLong || tooWide {
		a.draft.pastes++
		a.draft.pasted(s, a.p.placeholder(a.draft.pastes, s))
		return
	}
	a.draft.typed(s)
}

// enter is Return at the prompt.
func (a *agent) enter() {
	swallow := orElse(a.o.Swallow, a.p.swallow)
	if swallow > 0 && a.at.Sub(a.lastText) < swallow {
		a.log.add(Entry{Event: Swallowed})
		a.lastText = a.at
		a.draft.typed("\n")
		return
	}
	if a.ignore > 0 {
		a.ignore--
		a.log.add(Entry{Event: Ignored})
		return
	}
	text := a.draft.text()
	if strings.TrimSpace(text) == "" || !a.ready {
		return
	}
	if a.turn == nil {
		a.draft.clear()
		a.begin(text)
		return
	}
	switch orElse(a.o.Busy, a.p.busy) {
	case "queue":
		a.draft.clear()
		a.queue = append(a.queue, text)
		a.log.add(Entry{Event: Queued, Text: text})
	case "steer":
		a.draft.clear()
		a.log.add(Entry{Event: Steered, Text: text})
		a.tell(a.p.asked(text))
		a.turn.more = append(a.turn.more, steps(text)...)
	case "ignore":
		a.log.add(Entry{Event: Refused, Text: text})
	}
}

func (a *agent) escape() {
	if a.turn == nil {
		return
	}
	if orElse(a.o.Escs, a.p.escs) > 1 && !a.twice("esc", 5*time.Second) {
		a.remark("again to interrupt", 5*time.Second)
		return
	}
	delete(a.lastKey, "esc")
	a.hint = ""
	a.interrupt()
}

// controlC is the key; what `kill -INT` does is another matter.
func (a *agent) controlC() {
	exits := orElse(a.o.CtrlC, a.p.ctrlC) == "exit"
	switch {
	case a.turn != nil && !exits:
		a.interrupt()
	case a.turn == nil && !a.draft.empty():
		a.log.add(Entry{Event: Cleared, Text: a.draft.text()})
		a.draft.clear()
	case exits || a.twice("ctrl-c", 2*time.Second):
		a.leave(leaving{})
	case a.p.name == "gemini":
		a.remark("Press Ctrl+C again to exit.", 2*time.Second)
	default:
		a.remark("Press Ctrl-C again to exit", 2*time.Second)
	}
}

// withoutQueries leaves out of a greeting what a terminal would answer.
func withoutQueries(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		n, query := sequence(s)
		if !query {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// sequence is the length of what s begins with, and whether a terminal answers.
func sequence(s string) (n int, query bool) {
	switch {
	case len(s) < 3 || s[0] != 0x1b:
		return 1, false
	case s[1] == '[':
		n = 2 + strings.IndexFunc(s[2:], func(r rune) bool { return r >= 0x40 }) + 1
		body, final := s[2:n-1], s[n-1]
		return n, final == 'c' || final == 'n' || final == 'q' && strings.HasPrefix(body, ">") ||
			final == 'p' || final == 'u' && body == "?" || final == 't' || final == 'm' && strings.HasSuffix(body, "?")
	case s[1] == ']' || s[1] == 'P' || s[1] == '_':
		bel, st := strings.IndexByte(s, 0x07), strings.Index(s, "\x1b\\")
		if n = bel + 1; st >= 0 && (bel < 0 || st < bel) {
			n = st + 2
		}
		return max(n, 2), true
	}
	return 2, false
}
