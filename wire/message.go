package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	ID          ID              `json:"id,omitzero"`
	Type        string          `json:"type"` // "" means message
	From        Address         `json:"from,omitzero"`
	To          []Address       `json:"to,omitempty"`
	Thread      ID              `json:"thread,omitzero"` // the thread's first message; absent on the first
	InReplyTo   ID              `json:"in_reply_to,omitzero"`
	Subject     string          `json:"subject,omitzero"`
	Body        string          `json:"body"`
	Priority    string          `json:"priority,omitzero"` // "normal" (or absent) or "urgent"
	RequiresAck bool            `json:"requires_ack,omitzero"`
	ReplyWanted string          `json:"reply_wanted,omitzero"` // "yes", "no" or absent
	SentAt      time.Time       `json:"sent_at,omitzero"`
	ExpiresAt   time.Time       `json:"expires_at,omitzero"`
	DueAt       time.Time       `json:"due_at,omitzero"`
	Supersedes  ID              `json:"supersedes,omitzero"`
	Hop         int             `json:"hop,omitzero"`
	Origin      *Origin         `json:"origin,omitzero"`
	Attachments []Attachment    `json:"attachments,omitempty"`
	Payload     json.RawMessage `json:"payload,omitzero"` // an object
	Meta        json.RawMessage `json:"meta,omitzero"`    // an object; its atm.* are ours
	Extra       jsontext.Value  `json:",embed,inline"`    // an object of what this version does not know
}

// Origin is evidence of where a message came from. Against a process of the
// same user it is evidence, not a wall.
type Origin struct {
	Via   string         `json:"via,omitzero"` // cli, drop, hook, mcp, acp, runner, bridge
	UID   *int           `json:"uid,omitzero"` // absent where the system has none
	Run   string         `json:"run,omitzero"` // the runner's session id
	Extra jsontext.Value `json:",embed,inline"`
}

// Attachment names a file in the recipient team's .files.
type Attachment struct {
	Name      string         `json:"name,omitzero"`
	SHA256    string         `json:"sha256,omitzero"` // 64 hex digits, lower case
	Size      int64          `json:"size"`            // bytes
	MediaType string         `json:"media_type,omitzero"`
	Extra     jsontext.Value `json:",embed,inline"`
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
	line, _, _ := strings.Cut(strings.TrimSpace(m.Body), "\n")
	return strings.TrimSpace(line)
}

// MarshalJSON writes the message in one line. The error is a Payload, Meta or Extra that
// is not JSON. It may be called concurrently while nobody changes the message.
func (m *Message) MarshalJSON() ([]byte, error) {
	type plain Message // without this method
	out := plain(*m)
	out.Type, out.Hop = m.Kind(), max(0, m.Hop)
	out.Payload, out.Meta = orNil(m.Payload), orNil(m.Meta)
	return jsonv2.Marshal(&out, lenient, messageWriters)
}

// orNil is nil for an empty value, which omitzero then leaves out.
func orNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// Encode is the message as it lies on disk, in one line. The error is a body over
// MaxBody, a whole over MaxFile, or that of MarshalJSON.
func (m *Message) Encode() ([]byte, error) {
	if len(m.Body) > MaxBody {
		return nil, fmt.Errorf("the body has %d bytes, the most is %d", len(m.Body), MaxBody)
	}
	b, err := m.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode message %s: %w", m.ID, err)
	}
	if b = append(b, '\n'); len(b) > MaxFile {
		return nil, fmt.Errorf("the message takes %d bytes, the most is %d", len(b), MaxFile)
	}
	return b, nil
}

// Decode reads a message as it lies on disk, with an id and a sender. The error is a
// *DecodeError or ErrNotObject.
func Decode(data []byte) (*Message, error) {
	m, err := decode(data)
	switch {
	case err != nil:
		return nil, err
	case m.ID == "":
		return nil, decodeError(data, 0, "the message has no id")
	case m.From == Address{}:
		return nil, decodeError(data, 0, "the message has no sender")
	}
	return m, nil
}

// ErrNotMessage says that JSON is no message of ours.
var ErrNotMessage = errors.New("no message")

// DecodeDropped reads a message that may be incomplete, as people and programs drop it:
// bare names are completed with team, "to" may be one string, and an id that is none of
// ours is kept in meta.atm.id. The error is ErrNotMessage where no member makes it one
// of ours (an id, a type or meta alone do not: a package.json has a "type"), else a
// *DecodeError.
func DecodeDropped(data []byte, team Name) (*Message, error) {
	o, err := ReadObject(data)
	if err == ErrNotObject || err == nil && !isMessage(o) {
		return nil, ErrNotMessage
	}
	theirID := o.Text("id")
	if _, err := ParseID(theirID); theirID == "" || err == nil {
		return decode(data, addressReader(team), listReader(team))
	}
	m, err := decode(data, addressReader(team), listReader(team), jsonv2.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *ID) error {
		if dec.StackPointer() != "/id" {
			return errors.ErrUnsupported
		}
		return dec.SkipValue()
	}))
	if err == nil {
		m.SetMeta("id", Quote(theirID))
	}
	return m, err
}

// DecodeOutgoing reads a message that somebody wants to send. Nothing has to be there,
// and a bare sender is completed with team. "to" is one name or several, and is
// returned as it was written.
func DecodeOutgoing(data []byte, team Name) (m *Message, to []string, err error) {
	m, err = decode(data, addressReader(team), jsonv2.UnmarshalFunc(func(raw []byte, _ *[]Address) error {
		if to = nil; raw[0] == '"' {
			to = []string{unquote(raw)}
		} else if jsonv2.Unmarshal(raw, &to, lenient) != nil {
			return errors.New("must be a name or an array of names")
		}
		return nil
	}))
	return m, to, err
}

// listReader reads the recipients, which may be one string.
func listReader(team Name) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFunc(func(raw []byte, to *[]Address) error {
		if raw[0] != '"' {
			return jsonv2.Unmarshal(raw, to, lenient, jsonv2.WithUnmarshalers(addressReader(team)))
		}
		a, err := ParseAddress(unquote(raw), team)
		*to = []Address{a}
		return err
	})
}

// decode reads a message in which nothing has to be there. A member of ours that is
// null counts as absent.
func decode(data []byte, readers ...*jsonv2.Unmarshalers) (*Message, error) {
	m := &Message{}
	if err := unmarshal(data, m, readers...); err != nil {
		return nil, err
	}
	if member, msg := m.normalize(); msg != "" {
		return nil, decodeError(data, start(data)+members(data).place(member), member+": "+msg)
	}
	return m, nil
}

// normalize clears values that mean the same as absent ones. It returns the first member
// with a wrong value, and what is wrong with it.
func (m *Message) normalize() (member, msg string) {
	if m.Type == TypeMessage {
		m.Type = ""
	}
	if m.Priority == "normal" {
		m.Priority = ""
	}
	for _, raw := range []*json.RawMessage{&m.Payload, &m.Meta} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
	switch {
	case strings.ContainsRune(m.Body, 0):
		return "body", "has a NUL"
	case len(m.Body) > MaxBody:
		return "body", fmt.Sprintf("has %d bytes, the most is %d", len(m.Body), MaxBody)
	case m.Priority != "" && m.Priority != "urgent":
		return "priority", "must be normal or urgent"
	case m.ReplyWanted != "" && m.ReplyWanted != "yes" && m.ReplyWanted != "no":
		return "reply_wanted", "must be yes or no"
	case m.Hop < 0:
		return "hop", "is negative"
	case len(m.Payload) > 0 && m.Payload[0] != '{':
		return "payload", "must be an object"
	case len(m.Meta) > 0 && m.Meta[0] != '{':
		return "meta", "must be an object"
	}
	for _, a := range m.Attachments {
		switch {
		case a.SHA256 == "":
			return "attachments", "an attachment has no sha256"
		case !IsSHA256(a.SHA256):
			return "attachments", "sha256 must be 64 hex digits"
		case a.Size < 0:
			return "attachments", "size is negative"
		}
	}
	return "", ""
}

// IsSHA256 reports whether s is 64 lower-case hex digits: the name of an
// attachment's content.
func IsSHA256(s string) bool { return len(s) == 64 && isHex(s) }

// isMessage reports whether an object has a member that makes it one of ours.
func isMessage(o Object) bool {
	return o.Has("from", "to", "thread", "in_reply_to", "subject", "body", "priority", "requires_ack", "reply_wanted",
		"sent_at", "expires_at", "due_at", "supersedes", "hop", "origin", "attachments", "payload")
}

// SetMeta sets a value, which is JSON, under meta.atm and keeps all else in meta.
func (m *Message) SetMeta(key string, value json.RawMessage) {
	meta := members(m.Meta)
	ours, err := meta.Object("atm").With(key, value).MarshalJSON()
	if err != nil {
		return
	}
	if all, err := meta.With("atm", ours).MarshalJSON(); err == nil {
		m.Meta = all
	}
}

// MetaString is the value that SetMeta set under key, if it is a string.
func (m *Message) MetaString(key string) string { return members(m.Meta).Object("atm").Text(key) }

// HasOurMeta reports whether meta has an atm, which only we write.
func (m *Message) HasOurMeta() bool { return members(m.Meta).Has("atm") }
