package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
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

// The types of message that mean something here. Any other is shown as a message.
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

// Origin is evidence of where a message came from.
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

// IsSHA256 reports whether s is the name of an attachment's content.
func IsSHA256(s string) bool { return len(s) == 64 && isHex(s) }

// Urgent reports whether the message may interrupt a running turn.
func (m *Message) Urgent() bool { return m.Priority == "urgent" }

// Kind is the message's type, "message" when it has none.
func (m *Message) Kind() string { return cmp.Or(m.Type, TypeMessage) }

// ThreadID is the thread that the message belongs to: its own id when it began one.
func (m *Message) ThreadID() ID { return cmp.Or(m.Thread, m.ID) }

// NextHop is the hop of an answer: one more, as far as a hop can be written.
func (m *Message) NextHop() int { return min(m.Hop+1, math.MaxUint32) }

// Expired reports whether the message has an end and now is after it.
func (m *Message) Expired(now time.Time) bool {
	return !m.ExpiresAt.IsZero() && now.After(m.ExpiresAt)
}

// Title is the subject, or the body's first line that is not blank, or the name of what is attached.
func (m *Message) Title() string {
	if strings.TrimSpace(m.Subject) != "" {
		return m.Subject
	}
	line, _, _ := strings.Cut(strings.TrimSpace(m.Body), "\n")
	if line == "" && len(m.Attachments) > 0 {
		return m.Attachments[0].Name
	}
	return strings.TrimSpace(line)
}

// MarshalJSON writes the message in one line, human input without a body with the one that stands for its payload. The
// error is a Payload, Meta or Extra that is no JSON.
func (m *Message) MarshalJSON() ([]byte, error) {
	type plain Message // without this method
	out := plain(*m)
	out.Type, out.Hop = m.Kind(), max(0, m.Hop)
	if m.Type == TypeHumanInput && m.Body == "" {
		out.Body, _, _ = HumanText(m.Payload)
	}
	return jsonv2.Marshal(&out, writing)
}

// Encode is the message as it lies on disk, in one line. The error is a body over MaxBody, a whole over
// MaxFile, or that of MarshalJSON.
func (m *Message) Encode() ([]byte, error) {
	if len(m.Body) > MaxBody {
		return nil, fmt.Errorf("the body %w", checkBody(m.Body))
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

func checkBody(body string) error {
	if strings.ContainsRune(body, 0) {
		return errors.New("has a NUL")
	}
	if len(body) > MaxBody {
		return fmt.Errorf("has %d bytes, the most is %d", len(body), MaxBody)
	}
	return nil
}

// Decode reads a message as it lies on disk, with an id, a sender and full addresses. The error is a
// *DecodeError or ErrNotObject.
func Decode(data []byte) (*Message, error) {
	m, err := decode(data, "")
	switch {
	case err != nil:
		return nil, err
	case m.ID == "":
		return nil, errorAt(0, "the message has no id").in(data)
	case m.From == Address{}:
		return nil, errorAt(0, "the message has no sender").in(data)
	case slices.ContainsFunc(append(m.To, m.From), func(a Address) bool { return a.Team == "" }):
		return nil, errorAt(0, "an address has no team").in(data)
	}
	return m, nil
}

// ErrNotMessage says that JSON is no message of ours.
var ErrNotMessage = errors.New("no message")

// ReplaceHost puts one host in the place of another in all addresses. On the way to another machine "" becomes this
// one's name, and an ack gets the id that AckID gives its recipient there; on arrival its own name becomes "".
func (m *Message) ReplaceHost(old, new Name) {
	if m.Type == TypeAck && m.From.Host == "" {
		m.ID = m.ID.onHost(new)
	}
	all := append(slices.Clone(m.To), m.From)
	for i := range all {
		if all[i].Host == old {
			all[i].Host = new
		}
	}
	m.To, m.From = all[:len(m.To)], all[len(m.To)]
}

// DecodeDropped reads a message that may be incomplete, as people and programs drop it: bare names are completed with
// team, "to" may be one string, and an id that is none of ours is kept in meta.atm.id. The error is ErrNotMessage where
// no member makes it one of ours (a package.json has a "type", too), else a *DecodeError.
func DecodeDropped(data []byte, team Name) (*Message, error) {
	o, err := ReadObject(data)
	if err == ErrNotObject || err == nil && !isMessage(o) {
		return nil, ErrNotMessage
	}
	theirID := o.Text("id")
	if _, err := ParseID(theirID); err == nil || theirID == "" && string(o.Get("id")) != `""` {
		return decode(data, team)
	}
	m, err := decode(data, team, "id")
	if err == nil {
		m.SetMeta("id", Quote(theirID))
	}
	return m, err
}

// isMessage reports whether an object has a member that makes it one of ours.
func isMessage(o Object) bool {
	isOurs := func(m Member) bool { return schemas()["message.Message"].has(m.Name) }
	return slices.ContainsFunc(o.without("id", "type", "meta"), isOurs)
}

// DecodeOutgoing reads a message that somebody wants to send. Nothing has to be there, and a bare sender
// is completed with team. "to" is one name or several, and is returned as it was written.
func DecodeOutgoing(data []byte, team Name) (m *Message, to []string, err error) {
	outgoing, err := Canonical("message.Outgoing", data)
	if err == nil {
		jsonv2.Unmarshal(members(outgoing).Get("to"), &to)
		m, err = decode(data, team, "to")
	}
	return m, to, err
}

// decode reads a message in which nothing has to be there, without some of its members. A member of ours
// that is null counts as absent.
func decode(data []byte, team Name, without ...string) (*Message, error) {
	o, err := ReadObject(data)
	if err != nil {
		return nil, err
	}
	known, wrong := schemas()["message.Message"].object(0, o.without(without...))
	if wrong != nil {
		return nil, wrong.in(data)
	}
	m := &Message{}
	if err := jsonv2.Unmarshal(known.encode(), m, reading); err != nil {
		return nil, errorAt(0, err.Error()).in(data)
	}
	if m.Type == TypeMessage {
		m.Type = ""
	}
	if m.Priority == "normal" {
		m.Priority = ""
	}
	if m.From != (Address{}) {
		m.From.Team = cmp.Or(m.From.Team, team)
	}
	for i := range m.To {
		m.To[i].Team = cmp.Or(m.To[i].Team, team)
	}
	return m, nil
}

// SetMeta sets a value, which is JSON, under meta.atm and keeps all else in meta.
func (m *Message) SetMeta(key string, value json.RawMessage) {
	meta := members(m.Meta)
	ours, err := meta.Object("atm").With(key, value).MarshalJSON()
	if err == nil {
		m.Meta = meta.With("atm", ours).encode()
	}
}

// MetaString is the value that SetMeta set under key, if it is a string.
func (m *Message) MetaString(key string) string { return members(m.Meta).Object("atm").Text(key) }

// HasOurMeta reports whether meta has an atm or atm.…, which only we write.
func (m *Message) HasOurMeta() bool {
	return slices.ContainsFunc(members(m.Meta), func(member Member) bool {
		first, _, _ := strings.Cut(member.Name, ".")
		return first == "atm"
	})
}
