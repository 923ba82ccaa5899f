package ptyrun

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

const maxLetter = 8 << 10

func letterText(items []*mailbox.Item, repeats map[wire.ID]bool, l *letter.Renderer) string {
	var b strings.Builder
	for i, f := range mailbox.Flags(items, nil) {
		f.Repeat = repeats[items[i].ID]
		b.WriteString(oneLetter(items[i].Message, f, l))
	}
	return strings.TrimRight(b.String(), "\n")
}

// letterOf is a message under a line of ours. That begins with what no program takes for a command, and
// every line of the body is indented: no body can start one, or pass for such a line.
func oneLetter(m *wire.Message, f letter.Flags, l *letter.Renderer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[atm %s]", l.Header(m, f))
	switch {
	case m.Type == wire.TypeAck:
	case m.ReplyWanted == "no" && m.RequiresAck:
		fmt.Fprintf(&b, " acknowledge: atm ack %s", l.Short(m.ID))
	case m.ReplyWanted == "no":
	default:
		fmt.Fprintf(&b, " answer: atm reply %s \"…\"", l.Short(m.ID))
	}
	b.WriteByte('\n')
	body, left := l.Body(bodyToType(m), maxLetter-b.Len()-120, 0)
	b.Write(body)
	if left > 0 {
		fmt.Fprintf(&b, "… %s more: atm show %s --raw\n", letter.Size(int64(left)), l.Short(m.ID))
	}
	return b.String()
}

// inWords is a message's body as it can be typed, and of what people say about a draft a sentence: "approve draft
// 6f1c…" would read as if the agent were to do so.
func bodyToType(m *wire.Message) string {
	in, _ := session.InputOf(m)
	what := "Your draft " + string(in.DraftID)
	if in.ArtifactURI != nil {
		what = *in.ArtifactURI + " in your draft " + string(in.DraftID)
	}
	switch {
	case in.Kind == "approve":
		return what + " is approved."
	case in.Kind == "reject" && in.Reason != "":
		return what + " is rejected: " + in.Reason
	case in.Kind == "reject":
		return what + " is rejected."
	}
	return Clean(m.Body)
}

func pointerText(items []*mailbox.Item, l *letter.Renderer) string {
	var from []string
	for _, it := range items {
		if who := l.Who(it.From); !slices.Contains(from, who) {
			from = append(from, who)
		}
	}
	return fmt.Sprintf("[atm: %s from %s] run: atm read", letter.Many(len(items), "new message"), strings.Join(from, ", "))
}

// Clean makes a text fit to be typed: newline and tab stay, a carriage return becomes a newline, all other control
// characters and C1 go, what is no UTF-8 becomes U+FFFD. So no text can end a paste, press a key or send an escape.
func Clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

// The marks of a bracketed paste.
const pasteOn, pasteOff = "\x1b[200~", "\x1b[201~"

// keysOf are the bytes that put a clean text into a draft. Without bracketed paste every newline submits a
// line. A plain program is to get them so, as a shell does from a file, and its last line stays in the
// draft; for an agent the text becomes one line.
func keysOf(text string, isPaste, isPlain bool) string {
	switch {
	case isPaste:
		return pasteOn + text + pasteOff
	case isPlain:
		return strings.ReplaceAll(text, "\n", "\r")
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
}
