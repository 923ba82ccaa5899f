package acp

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/wire"
)

// Marks at the start of a row.
const (
	note   = "- "
	says   = "● "
	tool   = "* "
	user   = "› "
	indent = "  "
)

// optionKeys are the keys of the options, in order.
const optionKeys = "123456789abcdefghijk"

const (
	maxLines = 500      // of the transcript that are kept
	maxText  = 1 << 20  // bytes of them
	maxWords = 16 << 10 // bytes of a line of the agent's
)

// screen is a transcript and below it live rows, which each frame draws again. Every row fits the terminal, so frames are
// right for each terminal that is at least as large.
type screen struct {
	cols, rows int
	lines      []line // the last of the transcript
	size       int    // bytes of the lines
	words      string // of the agent, below the lines: the next ones go on here
	final      int    // bytes of the words that are in rows above the live ones
	isSaying   bool   // the last line is the agent's

	undrawn strings.Builder // rows of the transcript
	live    int             // the number of live rows
	last    string          // the live rows, as drawn
	frames  uint64          // that were drawn
}

type line struct{ mark, text string }

func (s *screen) resize(cols, rows int) {
	if cols < 1 || rows < 1 {
		cols, rows = 80, 24
	}
	s.cols, s.rows = max(cols, 20), max(rows, 8)
}

// plain escapes the control characters except line feeds.
func plain(s string) string {
	return letter.Reveal(withoutTabs.Replace(s))
}

var withoutTabs = strings.NewReplacer("\r\n", "\n", "\t", "    ")

// print adds a text with a mark to the transcript.
func (s *screen) print(mark, text string) {
	s.endText()
	if text = strings.Trim(plain(text), "\n"); text == "" {
		return
	}
	s.isSaying = false
	for text := range strings.SplitSeq(text, "\n") {
		s.add(line{mark, text})
		mark = indent
	}
}

func (s *screen) add(l line) {
	s.undrawn.WriteString(s.wrap(l) + "\r\n")
	s.final = 0
	s.lines = append(s.lines, l)
	for s.size += len(l.text); len(s.lines) > maxLines || s.size > maxText && len(s.lines) > 1; s.lines = s.lines[1:] {
		s.size -= len(s.lines[0].text)
	}
}

// wrap draws the rows of a line that are not final yet, without the last one, which it returns.
func (s *screen) wrap(l line) string {
	rest := l.text[min(s.final, len(l.text)):]
	for n := s.fitting(rest); n < len(rest); n = s.fitting(rest) {
		s.undrawn.WriteString(s.before(l) + rest[:n] + "\r\n")
		s.final += n
		rest = rest[n:]
	}
	if rest == "" {
		return ""
	}
	return s.before(l) + rest
}

// fitting returns how many bytes of a text fit into a row. Terminals do not agree on how wide emoji are: the most counts.
func (s *screen) fitting(text string) (n int) {
	for room := s.cols - len(indent); n < len(text); {
		character, columns := ansi.FirstGraphemeCluster(text[n:], ansi.GraphemeWidth)
		if room -= max(columns, letter.Columns(character)); room < 0 && n > 0 {
			break
		}
		n += len(character)
	}
	return n
}

// before returns what stands before the next row of a line.
func (s *screen) before(l line) string {
	if s.final > 0 {
		return indent
	}
	return l.mark
}

// say adds words of the agent. Line feeds at the beginning and the end of what it says are left out.
func (s *screen) say(text string) {
	if s.words == "" {
		text = strings.TrimLeft(text, "\r\n")
	}
	for s.words += text; ; {
		said := strings.TrimRight(s.words, "\r\n")
		end := strings.IndexByte(said, '\n')
		next := end + 1
		if end < 0 || end > maxWords {
			if len(said) <= maxWords {
				s.words = s.words[:min(len(s.words), len(said)+maxWords)]
				return
			}
			end = len(strings.ToValidUTF8(said[:maxWords], ""))
			next = end
		}
		s.addWords(s.words[:end])
		s.words = s.words[next:]
	}
}

func (s *screen) addWords(words string) {
	s.add(line{s.wordsMark(), plain(strings.TrimSuffix(words, "\r"))})
	s.isSaying = true
}

// wordsMark is the mark before the words. After others they get none.
func (s *screen) wordsMark() string {
	if s.isSaying {
		return indent
	}
	return says
}

// endText ends the agent's words.
func (s *screen) endText() {
	if words := strings.TrimRight(s.words, "\r\n"); words != "" {
		s.addWords(words)
	}
	s.words = ""
}

// drawnWords are the words as far as the next ones cannot change how they are drawn.
func (s *screen) drawnWords() line {
	return line{s.wordsMark(), plain(strings.TrimRightFunc(s.words, letter.IsHidden))}
}

// frame draws what is new in the transcript and below it the live rows, with the cursor at their end; nil: nothing is new.
func (s *screen) frame(cursor string, rows []string) []byte {
	if words := s.drawnWords(); words.text != "" {
		rows = append([]string{s.wrap(words)}, rows...)
	}
	last := strings.Join(rows, "\r\n") + cursor
	if s.undrawn.Len() == 0 && last == s.last {
		return nil
	}
	before := "\x1b[?2026h\x1b[?25l\r" + strings.Repeat("\x1b[A", max(0, s.live-1)) + "\x1b[J"
	if s.frames == 0 {
		before = "\x1b[?2004h" + before // pasted text comes between marks
	}
	frame := before + s.undrawn.String() + last + "\x1b[?2026l"
	s.undrawn.Reset()
	s.live, s.last = len(rows), last
	s.frames++
	return []byte(frame)
}

// draw draws what has changed.
func (a *Agent) draw() {
	if frame := a.screen.frame(a.liveRows()); frame != nil {
		a.tell(Event{Output: frame, Seq: a.screen.frames})
	}
}

// liveRows returns the rows below the transcript and what shows the cursor.
func (a *Agent) liveRows() (cursor string, rows []string) {
	const showCursor = "\x1b[?25h"
	cols := a.screen.cols
	draft := strings.Join(strings.Fields(plain(strings.ToValidUTF8(a.draft[max(0, len(a.draft)-8*cols):], ""))), " ")
	for letter.Columns(draft) > cols-4 { // its end is shown
		_, n := utf8.DecodeRuneInString(draft)
		draft = draft[n:]
	}
	box := user + draft
	switch {
	case a.isOver:
		return "\x1b[?2004l" + showCursor, nil
	case a.question != nil && a.draft != "":
		rows := a.screen.questionRows(&a.question.Dialog)
		rows[len(rows)-1] = letter.Fit("Ctrl-U clears your line; then its number or letter answers", cols-1)
		if len(rows) >= a.screen.rows {
			rows = slices.Delete(rows, 1, 2)
		}
		return showCursor, append(rows, box)
	case a.question != nil:
		return "", a.screen.questionRows(&a.question.Dialog)
	case a.session == "":
		return "", []string{indent + "…"}
	case a.turn != nil:
		return showCursor, []string{letter.Fit("… working, Ctrl-C ends the turn", cols-1), box}
	}
	return showCursor, []string{box}
}

// questionRows draws a question for people. A long one is cut, so that there is room for the options.
func (s *screen) questionRows(d *driver.Dialog) []string {
	text := d.Prompt
	if d.Kind == "permission" && d.Input != d.Prompt {
		text += "\n" + d.Input
	}
	options := d.Options[:min(len(d.Options), len(optionKeys), s.rows-5)]
	rows, room := []string{"? " + d.Kind}, s.rows-len(options)-2
	for line := range strings.SplitSeq(plain(wire.Clip(text, 4*s.cols*s.rows)), "\n") {
		line = indent + line // so that it cannot pass for an option, or for a row of ours
		for n := s.fitting(line); len(indent) < n && n < len(line); n = s.fitting(line) {
			rows, line = append(rows, line[:n]), indent+line[n:]
		}
		rows = append(rows, line)
	}
	if len(rows) > room+1 {
		rows = append(rows[:room], "…")
	}
	for _, o := range options {
		rows = append(rows, letter.Fit(o.Keys+". "+o.Label, s.cols-len(indent)))
	}
	return append(rows, letter.Fit("its number or letter answers, Esc ends the turn", s.cols-1))
}

// Resize sets the size of people's terminals.
func (a *Agent) Resize(cols, rows int) { a.do(func() { a.screen.resize(cols, rows) }) }

// Repaint returns the bytes that draw the last lines of the transcript and the live rows on an empty terminal. It shows
// everything up to the Output with that number: what follows there is the next one.
func (a *Agent) Repaint(lines int) (p []byte, seq uint64) {
	a.do(func() {
		a.draw()
		s := &a.screen
		t := screen{cols: s.cols, rows: s.rows}
		for _, l := range s.lines[max(0, len(s.lines)-lines):] {
			t.add(l)
		}
		t.words, t.isSaying = s.words, s.isSaying
		p, seq = t.frame(a.liveRows()), s.frames
	})
	return p, seq
}

// Lines returns the last lines of the transcript and the live rows as plain text.
func (a *Agent) Lines() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range append(slices.Clip(a.screen.lines), a.screen.drawnWords()) {
		if l.text != "" {
			l.text = l.mark + l.text
		}
		lines = append(lines, l.text)
	}
	if a.screen.words == "" {
		lines = lines[:len(lines)-1]
	}
	_, live := a.liveRows()
	return append(lines, live...)
}
