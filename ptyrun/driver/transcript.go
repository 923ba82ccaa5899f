package driver

import (
	"cmp"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
)

// matchLength is the number of visible characters to compare.
const matchLength = 20

// HasInBox reports whether the typed text is in the input box: its start, its end, or the placeholder of a long paste.
func (d *Driver) HasInBox(l Look, text string) bool {
	want := RemoveBlanks(text)
	if l.Modes.Sync || want == "" {
		return false
	}
	if d.Plain {
		return strings.HasSuffix(typedText(&l), lastRunes(want, matchLength))
	}
	p := d.lookFor(&l).findBox(&l)
	return p != nil && d.matchesDraft(p.draft, want)
}

// matchesDraft reports whether draft has the start or end of want, or is the placeholder of a paste.
func (d *Driver) matchesDraft(draft, want string) bool {
	has := RemoveBlanks(draft)
	return has != "" && (strings.HasPrefix(has, firstRunes(want, matchLength)) || strings.HasSuffix(has, lastRunes(want, matchLength)) || hasAny(draft, d.screen.Box.Pasted))
}

// typedText returns the text before the cursor and a few rows above it, without blanks.
func typedText(l *Look) string {
	return l.solidRows(l.CursorY-8, l.CursorY) + RemoveBlanks(l.beforeCursor())
}

// HasAccepted reports whether the program has accepted the text, which was in the box before, as a message: it has left
// the box, and either the agent is busy or the text is in the transcript or in the queue.
func (d *Driver) HasAccepted(l Look, text string) bool {
	if l.Modes.Sync {
		return false
	}
	want := RemoveBlanks(text)
	if d.Plain {
		end := lastRunes(want, matchLength)
		r := d.Read(l, Reading{memory: memory{usesPaste: true}})
		return r.Activity == reducer.ToolRunning || r.Activity == reducer.AwaitingInput ||
			!strings.HasSuffix(typedText(&l), end) && strings.Contains(l.solidRows(0, l.CursorY), end)
	}
	start := want
	if line, _, _ := strings.Cut(text, "\n"); len(RemoveBlanks(line)) >= matchLength {
		start = RemoveBlanks(line) // our first line, with the message's ID
	}
	t := d.lookFor(&l)
	p := t.findBox(&l)
	r := t.Read(l, Reading{})
	switch {
	case r.Dialog != nil:
		return t.showsMessage(&l, len(l.Lines), start) // the dialog may have swallowed it
	case p == nil || p.draft != "" && t.matchesDraft(p.draft, want):
		return false
	}
	return r.NotPromptReason == control.GateBusy || t.showsMessage(&l, p.top, start)
}

// ShowsAbove reports whether a row above the box has a text. The box may hold the same one, half written.
func (d *Driver) ShowsAbove(l Look, text string) bool {
	t := d.lookFor(&l)
	end := len(l.Lines)
	if box := t.findBox(&l); box != nil {
		end = box.top
	}
	return slices.ContainsFunc(l.Lines[:end], func(row string) bool { return strings.Contains(RemoveBlanks(row), RemoveBlanks(text)) })
}

// showsMessage reports whether a message above row y starts with start, or the last one is the placeholder of a paste.
func (d *Driver) showsMessage(l *Look, y int, start string) bool {
	isLast := true
	for y, rule := range d.messagesAbove(l, y) {
		isPasted := isLast && startsAny(withoutGlyph(l.line(y), rule), d.screen.Box.Pasted)
		if isPasted || strings.HasPrefix(d.messageText(l, y, rule), firstRunes(start, 3*matchLength)) {
			return true
		}
		isLast = false
	}
	return false
}

// messagesAbove yields the first row of each message above row y, newest first, and its rule.
func (d *Driver) messagesAbove(l *Look, y int) iter.Seq2[int, *agents.Row] {
	return func(yield func(int, *agents.Row) bool) {
		for y--; y >= 0; y-- {
			if r := d.ruleOf(l, y); r != nil && r.Kind == agents.MessageRow && !yield(y, r) {
				return
			}
		}
	}
}

// messageText returns the text, without blanks, of the message that starts in row y.
func (d *Driver) messageText(l *Look, y int, rule *agents.Row) string {
	text := RemoveBlanks(withoutGlyph(l.line(y), rule))
	for n := y + 1; n < y+12; n++ {
		if k := d.kindOf(l, n); k != otherRow && !(d.screen.EveryRow && k == agents.MessageRow) {
			break
		}
		text += RemoveBlanks(withoutGlyph(l.line(n), rule))
	}
	return text
}

// withoutGlyph returns a row of a message without what the program draws before its text.
func withoutGlyph(line string, rule *agents.Row) string {
	return strings.TrimLeft(strings.TrimPrefix(line, rule.Prefix), " ❯›>┃")
}

// ClearDraft returns the keys, one write each, that delete a draft with the cursor at its end. Ctrl-U deletes to the
// start of a line, Backspace then joins it to the line above.
func (d *Driver) ClearDraft(draft string) [][]byte {
	if d.Plain {
		return [][]byte{[]byte("\x05\x15")}
	}
	var keys [][]byte
	for range min(1+strings.Count(draft, "\n"), 500) {
		keys = append(keys, []byte("\x15"), []byte("\x7f"))
	}
	return keys
}

// IsTerminalAnswer reports whether draft is a part of a terminal's answer to a query, such as "62;22c", which arrived
// late and was taken for typing. The caller may delete it.
func (d *Driver) IsTerminalAnswer(draft string) bool {
	return terminalAnswer.MatchString(RemoveBlanks(draft))
}

var terminalAnswer = regexp.MustCompile(`^[?>[]*[0-9]+;[0-9;]*[cR]$`)

// Response returns the answer to prompt in a transcript, or "". For an agent that is its text after the last message
// that starts like prompt, without tools, spinners and boxes; for a plain program it is the rows between the command
// and the next prompt. isCut means that earlier rows are lost. If the prompt is among them, Response returns the rest
// of the answer after a line "…".
func (d *Driver) Response(l Look, prompt string, isCut bool) string {
	if d.Plain {
		return plainResponse(l.Lines, prompt, isCut)
	}
	d = d.lookFor(&l)
	end := d.boxRow(&l)
	answer, first := "", d.rowAfterMessage(&l, prompt, end)
	if isCut && first == 0 {
		first = l.rowAfterCutMessage(prompt)
	}
	isInAnswer := isCut && first == 0
	for y := first; y < end; y++ {
		line, rule := l.line(y), d.ruleOf(&l, y)
		isText := rule != nil && rule.Kind == agents.TextRow
		isRest := isInAnswer && (isText || rule == nil && (blank(line) || margin(line) >= d.screen.Indent))
		switch {
		case isText && !isInAnswer:
			isInAnswer = true
			answer += "\n\n" + d.restText(line)
		case isRest:
			answer += "\n" + d.restText(line)
		case rule != nil && (rule.Kind == agents.AnswerRow || rule.Kind == agents.ErrorRow && d.mayBeAnswer(&l, rule, y)):
			isInAnswer = true
			answer += "\n\n" + answerText(line, rule)
		default:
			isInAnswer = false
		}
	}
	answer = strings.Trim(blankLines.ReplaceAllString(answer, "\n\n"), "\n")
	if isCut && first == 0 && answer != "" {
		return cutMark + "\n" + answer
	}
	return answer
}

var blankLines = regexp.MustCompile(`\n{3,}`)

// boxRow returns the first row of the input box, below the transcript.
func (d *Driver) boxRow(l *Look) int {
	transcript := *l
	transcript.CursorX = -1
	if p := d.findBox(&transcript); p != nil {
		return max(0, p.top)
	}
	return len(l.Lines)
}

// cutMark is the first line of an answer whose start is lost.
const cutMark = "…"

// answerText returns the text of an answer's first row without the mark.
func answerText(line string, rule *agents.Row) string {
	line = strings.TrimPrefix(line, cmp.Or(rule.Prefix, firstRunes(line, 1)))
	return skipRunes(line, min(1, margin(line)))
}

// restText returns the text of another row of an answer without the indent.
func (d *Driver) restText(line string) string {
	return skipRunes(line, min(d.screen.Indent, margin(line)))
}

// rowAfterMessage returns the row after the last message above row end that starts like prompt, or if there is none, after the
// last message.
func (d *Driver) rowAfterMessage(l *Look, prompt string, end int) int {
	want := firstRunes(RemoveBlanks(prompt), matchLength)
	last := -1
	for y, rule := range d.messagesAbove(l, end) {
		isIt := strings.HasPrefix(d.messageText(l, y, rule), want)
		if last < 0 || isIt {
			last = y
		}
		if isIt {
			break
		}
	}
	last++
	for last > 0 && d.kindOf(l, last) == otherRow && !blank(l.line(last)) {
		last++ // the rest of a message of several rows
	}
	return last
}

// rowAfterCutMessage returns the row after a message whose first rows have scrolled away, or 0: the first rows are the end of
// prompt, with a blank one below. Letters and digits count alone, since a message may be drawn as Markdown.
func (l *Look) rowAfterCutMessage(prompt string) int {
	want, seen := lettersOf(prompt), ""
	for y, line := range l.Lines {
		seen += lettersOf(line)
		if seen != "" && strings.HasSuffix(want, seen) && blank(l.line(y+1)) {
			return y + 1
		}
	}
	return 0
}

func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// plainResponse returns the rows between the command, after a prompt, and the last row, which is the next prompt.
func plainResponse(lines []string, prompt string, isCut bool) string {
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	command := strings.Split(strings.Trim(prompt, "\n"), "\n")
	want := RemoveBlanks(command[0])
	if len(lines) < 2 || want == "" {
		return ""
	}
	last := len(lines) - 1
	next := RemoveBlanks(lines[last])
	for y := last - 1; y >= 0; y-- {
		text := ""
		for end := y + 1; end <= last && len(text) <= len(want)+120; end++ { // the command may be wrapped
			text += RemoveBlanks(lines[end-1])
			before, ok := strings.CutSuffix(text, want)
			if !ok || before != next && somePrompt.FindString(before+" ") != before+" " {
				continue
			}
			for _, more := range command[1:] {
				if end < last && strings.HasSuffix(RemoveBlanks(lines[end]), RemoveBlanks(more)) {
					end++
				}
			}
			return strings.Trim(strings.Join(lines[end:last], "\n"), "\n")
		}
	}
	if isCut {
		return cutMark + "\n" + strings.Trim(strings.Join(lines[:last], "\n"), "\n")
	}
	return ""
}
