package driver

import (
	"iter"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// pastePlaceholders are the prefixes of what a box shows for a long paste.
var pastePlaceholders = []string{"[Pasted text #", "[Pasted Content", "[Pasted ~", "[Pasted Text:", "[Pasted text:"}

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
	p := d.findBox(&l)
	return p != nil && matchesDraft(p.draft, want)
}

// matchesDraft reports whether draft has the start or end of want, or is the placeholder of a paste.
func matchesDraft(draft, want string) bool {
	has := RemoveBlanks(draft)
	return has != "" && (strings.HasPrefix(has, firstRunes(want, matchLength)) || strings.HasSuffix(has, lastRunes(want, matchLength)) || hasAny(draft, pastePlaceholders))
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
	p := d.findBox(&l)
	r := d.Read(l, Reading{})
	switch {
	case r.Dialog != nil:
		return d.showsMessage(&l, len(l.Lines), start) // the dialog may have swallowed it
	case p == nil || p.draft != "" && matchesDraft(p.draft, want):
		return false
	}
	return r.NotPromptReason == "busy" || d.showsMessage(&l, p.top, start)
}

// showsMessage reports whether a message above row y starts with start, or the last one is the placeholder of a paste.
func (d *Driver) showsMessage(l *Look, y int, start string) bool {
	isLast := true
	for y := range d.messagesAbove(l, y) {
		if strings.HasPrefix(d.messageText(l, y), firstRunes(start, 3*matchLength)) || isLast && startsAny(withoutGlyph(l.line(y)), pastePlaceholders) {
			return true
		}
		isLast = false
	}
	return false
}

// messagesAbove yields the first row of each message above row y, newest first, and whether the message is queued.
func (d *Driver) messagesAbove(l *Look, y int) iter.Seq2[int, bool] {
	return func(yield func(int, bool) bool) {
		for y--; y >= 0; y-- {
			k := d.kindOf(l.line(y))
			if (k == userRow || k == queuedRow) && !isRule(l.line(y), "▄") && !yield(y, k == queuedRow) {
				return
			}
		}
	}
}

// messageText returns the text, without blanks, of the message that starts in row y.
func (d *Driver) messageText(l *Look, y int) string {
	text := RemoveBlanks(withoutGlyph(l.line(y)))
	for n := y + 1; n < y+12 && (d.kindOf(l.line(n)) == otherRow || d.box.shape == barred); n++ {
		text += RemoveBlanks(withoutGlyph(l.line(n)))
	}
	return text
}

func withoutGlyph(line string) string { return strings.TrimLeft(line, " ❯›>┃") }

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
	s := RemoveBlanks(draft)
	return len(s) <= 64 && terminalAnswer.MatchString(s) && strings.Contains(s, ";") && strings.ContainsAny(s, "0123456789")
}

var terminalAnswer = regexp.MustCompile(`^[0-9;?>[]+[cR]$`)
