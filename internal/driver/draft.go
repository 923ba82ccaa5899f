package driver

import (
	"regexp"
	"strings"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/reducer"
)

// matchLength is how many visible characters of a text are compared.
const matchLength = 20

// HasInBox reports whether a typed text is in the input box: its start, its end, or what stands there for a long paste.
func (d *Driver) HasInBox(l Look, text string) bool {
	want := RemoveBlanks(text)
	if l.Modes.Sync || want == "" {
		return false
	}
	if d.Plain {
		return strings.HasSuffix(typedText(&l), lastRunes(want, matchLength))
	}
	draft, ok := d.draftOn(&l)
	return ok && isDraftOf(draft, want)
}

// isDraftOf reports whether a draft has the start or the end of a text without blanks, or stands for a paste.
func isDraftOf(draft, want string) bool {
	has := RemoveBlanks(draft)
	return has != "" && (strings.HasPrefix(has, firstRunes(want, matchLength)) || strings.HasSuffix(has, lastRunes(want, matchLength)) || IsPaste(draft))
}

// IsPaste reports whether a draft stands for a long paste: "[Pasted text #1 +12 lines]".
func IsPaste(draft string) bool { return pasted.MatchString(strings.TrimSpace(draft)) }

var pasted = regexp.MustCompile(`^(?:\[[Pp]aste\S* [^\[\]]*\]|Pasted \+\d+ lines?)$`)

// typedText returns the text before the cursor and a few rows above it, without blanks.
func typedText(l *Look) string {
	rows := l.Lines[min(max(l.CursorY-8, 0), len(l.Lines)):min(max(l.CursorY, 0), len(l.Lines))]
	return RemoveBlanks(strings.Join(rows, "")) + RemoveBlanks(l.typedRow())
}

// HasAccepted reports whether the program has accepted the text, which was in its box before, as a message: it has left the
// box, and the program works or asks.
func (d *Driver) HasAccepted(l Look, text string) bool {
	if l.Modes.Sync {
		return false
	}
	r, want := d.Read(l, Reading{}), RemoveBlanks(text)
	if d.Plain {
		return r.Activity == reducer.ToolRunning || r.Activity == reducer.AwaitingInput || r.Prompt && !strings.HasSuffix(typedText(&l), lastRunes(want, matchLength))
	}
	isGone := r.Draft == "" || !isDraftOf(r.Draft, want)
	return isGone && (r.NotPromptReason == control.GateBusy || r.NotPromptReason == control.GateDialog)
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

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}
