package mailbox

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// Letters shows messages to readers, people and models: the one renderer that
// every surface uses. What a message says is data:
//
//   - A header is one line at column 0, with everything in it escaped that is
//     no printable character. A body stands indented by two spaces, after
//     everything that any program might take for a line break, so that no body
//     can imitate a header or a foot line.
//   - On a terminal the body is escaped as well; into a pipe its bytes go as
//     they are.
type Letters struct {
	Now      time.Time
	Team     wire.Name // addresses of this team are shown without it
	Digits   int       // of short ids; at least 6
	Terminal bool      // escape bodies
	Bold     bool      // headers in bold
	Bytes    int       // a single larger message is cut to this; 0: never
	Lines    int
}

// Marks is what a header says about a message beyond its own fields.
type Marks struct {
	SupersededBy wire.ID
	Withdrawn    bool
	Newer        int  // further unread messages of the same sender
	Again        bool // handed over before, and perhaps seen
	Takings      *Takings
}

// MarksOf finds, within a batch, what replaces each message and how many newer
// ones its sender wrote.
func MarksOf(b Batch) []Marks {
	out := make([]Marks, len(b.Items))
	later := append(b.Items[:len(b.Items):len(b.Items)], b.Ahead...)
	for i, it := range b.Items {
		out[i].Withdrawn, out[i].Takings = it.State == Withdrawn, it.Takings
		for _, l := range later {
			if l.ID > it.ID && l.From == it.From && l.Supersedes == it.ID {
				out[i].SupersededBy = l.ID
			}
		}
	}
	if len(b.Ahead) == 0 {
		return out
	}
	newest := map[wire.Address]int{} // of each sender, in the batch
	for i, it := range b.Items {
		newest[it.From] = i
	}
	// Said once a sender: of the others the newer ones stand below.
	for from, i := range newest {
		for _, l := range b.Ahead {
			if l.From == from && l.ID > b.Items[i].ID {
				out[i].Newer++
			}
		}
	}
	return out
}

// Short is the id as this letter quotes it.
func (l *Letters) Short(id wire.ID) string { return id.Short(l.Digits) }

// Who is an address as shown: without the team when it is the reader's.
func (l *Letters) Who(a wire.Address) string {
	if a.Team == l.Team {
		return string(a.Agent)
	}
	return a.String()
}

// Header is the message's first line, without a line feed.
func (l *Letters) Header(m *wire.Message, k Marks) string {
	var b strings.Builder
	b.WriteString(l.Short(m.ID) + " from " + l.Who(m.From) + ", " + Age(l.Now, m.SentAt))
	say := func(format string, args ...any) {
		b.WriteString(", ")
		fmt.Fprintf(&b, format, args...)
	}
	if len(m.To) > 1 {
		to := make([]string, 0, 4)
		for i, a := range m.To {
			if i == 3 && len(m.To) > 4 {
				to = append(to, fmt.Sprintf("%d more", len(m.To)-i))
				break
			}
			to = append(to, l.Who(a))
		}
		say("to %s", strings.Join(to, " "))
	}
	switch {
	case m.Type == wire.TypeAck && m.InReplyTo != "":
		say("acks %s", l.Short(m.InReplyTo))
	case m.InReplyTo != "":
		say("answers %s", l.Short(m.InReplyTo))
	}
	if m.Type != "" && m.Type != wire.TypeAck {
		say("%s", Clip(Escape(m.Type), 64))
	}
	if m.Urgent() {
		say("urgent")
	}
	if m.RequiresAck {
		say("wants ack")
	}
	if m.ReplyWanted == "no" {
		say("no answer wanted")
	}
	if !m.DueAt.IsZero() {
		if l.Now.After(m.DueAt) {
			say("overdue since %s", Age(l.Now, m.DueAt))
		} else {
			say("due in %s", Span(m.DueAt.Sub(l.Now)))
		}
	}
	if m.Expired(l.Now) {
		say("expired")
	}
	if k.Again {
		say("may be a repeat")
	}
	if said := k.Takings.Said(l.Now, l.Who); said != "" {
		say("%s", said)
	}
	if k.Withdrawn {
		say("withdrawn by its sender")
	}
	if k.SupersededBy != "" {
		say("superseded by %s", l.Short(k.SupersededBy))
	}
	if m.Supersedes != "" {
		say("replaces %s", l.Short(m.Supersedes))
	}
	if k.Newer > 0 {
		say("%d newer from the same sender", k.Newer)
	}
	if m.Origin != nil && m.Origin.Via == "drop" && m.From.Agent != "drop" {
		if m.Origin.UID != nil {
			say("dropped as a file by uid %d", *m.Origin.UID)
		} else {
			say("dropped as a file")
		}
	}
	if n := len(m.Attachments); n > 0 {
		say("%d attached (atm show %s --save DIR)", n, l.Short(m.ID))
	}
	if m.Subject != "" {
		b.WriteString(": ")
		b.WriteString(Clip(Escape(m.Subject), 300))
	}
	if l.Bold {
		return "\x1b[1m" + b.String() + "\x1b[m"
	}
	return b.String()
}

// Render is the whole letter: header, indented body, and where it was cut the
// line that says how to see the rest.
func (l *Letters) Render(m *wire.Message, k Marks) []byte {
	return l.Append(make([]byte, 0, l.room(m)), m, k)
}

// room is about what a letter takes.
func (l *Letters) room(m *wire.Message) int {
	body := len(m.Body)
	if l.Bytes > 0 {
		body = min(body, l.Bytes)
	}
	return body + body/16 + len(m.Subject) + 160
}

// Each calls f with one letter after the other, which follow each other in
// memory.
func (l *Letters) Each(items []*Item, marks []Marks, f func(letter []byte)) {
	size := 0
	for _, it := range items {
		size += l.room(it.Message)
	}
	text := make([]byte, 0, size)
	for i, it := range items {
		begin := len(text)
		text = l.Append(text, it.Message, marks[i])
		f(text[begin:])
	}
}

// Append appends a letter, as Render makes it.
func (l *Letters) Append(b []byte, m *wire.Message, k Marks) []byte {
	head := l.Header(m, k)
	body, left := m.Body, 0
	if l.Bytes > 0 {
		body, left = cutBody(body, l.Bytes-len(head)-1-80, l.Lines-2, l.Terminal)
	}
	b = append(append(b, head...), '\n')
	b = l.appendBody(b, body)
	if left > 0 {
		b = fmt.Appendf(b, "… %s more: atm show %s --raw\n", Size(int64(left)), l.Short(m.ID))
	}
	return b
}

// Body is a body as it stands below its header.
func (l *Letters) Body(body string) []byte { return l.appendBody(nil, body) }

func (l *Letters) appendBody(b []byte, body string) []byte {
	body = strings.TrimRight(body, "\n")
	if body == "" {
		return b
	}
	if l.Terminal {
		body = EscapeBody(body)
	}
	return append(appendIndented(b, body), '\n')
}

// Cut shortens a body to so many bytes and lines, never within a rune, and
// says how many bytes are left out. A body that is barely too long is cut at a
// line if one ends in the last quarter.
func Cut(body string, size, lines int) (kept string, left int) {
	return cutBody(body, size, lines, false)
}

func cutBody(body string, size, lines int, terminal bool) (kept string, left int) {
	size, lines = max(size, 80), max(lines, 1)
	end := len(body)
	// As it will stand there: the indentation counts, and what is escaped.
	for i, n, at := 0, 0, len("  "); i < len(body); {
		long, wide := extent(body[i:], terminal)
		if at += wide; at > size {
			end = i
			break
		}
		i += long
		if body[i-1] == '\n' {
			if n++; n >= lines {
				end = i
				break
			}
		}
	}
	if end >= len(strings.TrimRight(body, "\n")) {
		return body, 0
	}
	for end > 0 && !utf8.RuneStart(body[end]) {
		end--
	}
	if nl := strings.LastIndexByte(body[:end], '\n'); nl > end*3/4 {
		end = nl + 1
	}
	return body[:end], len(body) - end
}

// extent is how long what s begins with is, and how wide it is when shown.
func extent(s string, terminal bool) (long, wide int) {
	if !terminal {
		if n := lineBreak(s); n > 0 {
			return n, n + len("  ")
		}
		return 1, 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == '\n':
		return 1, 1 + len("  ")
	case r == utf8.RuneError && n == 1:
		return 1, len(`\x00`)
	case !unsafe(r, true):
		return n, n
	case r == '\r':
		return 1, len(`\r`)
	case r < 0x100:
		return n, len(`\x00`)
	}
	return n, len(`\u0000`)
}

// appendIndented puts two spaces at the beginning of what any program might take
// for a line, and keeps every byte.
func appendIndented(b []byte, s string) []byte {
	b = append(b, "  "...)
	from := 0 // what is not appended yet
	for i := 0; i < len(s); {
		if c := s[i]; c > 0x1e && c < 0xc2 { // the first byte of no line break
			i++
			continue
		}
		n := lineBreak(s[i:])
		i += max(n, 1)
		if n > 0 {
			b = append(append(b, s[from:i]...), "  "...)
			from = i
		}
	}
	return append(b, s[from:]...)
}

// lineBreak is the length of the line break that s begins with, 0 if none:
// those of Unicode, and the separators that some programs split at.
func lineBreak(s string) int {
	switch c := s[0]; {
	case c == '\r' && len(s) > 1 && s[1] == '\n':
		return 2
	case c >= '\n' && c <= '\r', c >= 0x1c && c <= 0x1e:
		return 1
	case c == 0xc2 && len(s) > 1 && s[1] == 0x85: // NEL
		return 2
	case c == 0xe2 && len(s) > 2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9): // LS, PS
		return 3
	}
	return 0
}

// Escape makes text fit for one line of a terminal: control characters, escape
// sequences and what turns the direction of writing are shown, not obeyed.
func Escape(s string) string { return escape(s, false) }

// EscapeBody is Escape for several lines: line feeds and tabs stay.
func EscapeBody(s string) string { return escape(s, true) }

func escape(s string, body bool) string {
	plain := true
	for _, r := range s {
		if unsafe(r, body) {
			plain = false
			break
		}
	}
	if plain && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unsafe(r, body):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func unsafe(r rune, body bool) bool {
	switch {
	case r == '\n' || r == '\t':
		return !body
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x061c, r == 0x200e, r == 0x200f:
		return true // Unicode's Bidi_Control
	case r == 0x2028, r == 0x2029:
		return true
	}
	return false
}

// Age is how long ago t was, for people: "now", "5s ago", "2m ago", "3h ago",
// "4d ago"; "in 5m" for what is to come.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	d := now.Sub(t)
	switch {
	case d < -time.Minute:
		return "in " + Span(-d)
	case d < time.Second:
		return "now"
	}
	return Span(d) + " ago"
}

// Span is a duration in its largest unit.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+512)/1024)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Digits is how many digits short ids need so that no two of these are alike;
// at least 6.
func Digits(ids []wire.ID) int {
	for n := 6; n < 32; n++ {
		if !alike(ids, n) {
			return n
		}
	}
	return 32
}

// alike reports whether two ids end with the same so many digits.
func alike(ids []wire.ID, n int) bool {
	if len(ids) > 32 {
		seen := make(map[string]wire.ID, len(ids))
		for _, id := range ids {
			if other, ok := seen[id.Short(n)]; ok && other != id {
				return true
			}
			seen[id.Short(n)] = id
		}
		return false
	}
	for i, id := range ids {
		for _, other := range ids[:i] {
			if other != id && other.Short(n) == id.Short(n) {
				return true
			}
		}
	}
	return false
}

// Clip shortens one line to so many characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// FirstLine is a text's first line that is not blank, shortened to n characters.
func FirstLine(s string, n int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return Clip(line, n)
}
