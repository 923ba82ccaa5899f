// Package letter renders messages for people and models. The command line, the hooks and the runner, which types them
// into a terminal, all use this renderer.
//
// Everybody can tell what others wrote from what atm says:
//
//   - A line that begins in column 0 is ours. A message begins with its header, and ends where the next line begins in
//     column 0.
//   - What others wrote is indented by two spaces: the body, and above it the subject, the choices and a type that is
//     none of ours, with their labels. On a terminal each row is indented, but for the rest of a URL that is longer than
//     a row: that has neither blanks nor square brackets. Escape leaves no other line break.
//   - In a line of ours, text of others is the end of it, or is in double quotes and has none inside (Quote, Name).
//   - What nobody sees is shown as an escape, and a mark by which programs tell a model who speaks is broken. The header
//     says if that happened, and how to get the exact text.
//   - Where a model gets mail within other text, the mail begins with "[atm" and ends with the line "[/atm]". What
//     others wrote never has these.
//
// Begin with Renderer.Render, or Renderer.Frame where a model reads. It reads and sends no mail.
package letter

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Limits of a page of mail. Agents' tools cut the middle out of longer output.
const (
	MaxMessages = 20
	MaxBytes    = 8 << 10
	MaxLines    = 200
)

// Renderer renders messages.
type Renderer struct {
	Now    time.Time
	Team   wire.Name // omitted from addresses
	Digits int       // of short ids, at least 6; see ShortLength
	Width  int       // of the terminal, in columns; 0: it is none
	IsPane bool      // no row may be longer than Width, also none with a URL
	Bold   bool      // headers in bold
	Whole  bool      // the whole subject, and also a single recipient
	Bytes  int       // cut a message that is larger; 0: never
	Lines  int       // cut a message that is longer, if Bytes is set too; 0: never
	Show   string    // flags of the commands that show the rest or answer, with a space in front

	// IsKept reports whether an unread message is kept from its recipient until that reads it; nil: none is.
	IsKept func(*wire.Message) bool

	// SetAnswer sets NotChosen and AnsweredBefore of a message; nil: nothing is known of what it answers.
	SetAnswer func(*wire.Message, *Flags)
}

// Flags is what a header says about a message beyond the message's own fields.
type Flags struct {
	SupersededBy wire.ID
	Withdrawn    bool
	Done         bool // was read, and no ack is owed; whether it was answered is not known
	Newer        int  // further unread messages of the same sender
	Repeat       bool // handed over before, and perhaps seen

	Kept bool // is not given to its recipient, who has to read it

	NotChosen      bool    // answers a question, with none of its choices
	AnsweredBefore wire.ID // an earlier answer of its sender's to that question

	TimesTaken int          // how often it was leased before
	IsAside    bool         // it is not given out any more
	TakenBy    wire.Address // who has leased it now; zero: nobody
	TakenUntil time.Time    // when that lease ends
}

// LimitToPage makes the renderer cut messages that are larger than a page. It returns a function that reports whether
// the next message still fits on the page, as the first one always does. The page keeps room for three more lines: how
// many messages follow, which acks are owed, and the end.
func (r *Renderer) LimitToPage() (fits func(*wire.Message) bool) {
	r.Bytes, r.Lines = MaxBytes-384, MaxLines-3
	size, lines := 0, 0
	return func(m *wire.Message) bool {
		text, first := r.Render(m, Flags{}), size == 0
		size += len(text) + 80 + len(r.Show) // for flags, and what Frame adds
		lines += bytes.Count(text, []byte{'\n'})
		return first || size <= r.Bytes && lines <= r.Lines
	}
}

// Render renders a message: header, indented text and, if that is cut, a line that says how to see the rest.
func (r *Renderer) Render(m *wire.Message, f Flags) []byte { return r.render(r.Header(m, f), m) }

func (r *Renderer) render(head string, m *wire.Message) []byte {
	size, lines := 0, 0
	if r.Bytes > 0 {
		size = max(r.Bytes-len(head)-len(r.Show)-81, 80) // 80 for the last line
		if r.Lines > 0 {
			lines = max(r.Lines-2, 1)
		}
	}
	body, left := r.Body(r.Text(m), size, lines)
	if r.Width > 0 {
		head = WrapTo(head, "", r.Width)
	}
	if r.Bold {
		head = "\x1b[1m" + head + "\x1b[m"
	}
	out := append([]byte(head+"\n"), body...)
	if left > 0 {
		out = fmt.Appendf(out, "… %s more: atm show %s --raw%s\n", Size(int64(left)), r.Short(m.ID), r.Show)
	}
	return out
}

// A Note is what a line about a message adds to its sender and age.
type Note struct {
	Text     string
	IsStrong bool // it wants the reader first
	IsTimed  bool // time changes it
}

// WantsAck is the note of a message whose ack is missing.
const WantsAck = "wants ack"

// Header renders a message's first line, without a line feed. Names are all that others chose in it, and no two of them
// are words side by side: wherever a terminal breaks the line, no row can look like another header.
func (r *Renderer) Header(m *wire.Message, f Flags) string {
	var parts []string
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	isAck, lease, origin := m.Type == wire.TypeAck, r.Lease(f), r.origin(m)

	add(true, "%s from %s", r.Short(m.ID), r.Who(m.From))
	add(true, "%s", Sent(r.Now, m))
	add(len(m.To) > 1 || r.Whole && len(m.To) == 1, "to %s", r.Recipients(m.To))
	add(m.InReplyTo != "" && isAck && m.Outcome() == "", "acks %s", r.Short(m.InReplyTo))
	add(m.InReplyTo != "" && m.Outcome() != "", "acks %s as %s", r.Short(m.InReplyTo), m.Outcome())
	add(m.InReplyTo != "" && !isAck, "answers %s", r.Short(m.InReplyTo))
	add(f.NotChosen, "not one of the choices")
	add(f.AnsweredBefore != "", "answered before: %s", r.Short(f.AnsweredBefore))
	add(isKnown[m.Type] && !isAck && m.Kind() != wire.TypeMessage, "%s", m.Type)
	add(m.Claims() != "", "claims to be %s", m.Claims())
	add(m.Urgent(), "urgent")
	add(m.RequiresAck && !f.Done, WantsAck)
	add(m.RequiresAck && f.Done, "acked")
	add(m.ReplyWanted == "no", "no answer wanted")
	add(!m.DueAt.IsZero(), "%s", r.Due(m, f.Done))
	add(m.Expired(r.Now), "expired")
	add(f.Repeat, "may be a repeat")
	add(f.Kept, "kept")
	add(lease != "", "%s", lease)
	add(f.Withdrawn, "withdrawn by its sender")
	add(f.SupersededBy != "", "superseded by %s", r.Short(f.SupersededBy))
	add(m.Supersedes != "", "replaces %s", r.Short(m.Supersedes))
	add(f.Newer > 0, "%s from %s", Many(f.Newer, "newer message"), r.Who(m.From))
	add(origin != "", "%s", origin)
	add(len(m.Attachments) > 0, "%d attached (atm show %s --save DIR)", len(m.Attachments), r.Short(m.ID))
	add(IsEscaped(m), "escaped (atm show %s --raw%s)", r.Short(m.ID), r.Show)
	return strings.Join(parts, ", ")
}

// origin says where a message came from if its sender does not: from a dropped file, or a process of another member.
func (r *Renderer) origin(m *wire.Message) string {
	switch {
	case m.IsDropped() && m.From.Agent != "drop" && m.Origin.UID != nil:
		return fmt.Sprintf("dropped as a file by uid %d", *m.Origin.UID)
	case m.IsDropped() && m.From.Agent != "drop":
		return "dropped as a file"
	}
	if _, by := m.FromAgent(); by != (wire.Address{}) {
		return "sent by a process of " + r.Who(by)
	}
	return ""
}

// Due says when a message's answer is due; "" if it has no due date.
func (r *Renderer) Due(m *wire.Message, isDone bool) string {
	late := r.Now.Sub(m.DueAt)
	switch {
	case m.DueAt.IsZero():
		return ""
	case late < -year:
		return "due " + Age(r.Now, m.DueAt) // the date
	case late <= 0:
		return "due in " + Span(-late)
	case isDone:
		return "was due " + Age(r.Now, m.DueAt)
	default:
		return "overdue by " + Span(late)
	}
}

// Recipients lists addresses, or the first three if there are more than four.
func (r *Renderer) Recipients(to []wire.Address) string {
	names := make([]string, len(to))
	for i, a := range to {
		names[i] = r.Who(a)
	}
	if len(names) > 4 {
		names = append(names[:3], fmt.Sprintf("%d more", len(to)-3))
	}
	return strings.Join(names, ",")
}

// Lease says who has leased a message, or else how often it was leased before, or "".
func (r *Renderer) Lease(f Flags) string {
	switch {
	case f.TakenBy != wire.Address{}:
		return fmt.Sprintf("taken by %s for %s more", r.Who(f.TakenBy), Span(f.TakenUntil.Sub(r.Now)))
	case f.IsAside:
		return fmt.Sprintf("set aside, given out %d times", f.TimesTaken)
	case f.TimesTaken == 1:
		return "given out once before"
	case f.TimesTaken > 1:
		return fmt.Sprintf("given out %d times before", f.TimesTaken)
	}
	return ""
}

const indent = "  "

// Text is what the sender wrote: a type that is none of ours, the subject and the choices, labelled, and the body.
func (r *Renderer) Text(m *wire.Message) string {
	text := ""
	asked, _ := wire.ReadObject(m.Payload)
	switch {
	case !isKnown[m.Type]:
		text = "type: " + Clip(Escape(m.Type), 64) + "\n"
	case m.Type == wire.TypeHumanInput && asked.Text("input_type") == "abort":
		text = "asks to abort the session, which only a command does: atm session abort\n"
	}
	if m.Subject != "" && r.Whole {
		text += "subject: " + Escape(m.Subject) + "\n"
	} else if m.Subject != "" {
		text += "subject: " + Clip(Escape(m.Subject), 300) + "\n"
	}
	if len(m.Choices) > 0 {
		text += "choices: " + Choices(m.Choices) + "\n"
	}
	return text + m.Body
}

// isKnown has the types that a header names.
var isKnown = map[string]bool{
	"": true, wire.TypeMessage: true, wire.TypeAck: true, wire.TypeHumanInput: true, wire.TypePermissionRequest: true,
	wire.TypePermissionReply: true, wire.TypeNotice: true,
}

// IsEscaped reports whether something of what the sender wrote is shown as an escape.
func IsEscaped(m *wire.Message) bool {
	isEscaped := func(line string) bool { return Escape(line) != line }
	return slices.ContainsFunc(append([]string{m.Subject, m.Type}, m.Choices...), isEscaped) || escape(m.Body, true, allMarks) != m.Body
}

// Body renders a text: escaped, indented and, for a terminal, broken into rows. If size is not 0, it is cut to so many
// bytes of output and, if that is not 0, to so many lines, never within a character, and at a line break if there is one
// in the last quarter. left is how many bytes of the text are not shown.
func (r *Renderer) Body(text string, size, lines int) (shown []byte, left int) {
	if most := 4*size + 4096; size > 0 && len(text) > most { // there is no room for more
		text, left = text[:most], len(text)-most
	}
	text = strings.TrimRight(escape(text, true, allMarks), "\r\n") // each other carriage return is shown as an escape
	width := max(r.Width-len(indent), min(r.Width, 2))             // for a wide character
	for count := 0; text != ""; {
		line, after, _ := strings.Cut(text, "\n")
		for row, rest := range rows(line, width, width, !r.IsPane) {
			if width > 0 {
				row = KeepDirection(row)
			}
			row = indent + row + "\n"
			isLonger := lines > 0 && count == lines
			if room := size - len(shown); size > 0 && (isLonger || len(row) > room) {
				if left += len(row) + len(rest) + len(after); !isLonger && len(shown) <= size*3/4 {
					part := strings.ToValidUTF8(row[:max(room-1, 0)], "")
					shown = append(shown, part+"\n"...)
					left -= len(part)
				}
				return shown, left
			}
			shown = append(shown, row...)
			count++
		}
		text = after
	}
	return shown, left
}

// Choices lists the answers that a message offers, with their numbers: 1 yes | 2 "not yet".
func Choices(choices []string) string {
	all := make([]string, len(choices))
	for i, choice := range choices {
		all[i] = fmt.Sprintf("%d %s", i+1, Name(choice, 60))
	}
	return strings.Join(all, " | ")
}

// Who renders an address: bob or bob@build if the team is the reader's, else bob@main or bob@main.build.
func (r *Renderer) Who(a wire.Address) string {
	switch {
	case a.Team != r.Team:
		return a.String()
	case a.Host != "":
		return string(a.Agent) + "@" + string(a.Host)
	}
	return string(a.Agent)
}

// Called is Who for an address in text form.
func (r *Renderer) Called(address string) string {
	at := "@" + string(r.Team)
	return strings.Replace(strings.TrimSuffix(address, at), at+".", "@", 1)
}

// Short renders an id.
func (r *Renderer) Short(id wire.ID) string { return id.Short(r.Digits) }

// ShortLength returns how many digits, at least 6, make the short ids of these messages unique.
func ShortLength(ids []wire.ID) int {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for n := 6; ; n++ {
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id.Short(n)] = true
		}
		if len(seen) == len(ids) || n == 32 {
			return n
		}
	}
}
