package driver

import (
	"iter"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// pastePlaceholders are how boxes show a long paste instead of its text.
var pastePlaceholders = []string{"[Pasted text #", "[Pasted Content", "[Pasted ~", "[Pasted Text:", "[Pasted text:"}

// matchLength is how many matchLength characters of a text must be seen.
const matchLength = 20

// Taken reports whether text stands in the input box: its beginning, its end, or what the program shows
// instead of a long paste. text is as it was typed.
func (d *Driver) Taken(l Look, text string) bool {
	want := Solid(text)
	if l.Modes.Sync || want == "" {
		return false
	}
	if d.Plain {
		return strings.HasSuffix(typedText(&l), lastRunes(want, matchLength))
	}
	p, ok := d.findBox(&l)
	return ok && matchesDraft(p.draft, want)
}

// matchesDraft reports whether draft is text, or a part of it, or stands for it.
func matchesDraft(draft, want string) bool {
	has := Solid(draft)
	return has != "" && (strings.HasPrefix(has, firstRunes(want, matchLength)) || strings.HasSuffix(has, lastRunes(want, matchLength)) || hasAny(draft, pastePlaceholders))
}

// typedText is what stands before the cursor and in a few rows above it, without blanks.
func typedText(l *Look) string { return l.solidRows(l.CursorY-8, l.CursorY) + Solid(l.beforeCursor()) }

// Accepted reports whether text, which was Taken, has been taken as a message: it stands no more in the
// box, and the agent is busy, or the text stands in the transcript or among the messages that wait.
func (d *Driver) Accepted(l Look, text string) bool {
	if l.Modes.Sync {
		return false
	}
	want := Solid(text)
	if d.Plain {
		end := lastRunes(want, matchLength)
		r := d.Read(l, Reading{memory: memory{usesPaste: true}})
		return r.Activity == reducer.ToolRunning || r.Activity == reducer.AwaitingInput ||
			!strings.HasSuffix(typedText(&l), end) && strings.Contains(l.solidRows(0, l.CursorY), end)
	}
	start := want
	if line, _, _ := strings.Cut(text, "\n"); len(Solid(line)) >= matchLength {
		start = Solid(line) // our line, with the message's id
	}
	p, boxed := d.findBox(&l)
	r := d.Read(l, Reading{})
	switch {
	case r.Dialog != nil:
		return d.showsMessage(&l, len(l.Lines), start) // it may have been swallowed by the dialog
	case !boxed || p.draft != "" && matchesDraft(p.draft, want):
		return false
	}
	return r.Why == "busy" || d.showsMessage(&l, p.top, start)
}

// showsMessage reports whether a message above row y begins as start does, or the last one is what stands for a long paste.
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

// messagesAbove are the first rows of the messages sent to the agent above row y, the newest first, and
// whether one still waits for the turn's end.
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

// messageText is what the message says whose first row is y, without blanks.
func (d *Driver) messageText(l *Look, y int) string {
	text := Solid(withoutGlyph(l.line(y)))
	for n := y + 1; n < y+12 && (d.kindOf(l.line(n)) == otherRow || d.box.shape == barred); n++ {
		text += Solid(withoutGlyph(l.line(n)))
	}
	return text
}

func withoutGlyph(line string) string { return strings.TrimLeft(line, " ❯›>┃") }

// ClearDraft are the keys, one write each, that empty a box whose draft is ours, with the cursor at its
// end. Ctrl-U deletes to the start of a line; Backspace then joins it to the line above.
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

// Junk reports whether draft is the rest of a terminal's answer to a query, which came too late to be read
// as one and was taken for typing: "62;22c". It is ours to clear.
func (d *Driver) Junk(draft string) bool {
	s := Solid(draft)
	return len(s) <= 64 && terminalAnswer.MatchString(s) && strings.Contains(s, ";") && strings.ContainsAny(s, "0123456789")
}

var terminalAnswer = regexp.MustCompile(`^[0-9;?>[]+[cR]$`)
