package driver

import (
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// pastes are how boxes show a long paste instead of its text.
var pastes = []string{"[Pasted text #", "[Pasted Content", "[Pasted ~", "[Pasted Text:", "[Pasted text:"}

// visible is how many visible characters of a text must be seen.
const visible = 20

// Taken reports whether text stands in the input box: its beginning, its end, or
// what the program shows instead of a long paste. text is as it was typed.
func (d *Driver) Taken(l Look, text string) bool {
	if l.Modes.Sync {
		return false
	}
	want := solid(text)
	if want == "" {
		return false
	}
	if d.Plain {
		return strings.HasSuffix(d.typed(&l), lastRunes(want, visible))
	}
	p, ok := d.find(&l)
	return ok && holds(p.draft, want)
}

// holds reports whether draft is text, or a part of it, or stands for it.
func holds(draft, want string) bool {
	has := solid(draft)
	if has == "" {
		return false
	}
	return strings.HasPrefix(has, firstRunes(want, visible)) || strings.HasSuffix(has, lastRunes(want, visible)) || hasAny(draft, pastes)
}

// typed is what stands before the cursor, without blanks, from a few rows above
// it on.
func (d *Driver) typed(l *Look) string {
	var b strings.Builder
	for y := max(0, l.CursorY-8); y < l.CursorY; y++ {
		b.WriteString(solid(l.line(y)))
	}
	b.WriteString(solid(l.before()))
	return b.String()
}

// Accepted reports whether text, which was Taken, has been taken as a message:
// it stands no more in the box, and the agent is busy, or the text stands in
// the transcript or among the messages that wait.
func (d *Driver) Accepted(l Look, text string) bool {
	if l.Modes.Sync {
		return false
	}
	want := solid(text)
	start := want
	if line, _, _ := strings.Cut(text, "\n"); len(solid(line)) >= visible {
		start = solid(line) // our line, with the message's id
	}
	if d.Plain {
		r := d.Read(l, Reading{memory: memory{paste: true}})
		return r.Activity == reducer.ToolRunning || r.Activity == reducer.AwaitingInput || !strings.HasSuffix(d.typed(&l), lastRunes(want, visible)) && d.above(&l, want)
	}
	p, boxed := d.find(&l)
	if boxed && p.draft != "" && holds(p.draft, want) {
		return false
	}
	r := d.Read(l, Reading{})
	switch {
	case r.Dialog != nil:
		return d.shows(&l, len(l.Lines), start) // it may have been swallowed by the dialog
	case !boxed:
		return false
	}
	return r.Why == "busy" || d.shows(&l, p.top, start)
}

// shows reports whether a message above row y begins as start does, or the
// last one is what stands for a long paste.
func (d *Driver) shows(l *Look, y int, start string) bool {
	first := firstRunes(start, 3*visible)
	last := true
	for y--; y >= 0; y-- {
		line := strings.ReplaceAll(l.line(y), "\u00a0", " ")
		if d.kindOf(line) != userRow && d.kindOf(line) != queuedRow {
			continue
		}
		if isRule(line, "▄") {
			continue
		}
		var b strings.Builder
		for n := y; n < len(l.Lines) && n < y+12; n++ {
			row := strings.TrimLeft(l.line(n), " \u00a0❯›>┃")
			if n > y && d.kindOf(l.line(n)) != other && d.box.shape != barred {
				break
			}
			b.WriteString(solid(row))
		}
		s := b.String()
		if strings.HasPrefix(s, first) || last && startsAny(strings.TrimLeft(line, " \u00a0❯›>┃"), pastes) {
			return true
		}
		last = false
	}
	return false
}

// above reports whether the text's end stands in one of the rows over the
// cursor's.
func (d *Driver) above(l *Look, want string) bool {
	var b strings.Builder
	for y := 0; y < l.CursorY; y++ {
		b.WriteString(solid(l.line(y)))
	}
	return strings.Contains(b.String(), lastRunes(want, visible))
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

// ClearDraft are the keys, one write each, that empty a box whose draft is
// ours, with the cursor at its end. Ctrl-U deletes to the start of a line;
// Backspace then joins it to the line above.
func (d *Driver) ClearDraft(draft string) [][]byte {
	if d.Plain {
		return [][]byte{[]byte("\x05\x15")}
	}
	lines := 1 + strings.Count(draft, "\n")
	keys := make([][]byte, 0, 2*lines)
	for range min(lines, 500) {
		keys = append(keys, []byte("\x15"), []byte("\x7f"))
	}
	return keys
}

// Junk reports whether draft is the rest of a terminal's answer to a query,
// which came too late to be read as one and was taken for typing: "62;22c". It
// is ours to clear.
func (d *Driver) Junk(draft string) bool {
	s := solid(draft)
	if len(s) < 3 || len(s) > 64 || !strings.ContainsAny(s, ";") {
		return false
	}
	body, end := s[:len(s)-1], s[len(s)-1]
	return (end == 'c' || end == 'R') && strings.Trim(body, "0123456789;?>[") == "" && strings.ContainsAny(body, "0123456789")
}
