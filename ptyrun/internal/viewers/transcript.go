package viewers

import (
	"strings"

	"github.com/agentteammail/atm/internal/letter"
)

// Marks at the start of a line of a transcript. What belongs to the line before is indented.
const (
	MarkNote   = "- "
	markSaid   = "● "
	MarkTool   = "* "
	MarkPrompt = "› "
	MarkAsked  = "? "
	indent     = "  "
)

const (
	maxTranscript     = 500      // lines that are kept
	maxTranscriptText = 1 << 20  // bytes of them
	maxTranscriptLine = 16 << 10 // bytes, after which words go on in the next line
	maxLineFeeds      = 2        // behind words, if others follow
)

// transcript is what an agent without a terminal does, as lines of text for people. Nothing in a line acts on a terminal,
// and whatever the agent says is behind a mark or indented. print and say return the bytes that show what is new.
type transcript struct {
	lines     []string // the last ones
	size      int      // bytes of them
	isOpen    bool     // the last line is the agent's words, which may go on
	lineFeeds string   // that came behind them
}

// print adds a text, the first line behind a mark.
func (t *transcript) print(mark, text string) (shown string) {
	if t.isOpen {
		shown = "\r\n"
	}
	t.isOpen, t.lineFeeds = false, ""
	for line := range strings.SplitSeq(strings.Trim(shownText(text), "\n"), "\n") {
		t.add(mark + line)
		shown += mark + line + "\r\n"
		mark = indent
	}
	return shown
}

// say adds words of the agent, which go on in the line of those before. Line feeds around all of them are left out.
func (t *transcript) say(words string) (shown string) {
	words = t.lineFeeds + shownText(words)
	rest := strings.TrimRight(words, "\n")
	t.lineFeeds = words[len(rest):][:min(len(words)-len(rest), maxLineFeeds)]
	mark := indent
	if !t.isOpen {
		mark, rest = markSaid, strings.TrimLeft(rest, "\n")
	}
	if rest == "" {
		return ""
	}
	for i, line := range strings.Split(rest, "\n") {
		last := len(t.lines) - 1
		switch isNext := i > 0 || t.isOpen && len(t.lines[last]) > maxTranscriptLine; {
		case t.isOpen && !isNext:
			t.lines[last] += line
			t.size += len(line)
			shown += line
		default:
			if t.isOpen {
				shown += "\r\n"
			}
			t.isOpen = true
			t.add(mark + line)
			shown += mark + line
			mark = indent
		}
	}
	return shown
}

func (t *transcript) add(line string) {
	t.lines = append(t.lines, line)
	for t.size += len(line); len(t.lines) > maxTranscript || t.size > maxTranscriptText && len(t.lines) > 1; t.lines = t.lines[1:] {
		t.size -= len(t.lines[0])
	}
}

// tail returns the last lines.
func (t *transcript) tail(n int) []string {
	return append([]string(nil), t.lines[max(0, len(t.lines)-n):]...)
}

// drawn returns the bytes that show the last lines.
func (t *transcript) drawn(n int) []byte {
	text := strings.Join(t.tail(n), "\r\n")
	if text != "" && !t.isOpen {
		text += "\r\n"
	}
	return []byte(text)
}

// shownText escapes whatever acts on a terminal but line feeds.
func shownText(s string) string { return letter.Reveal(withoutTabs.Replace(s)) }

var withoutTabs = strings.NewReplacer("\t", indent+indent)
