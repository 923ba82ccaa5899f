// Package letter renders messages for people and models. The command line, the hooks and the runner, which types them
// into a terminal, all use this renderer.
//
// The text of a message is untrusted:
//
//   - A header is one line at column 0, and everything in it is escaped.
//   - A body is indented by two spaces after everything that any program might take for a line break, so it
//     cannot imitate a header or a foot line.
//   - On a terminal the body is escaped as well. In a pipe its bytes stay as they are.
package letter

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	Now      time.Time
	Team     wire.Name // omitted from addresses
	Digits   int       // of short ids, at least 6; see ShortLength
	Terminal bool      // escape bodies
	Bold     bool      // headers in bold
	Whole    bool      // headers have the whole subject, and also a single recipient
	Bytes    int       // cut a message that is larger; 0: never
	Lines    int       // cut a message that is longer, if Bytes is set
	Show     string    // flags of the atm show that shows the rest, with a space in front
}

// Flags is what a header says about a message beyond the message's own fields.
type Flags struct {
	SupersededBy wire.ID
	Withdrawn    bool
	Done         bool // was read, and no ack is owed; whether it was answered is not known
	Newer        int  // further unread messages of the same sender
	Repeat       bool // handed over before, and perhaps seen

	TimesTaken int          // how often it was leased before
	TakenBy    wire.Address // who has leased it now; zero: nobody
	TakenUntil time.Time    // when that lease ends
}

// LimitToPage makes the renderer cut messages that are larger than a page. It returns a function that reports whether
// the next message still fits on the page, as the first one always does. The page keeps room for two more lines: how
// many messages follow, and which acks are owed.
func (r *Renderer) LimitToPage() (fits func(*wire.Message) bool) {
	r.Bytes, r.Lines = MaxBytes-256, MaxLines-2
	size, lines := 0, 0
	return func(m *wire.Message) bool {
		text, first := r.Render(m, Flags{}), size == 0
		size += len(text) + 40 // for flags
		lines += bytes.Count(text, []byte{'\n'})
		return first || size <= r.Bytes && lines <= r.Lines
	}
}

// Render renders a message: header, indented body and, if that is cut, a line that says how to see the rest.
func (r *Renderer) Render(m *wire.Message, f Flags) []byte {
	head := r.Header(m, f)
	body, left := r.Body(m.Body, 0, 0)
	isLarger := len(head)+1+len(body) > r.Bytes || 1+bytes.Count(body, []byte{'\n'}) > r.Lines
	if r.Bytes > 0 && isLarger {
		body, left = r.Body(m.Body, max(r.Bytes-len(head)-len(r.Show)-81, 80), max(r.Lines-2, 1)) // 80 for the last line
	}
	out := append([]byte(head+"\n"), body...)
	if left > 0 {
		out = fmt.Appendf(out, "… %s more: atm show %s --raw%s\n", Size(int64(left)), r.Short(m.ID), r.Show)
	}
	return out
}

// Header renders a message's first line, without a line feed.
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
	add(m.InReplyTo != "" && isAck, "acks %s", r.Short(m.InReplyTo))
	add(m.InReplyTo != "" && !isAck, "answers %s", r.Short(m.InReplyTo))
	add(m.Type != "" && !isAck, "%s", Clip(Escape(m.Type), 64))
	add(m.Claims() != "", "claims to be %s", m.Claims())
	add(m.Urgent(), "urgent")
	add(m.RequiresAck && !f.Done, "wants ack")
	add(m.RequiresAck && f.Done, "acked")
	add(m.ReplyWanted == "no", "no answer wanted")
	add(!m.DueAt.IsZero(), "%s", r.Due(m, f.Done))
	add(m.Expired(r.Now), "expired")
	add(f.Repeat, "may be a repeat")
	add(lease != "", "%s", lease)
	add(f.Withdrawn, "withdrawn by its sender")
	add(f.SupersededBy != "", "superseded by %s", r.Short(f.SupersededBy))
	add(m.Supersedes != "", "replaces %s", r.Short(m.Supersedes))
	add(f.Newer > 0, "%d newer from the same sender", f.Newer)
	add(origin != "", "%s", origin)
	add(len(m.Attachments) > 0, "%d attached (atm show %s --save DIR)", len(m.Attachments), r.Short(m.ID))

	head := strings.Join(parts, ", ")
	if m.Subject != "" && r.Whole {
		head += ": " + Escape(m.Subject)
	} else if m.Subject != "" {
		head += ": " + Clip(Escape(m.Subject), 300)
	}
	if r.Bold {
		head = "\x1b[1m" + head + "\x1b[m"
	}
	return head
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
	return strings.Join(names, " ")
}

// Lease says who has leased a message, or else how often it was leased before, or "".
func (r *Renderer) Lease(f Flags) string {
	switch {
	case f.TakenBy != wire.Address{}:
		return fmt.Sprintf("taken by %s for %s more", r.Who(f.TakenBy), Span(f.TakenUntil.Sub(r.Now)))
	case f.TimesTaken == 1:
		return "given out once before"
	case f.TimesTaken > 1:
		return fmt.Sprintf("given out %d times before", f.TimesTaken)
	}
	return ""
}

const indent = "  "

// Body renders a body: indented and, for a terminal, escaped. It is cut to size bytes of output and to lines lines, if
// they are not 0, never within a rune, and at a line break if there is one in the last quarter. left is how many bytes
// of the body are not shown.
func (r *Renderer) Body(body string, size, lines int) (shown []byte, left int) {
	text := strings.TrimRight(body, "\n")
	end, lastLine, length := 0, 0, len(indent)
	for n := 0; end < len(text) && (lines == 0 || n < lines); {
		piece, read := r.next(text[end:])
		length += len(piece)
		if size > 0 && length > size {
			break
		}
		end += read
		if text[end-1] == '\n' {
			lastLine = end
			n++
		}
	}
	if end < len(text) {
		if lastLine > end*3/4 {
			end = lastLine
		}
		left = len(body) - end
		text = strings.TrimRight(text[:end], "\r\n")
	}
	if text == "" {
		return nil, left
	}
	shown = append(make([]byte, 0, length), indent...)
	for text != "" {
		piece, read := r.next(text)
		shown, text = append(shown, piece...), text[read:]
	}
	return append(shown, '\n'), left
}

// next renders the rune or CRLF at the beginning of text, and returns its length. The indentation follows every line
// break of Unicode and every separator that some programs split at.
func (r *Renderer) next(text string) (shown string, length int) {
	if !r.Terminal && strings.HasPrefix(text, "\r\n") {
		return "\r\n" + indent, 2
	}
	c, n := utf8.DecodeRuneInString(text)
	shown = text[:n]
	if r.Terminal && c != '\n' {
		return escapeRune(shown, "\t"), n
	}
	switch c {
	case '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		shown += indent
	}
	return shown, n
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
