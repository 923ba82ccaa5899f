package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of a message.
const (
	MaxBody = 1 << 20 // bytes of body
	MaxFile = 4 << 20 // bytes of the encoded message
	MaxHops = 32      // replies to replies before the hop brake asks for a pause
)

// The types of message that mean something to atm. Any other is kept and shown
// as a message.
const (
	TypeMessage           = "message"
	TypeAck               = "ack"
	TypeHumanInput        = "human_input"
	TypePermissionRequest = "permission_request"
	TypePermissionReply   = "permission_reply"
	TypeNotice            = "notice"
)

// Message is the envelope. Zero values are "absent" and are not written.
type Message struct {
	ID          ID
	Type        string // "" means message
	From        Address
	To          []Address
	Thread      ID // the thread's first message; absent on the first
	InReplyTo   ID
	Subject     string
	Body        string
	Priority    string // "normal" (or absent) or "urgent"
	RequiresAck bool
	ReplyWanted string // "yes", "no" or absent
	SentAt      time.Time
	ExpiresAt   time.Time
	DueAt       time.Time
	Supersedes  ID
	Hop         int
	Origin      *Origin
	Attachments []Attachment
	Payload     json.RawMessage // an object
	Meta        json.RawMessage // an object; its atm.* are ours
	Extra       []Field         // what this version does not know, in order
}

// Origin is evidence of where a message came from. Against a process of the
// same user it is evidence, not a wall.
type Origin struct {
	Via   string // cli, drop, hook, mcp, acp, runner, bridge
	UID   *int   // absent where the system has none
	Run   string // the runner's session id
	Extra []Field
}

// Attachment names a file in the recipient team's .files.
type Attachment struct {
	Name      string
	SHA256    string // 64 hex digits, lower case
	Size      int64  // bytes
	MediaType string
	Extra     []Field
}

// Urgent reports whether the message may interrupt a running turn.
func (m *Message) Urgent() bool { return m.Priority == "urgent" }

// Kind is the message's type, "message" when it has none.
func (m *Message) Kind() string {
	if m.Type == "" {
		return TypeMessage
	}
	return m.Type
}

// ThreadID is the id of the thread that the message belongs to: its own when
// it began one.
func (m *Message) ThreadID() ID {
	if m.Thread != "" {
		return m.Thread
	}
	return m.ID
}

// Expired reports whether the message has an end and now is after it.
func (m *Message) Expired(now time.Time) bool {
	return !m.ExpiresAt.IsZero() && now.After(m.ExpiresAt)
}

// Title is the subject, or the body's first line that is not blank.
func (m *Message) Title() string {
	if strings.TrimSpace(m.Subject) != "" {
		return m.Subject
	}
	for rest := m.Body; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		if t := strings.TrimSpace(line); t != "" {
			return t
		}
		rest = after
	}
	return ""
}

// Append appends the message as one line of JSON, without a line feed, and
// behind its own fields those in more (which replace unknown ones of the same
// name). It is safe to call concurrently on a message nobody changes.
func (m *Message) Append(dst []byte, more ...Field) []byte {
	w := objectWriter{b: dst}
	w.str("id", string(m.ID))
	w.str("type", m.Kind())
	w.str("from", m.From.String())
	if len(m.To) > 0 {
		w.key("to")
		w.b = append(w.b, '[')
		for i, a := range m.To {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.b = AppendString(w.b, a.String())
		}
		w.b = append(w.b, ']')
	}
	w.str("thread", string(m.Thread))
	w.str("in_reply_to", string(m.InReplyTo))
	w.str("subject", m.Subject)
	w.key("body")
	w.b = AppendString(w.b, m.Body)
	w.str("priority", m.Priority)
	if m.RequiresAck {
		w.raw("requires_ack", json.RawMessage("true"))
	}
	w.str("reply_wanted", m.ReplyWanted)
	w.time("sent_at", m.SentAt)
	w.time("expires_at", m.ExpiresAt)
	w.time("due_at", m.DueAt)
	w.str("supersedes", string(m.Supersedes))
	if m.Hop > 0 {
		w.key("hop")
		w.b = strconv.AppendInt(w.b, int64(m.Hop), 10)
	}
	if m.Origin != nil {
		w.key("origin")
		w.b = m.Origin.append(w.b)
	}
	if len(m.Attachments) > 0 {
		w.key("attachments")
		w.b = append(w.b, '[')
		for i := range m.Attachments {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.b = m.Attachments[i].append(w.b)
		}
		w.b = append(w.b, ']')
	}
	w.raw("payload", m.Payload)
	w.raw("meta", m.Meta)
	for _, f := range m.Extra {
		if !has(more, f.Key) {
			w.raw(f.Key, f.Raw)
		}
	}
	w.fields(more)
	return w.end()
}

// MarshalJSON is Append for encoding/json.
func (m *Message) MarshalJSON() ([]byte, error) { return m.Append(nil), nil }

func has(fs []Field, key string) bool {
	for _, f := range fs {
		if f.Key == key {
			return true
		}
	}
	return false
}

func (w *objectWriter) time(k string, t time.Time) {
	if !t.IsZero() {
		w.key(k)
		w.b = append(w.b, '"')
		w.b = t.UTC().AppendFormat(w.b, time.RFC3339Nano)
		w.b = append(w.b, '"')
	}
}

func (o *Origin) append(dst []byte) []byte {
	w := objectWriter{b: dst}
	w.str("via", o.Via)
	if o.UID != nil {
		w.key("uid")
		w.b = strconv.AppendInt(w.b, int64(*o.UID), 10)
	}
	w.str("run", o.Run)
	w.fields(o.Extra)
	return w.end()
}

func (a *Attachment) append(dst []byte) []byte {
	w := objectWriter{b: dst}
	w.str("name", a.Name)
	w.str("sha256", a.SHA256)
	w.key("size")
	w.b = strconv.AppendInt(w.b, a.Size, 10)
	w.str("media_type", a.MediaType)
	w.fields(a.Extra)
	return w.end()
}

// Encode is the message as it lies on disk: one line. The error is one of
// size: a body over MaxBody, or a whole over MaxFile.
func (m *Message) Encode() ([]byte, error) {
	if len(m.Body) > MaxBody {
		return nil, fmt.Errorf("the body has %d bytes, the most is %d", len(m.Body), MaxBody)
	}
	b := append(m.Append(make([]byte, 0, 512+len(m.Body)+len(m.Body)/8)), '\n')
	if len(b) > MaxFile {
		return nil, fmt.Errorf("the message takes %d bytes, the most is %d", len(b), MaxFile)
	}
	return b, nil
}

// Plain reports whether the message has only fields that Decode is known to read
// back from what Encode writes. That is so for most that this program makes;
// raw JSON, attachments and unknown fields are never plain.
func (m *Message) Plain() bool {
	if !IsID(string(m.ID)) || !m.From.valid() || m.Hop < 0 || strings.IndexByte(m.Body, 0) >= 0 ||
		len(m.Attachments) > 0 || len(m.Payload) > 0 || len(m.Meta) > 0 || len(m.Extra) > 0 {
		return false
	}
	for _, id := range [...]ID{m.Thread, m.InReplyTo, m.Supersedes} {
		if id != "" && !IsID(string(id)) {
			return false
		}
	}
	for _, a := range m.To {
		if !a.valid() {
			return false
		}
	}
	for _, t := range [...]time.Time{m.SentAt, m.ExpiresAt, m.DueAt} {
		if y := t.UTC().Year(); y < 0 || y > 9999 {
			return false
		}
	}
	switch m.Priority {
	case "", "normal", "urgent":
	default:
		return false
	}
	switch m.ReplyWanted {
	case "", "yes", "no":
	default:
		return false
	}
	return m.Origin == nil || len(m.Origin.Extra) == 0
}

// messageFields are the fields of a message.
var messageFields = []string{
	"id", "type", "from", "to", "thread", "in_reply_to", "subject", "body",
	"priority", "requires_ack", "reply_wanted", "sent_at", "expires_at",
	"due_at", "supersedes", "hop", "origin", "attachments", "payload", "meta",
}

// IsMessage reports whether an object has a field that makes it one of ours.
// An id, a type or meta alone do not: a package.json has a "type".
func IsMessage(fields []Field) bool {
	for _, k := range messageFields {
		if k != "id" && k != "type" && k != "meta" && has(fields, k) {
			return true
		}
	}
	return false
}
