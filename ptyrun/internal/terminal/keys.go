package terminal

import (
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/control"
)

// The marks of a bracketed paste.
const pasteOn, pasteOff = "\x1b[200~", "\x1b[201~"

// returnKey sends the text in the draft. It is written separately, driver.SubmitDelay after the text: in one write Codex and
// Gemini CLI, and with long text Claude Code, take it for a line break.
const returnKey = "\r"

// keysOf returns the bytes that put a clean text into the draft. Without bracketed paste every newline submits a line:
// a plain program gets the lines like a shell from a file, the last one staying in the draft; an agent gets one line.
func keysOf(text string, isPaste, isPlain bool) string {
	switch {
	case isPaste:
		return pasteOn + text + pasteOff
	case isPlain:
		return strings.ReplaceAll(text, "\n", "\r")
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
}

// takesText reports whether the program gets a text as one, with its line breaks: else it gets keys, any of which may do
// something.
func (p *Terminal) takesText() bool { return p.emulator.Modes().Paste || p.driver.TakesAsIs() }

// keysOf returns the bytes that put a clean text into the draft of this program.
func (p *Terminal) keysOf(text string) []byte {
	switch isPaste := p.emulator.Modes().Paste; {
	case isPaste:
		var b []byte
		for _, piece := range p.driver.Pastes(text) {
			b = append(b, keysOf(piece, true, false)...)
		}
		return b
	case p.driver.TakesAsIs():
		return []byte(text)
	}
	return []byte(keysOf(text, false, p.driver.Plain))
}

// untypable says why a text cannot be typed; "": it can.
func untypable(text string, isPaste bool) string {
	switch {
	case text == "":
		return "the message has no text to type"
	case !isPaste && len(text) > control.MaxLine():
		return fmt.Sprintf("%d bytes do not fit into a line of this terminal", len(text))
	case len(text) > maxPasted:
		return fmt.Sprintf("%d bytes are too many to type; send them as a file: --attach", len(text))
	}
	return ""
}
