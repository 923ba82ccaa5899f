// Package wire defines messages, events and addresses, and reads and writes their JSON. It does no I/O, and only NewID
// reads the clock. Package foreign translates what other systems say.
//
// You may rely on this:
//
//   - Decoding never panics, and keeps unknown fields at any depth: they are written back as they came, numbers to
//     the last digit.
//   - Member names are case-sensitive, unlike in encoding/json. A repeated name is an error.
//   - A decoding error has a line and a column.
//   - Encoding gives one line of compact UTF-8 JSON and escapes only what JSON requires.
//
// Message is the project's contract, version 1; docs/format.md has the table. All types are plain values: copy them,
// and share them between goroutines while nobody writes.
//
// Begin with Message, Event and Decode.
package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/jsonextra"
)

// Limits of a message.
const (
	MaxBody = 1 << 20 // bytes of body
	MaxFile = 4 << 20 // bytes of the encoded message
	MaxHops = 32      // from this hop on, a reply is refused if those before it came within an hour

	maxChoices = 20  // that a message offers
	maxChoice  = 200 // bytes of each
)

// The types of message with a meaning here. Any other type is shown as a plain message.
const (
	TypeMessage           = "message"
	TypeAck               = "ack"
	TypeHumanInput        = "human_input"
	TypePermissionRequest = "permission_request"
	TypePermissionReply   = "permission_reply"
	TypeNotice            = "notice"
)

// Message is the envelope. A zero value means "absent" and is not written.
type Message struct {
	ID          ID              `json:"id,omitzero"`
	Type        string          `json:"type"` // "" means message
	From        Address         `json:"from,omitzero"`
	To          []Address       `json:"to,omitempty"`
	Thread      ID              `json:"thread,omitzero"` // the thread's first message; absent on the first
	InReplyTo   ID              `json:"in_reply_to,omitzero"`
	Subject     string          `json:"subject,omitzero"`
	Body        string          `json:"body"`
	Priority    string          `json:"priority,omitzero"` // "normal", "urgent" or absent
	RequiresAck bool            `json:"requires_ack,omitzero"`
	ReplyWanted string          `json:"reply_wanted,omitzero"` // "yes", "no" or absent
	Choices     []string        `json:"choices,omitempty"`     // answers that it offers; any other text answers it too
	Choice      string          `json:"choice,omitzero"`       // of an answer: which of them it is
	SentAt      time.Time       `json:"sent_at,omitzero"`
	ExpiresAt   time.Time       `json:"expires_at,omitzero"`
	DueAt       time.Time       `json:"due_at,omitzero"`
	NotBefore   time.Time       `json:"not_before,omitzero"` // no reader shows it earlier
	Needs       []ID            `json:"needs,omitempty"`     // messages that are to be done before: see IsDue
	Supersedes  ID              `json:"supersedes,omitzero"`
	Hop         int             `json:"hop,omitzero"`
	Origin      *Origin         `json:"origin,omitzero"`
	Attachments []Attachment    `json:"attachments,omitempty"`
	Payload     json.RawMessage `json:"payload,omitzero"` // an object
	Meta        json.RawMessage `json:"meta,omitzero"`    // an object; its atm.* members are ours
	Extra       json.RawMessage `json:"-"`                // an object of unknown members
}

// Origin is evidence of where a message came from.
type Origin struct {
	Via string `json:"via,omitzero"` // cli, drop, mcp, acp, runner, bridge, library, mailbox
	UID *int   `json:"uid,omitzero"` // absent where the system has none
	Run string `json:"run,omitzero"` // the runner's session id
	// Agent is the member, of the sender's host, whose program started the process that sent it, as far as that process
	// could tell; UnknownAgent: some agent's did; "": none did.
	Agent string          `json:"agent,omitzero"`
	Extra json.RawMessage `json:"-"` // an object of unknown members
}

// UnknownAgent is an Origin's Agent whose name is not known.
const UnknownAgent = "?"

// reserved are the types that only atm writes, when the sender has been checked.
var reserved = []string{TypeAck, TypeNotice, TypePermissionRequest, TypePermissionReply}

// IsReserved reports whether only atm itself writes such a message, since it is evidence or an answer: one of a reserved
// type, or human input that approves or rejects a draft.
func (m *Message) IsReserved() bool {
	if m.Type != TypeHumanInput {
		return slices.Contains(reserved, m.Type)
	}
	kind := parseObject(m.Payload).Text("input_type")
	return kind == "approve" || kind == "reject"
}

// Claims returns the reserved type that a dropped file had, "" if it had none: the message is plain text.
func (m *Message) Claims() string {
	claim := m.MetaString("type")
	if claim == TypeHumanInput || slices.Contains(reserved, claim) {
		return claim
	}
	return ""
}

// IsDropped reports whether the message was a dropped file, so that nobody knows who wrote it.
func (m *Message) IsDropped() bool { return m.Origin != nil && m.Origin.Via == "drop" }

// IsByCommand reports whether human input was sent with a command or a page of atm, or by a program with Team.Say of
// package teams: these say in its origin whether an agent's program started them.
func (m *Message) IsByCommand() bool {
	return m.Origin != nil && (m.Origin.Via == "cli" || m.Origin.Via == "library")
}

// FromAgent reports whether the message's origin says that an agent's program started the process that sent it, and
// names the agent if that is known and not the sender.
func (m *Message) FromAgent() (is bool, other Address) {
	if m.Origin == nil || m.Origin.Agent == "" {
		return false, other
	}
	a, err := ParseAddress(m.Origin.Agent, "") // of the sender's host, which is not part of it
	if sender := (Address{Agent: m.From.Agent, Team: m.From.Team}); err != nil || a == sender {
		return true, other
	}
	a.Host = m.From.Host
	return true, a
}

// Attachment names a file in the recipient team's .files.
type Attachment struct {
	Name      string          `json:"name,omitzero"`
	SHA256    string          `json:"sha256,omitzero"` // 64 hex digits, lower case
	Size      int64           `json:"size"`            // bytes
	MediaType string          `json:"media_type,omitzero"`
	Extra     json.RawMessage `json:"-"` // an object of unknown members
}

// IsSHA256 reports whether s is a SHA-256 as Attachment has it.
func IsSHA256(s string) bool { return len(s) == 64 && isHex(s) }

// IsOfState reports whether the message is a notice of another's state.
func (m *Message) IsOfState() bool {
	return m.Type == TypeNotice && parseObject(m.Payload).Text("state") != ""
}

// StartsNoTurn reports whether an agent gets the message in a turn or with other mail only: it is a notice of what came of a
// turn that such a notice began.
func (m *Message) StartsNoTurn() bool {
	return m.IsOfState() && string(parseObject(m.Payload).Get("echo")) == "true"
}

// Urgent reports whether the message may interrupt a running turn.
func (m *Message) Urgent() bool { return m.Priority == "urgent" }

// Kind returns the type, TypeMessage by default.
func (m *Message) Kind() string { return cmp.Or(m.Type, TypeMessage) }

// ThreadID returns the thread of the message: its own id if it began the thread.
func (m *Message) ThreadID() ID { return cmp.Or(m.Thread, m.ID) }

// Acks reports whether the message is an ack of another. Its id says nothing about that: anybody can derive it.
func (m *Message) Acks(id ID) bool { return m.Type == TypeAck && m.InReplyTo == id }

// Outcomes are what an ack may say of the work that a message asks for; "" is that it is taken on.
var Outcomes = []string{"done", "blocked", "declined"}

// Outcome returns which of Outcomes an ack says; "": none.
func (m *Message) Outcome() string {
	outcome := parseObject(m.Payload).Text("outcome")
	if m.Type != TypeAck || !slices.Contains(Outcomes, outcome) {
		return ""
	}
	return outcome
}

// SetOutcome makes an ack say one of Outcomes.
func (m *Message) SetOutcome(outcome string) {
	m.Payload = parseObject(m.Payload).With("outcome", Quote(outcome)).Encode()
}

// NextHop returns the hop of a reply, up to the largest that is read.
func (m *Message) NextHop() int { return min(m.Hop+1, math.MaxUint32) }

// Chosen returns which of the message's Choices an answer means: the choice itself, in any case, or its number from 1.
// "": none of them.
func (m *Message) Chosen(answer string) string {
	answer = strings.TrimSpace(answer)
	for _, choice := range m.Choices {
		if strings.EqualFold(choice, answer) {
			return choice
		}
	}
	if i, err := strconv.Atoi(answer); err == nil && i > 0 && i <= len(m.Choices) {
		return m.Choices[i-1]
	}
	return ""
}

// CheckChoices says what is wrong with the Choices: there is only one, there are too many, or one is blank, too long, of
// several lines, there twice, or the number of another one, which would be an answer that means two of them.
func (m *Message) CheckChoices() error {
	switch {
	case len(m.Choices) == 1:
		return errors.New("only one choice")
	case len(m.Choices) > maxChoices:
		return fmt.Errorf("more than %d choices", maxChoices)
	}
	for i, choice := range m.Choices {
		isSame := func(other string) bool { return strings.EqualFold(other, choice) }
		switch n, err := strconv.Atoi(choice); {
		case err == nil && n != i+1 && n > 0 && n <= len(m.Choices):
			return fmt.Errorf("the choice %q is the number of another one", choice)
		case choice == "" || choice != strings.TrimSpace(choice) || len(choice) > maxChoice || strings.ContainsAny(choice, "\x00\r\n"):
			return fmt.Errorf("a choice must be one line of at most %d bytes, without spaces around it", maxChoice)
		case slices.ContainsFunc(m.Choices[:i], isSame):
			return fmt.Errorf("the choice %q is there twice", choice)
		}
	}
	return nil
}

// Expired reports whether the message expires and now is past that time.
func (m *Message) Expired(now time.Time) bool { return !m.ExpiresAt.IsZero() && now.After(m.ExpiresAt) }

// IsDue reports whether it is time to show the message: NotBefore has passed, and all that it needs is done.
func (m *Message) IsDue(now time.Time, isDone func(ID) bool) bool {
	return !now.Before(m.NotBefore) && !slices.ContainsFunc(m.Needs, func(id ID) bool { return !isDone(id) })
}

// Title returns the subject, else the first line of the body that is not blank, else the first attachment's name, or
// what it acks. Of an ack it begins with the outcome.
func (m *Message) Title() string {
	if strings.TrimSpace(m.Subject) != "" {
		return m.Subject
	}
	line, _, _ := strings.Cut(strings.TrimSpace(m.Body), "\n")
	if outcome := m.Outcome(); outcome != "" && line != "" {
		return outcome + ": " + strings.TrimSpace(line)
	} else if outcome != "" {
		return "acks " + m.InReplyTo.Short(6) + " as " + outcome
	} else if line == "" && len(m.Attachments) > 0 {
		return m.Attachments[0].Name
	} else if line == "" && m.Type == TypeAck {
		return "acks " + m.InReplyTo.Short(6)
	}
	return strings.TrimSpace(line)
}

// MarshalJSON writes the message in one line.
func (m Message) MarshalJSON() ([]byte, error) {
	m.Type = m.Kind()
	return Marshal(m.object())
}

// UnmarshalJSON reads a message in which every member may be missing. The error is a *DecodeError or ErrNotObject.
func (m *Message) UnmarshalJSON(data []byte) error {
	var whole Message
	err := whole.read(data)
	if err == nil {
		*m = whole
	}
	return Locate(data, err)
}

// MarshalJSON writes the evidence with its unknown members.
func (o Origin) MarshalJSON() ([]byte, error) { return Marshal(o.object()) }

// UnmarshalJSON reads evidence, and keeps unknown members. The error is a *DecodeError.
func (o *Origin) UnmarshalJSON(data []byte) error { return Unmarshal(data, o.object()) }

// MarshalJSON writes the attachment with its unknown members.
func (a Attachment) MarshalJSON() ([]byte, error) { return Marshal(a.object()) }

// UnmarshalJSON reads an attachment, and keeps unknown members. The error is a *DecodeError.
func (a *Attachment) UnmarshalJSON(data []byte) error { return Unmarshal(data, a.object()) }

func (m *Message) object() any {
	type plain Message // without the methods
	return jsonextra.Object((*plain)(m), &m.Extra)
}

func (o *Origin) object() any {
	type plain Origin
	return jsonextra.Object((*plain)(o), &o.Extra)
}

func (a *Attachment) object() any {
	type plain Attachment
	return jsonextra.Object((*plain)(a), &a.Extra)
}

// Encode returns the message as it is stored: one line with a line feed. Beyond MaxBody and MaxFile it fails.
func (m *Message) Encode() ([]byte, error) {
	b, err := m.MarshalJSON()
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode message %s: %w", m.ID, err)
	case len(m.Body) > MaxBody:
		return nil, fmt.Errorf("the body has %d bytes, the limit is %d", len(m.Body), MaxBody)
	case len(b) >= MaxFile:
		return nil, fmt.Errorf("the message takes %d bytes, the limit is %d", len(b)+1, MaxFile)
	}
	return append(b, '\n'), nil
}

// ErrNotMessage is returned for an object that is not a message.
var ErrNotMessage = errors.New(`not a message: it has no member such as "body" or "to"`)

// Decode reads a stored message: id, sender and full addresses are required. The error is a *DecodeError or
// ErrNotObject.
func Decode(data []byte) (*Message, error) {
	m := &Message{}
	err := m.read(data)
	switch {
	case err != nil:
	case m.ID == "":
		err = errors.New("the message has no id")
	case m.From == Address{}:
		err = errors.New("the message has no sender")
	case slices.ContainsFunc(append(m.To, m.From), func(a Address) bool { return a.Team == "" }):
		err = errors.New("an address has no team")
	}
	return m, Locate(data, err)
}

// DecodeDraft reads a message as a person or a program writes it: it may be incomplete, bare names get team, and the
// ignored members may be anything. The error is ErrNotMessage if no member identifies a message of ours (a package.json
// has a "type" too), ErrNotObject or a *DecodeError.
func DecodeDraft(data []byte, team Name, ignored ...string) (*Message, error) {
	o, err := ReadObject(data)
	if err != nil {
		return nil, err
	}
	isOurs := func(m Member) bool { return slices.Contains(messageFields(), m.Name) }
	if !slices.ContainsFunc(o.Without("id", "type", "meta"), isOurs) {
		return nil, ErrNotMessage
	}
	m := &Message{}
	err = m.read(o.Without(ignored...).Encode())
	if m.From != (Address{}) {
		m.From.Team = cmp.Or(m.From.Team, team)
	}
	for i := range m.To {
		m.To[i].Team = cmp.Or(m.To[i].Team, team)
	}
	return m, Locate(data, err)
}

// messageFields are the members of a message.
var messageFields = sync.OnceValue(fieldNames[Message])

// read reads a message in which every member may be missing or null.
func (m *Message) read(data []byte) error {
	if err := readObject(data, m.object()); err != nil {
		return err
	}
	for _, raw := range []*json.RawMessage{&m.Payload, &m.Meta, &m.Extra} {
		if string(*raw) == "null" {
			*raw = nil
		} else if *raw != nil {
			*raw = Compact(*raw) // a stranger's file may have line feeds in it
		}
	}
	if m.Type == TypeMessage {
		m.Type = ""
	}
	return m.check()
}

// check says what is wrong with a decoded message that its Go types allow.
func (m *Message) check() error {
	switch {
	case m.Payload != nil && m.Payload[0] != '{':
		return &MemberError{"payload", "must be an object"}
	case m.Meta != nil && m.Meta[0] != '{':
		return &MemberError{"meta", "must be an object"}
	case len(m.Body) > MaxBody || strings.ContainsRune(m.Body, 0):
		return &MemberError{"body", "must be a text without NUL of at most 1 MiB"}
	case m.Priority != "" && m.Priority != "normal" && m.Priority != "urgent":
		return &MemberError{"priority", "must be normal or urgent"}
	case m.ReplyWanted != "" && m.ReplyWanted != "yes" && m.ReplyWanted != "no":
		return &MemberError{"reply_wanted", "must be yes or no"}
	case m.Hop < 0 || m.Hop > math.MaxUint32:
		return &MemberError{"hop", "must be a whole number from 0 to 4294967295"}
	}
	if err := m.CheckChoices(); err != nil {
		return &MemberError{"choices", err.Error()}
	}
	for _, a := range m.Attachments {
		if a.SHA256 == "" {
			return &MemberError{"attachments", "sha256 is missing"}
		} else if !IsSHA256(a.SHA256) {
			return &MemberError{"attachments", "sha256: must be 64 hex digits"}
		} else if a.Size < 0 {
			return &MemberError{"attachments", "size: must not be negative"}
		}
	}
	return nil
}

// ReplaceHost replaces a host in all addresses. When a message leaves this machine, "" becomes the machine's name, and
// an ack gets the id that AckID derives for its recipient there; on arrival, the machine's own name becomes "".
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

// SetMeta sets a JSON value under meta.atm and keeps everything else in meta.
func (m *Message) SetMeta(key string, value json.RawMessage) {
	meta := parseObject(m.Meta)
	if ours := meta.Object("atm").With(key, value).Encode(); ours != nil {
		m.Meta = meta.With("atm", ours).Encode()
	}
}

// Label returns a string in meta that is not ours; ok is false if there is none.
func (m *Message) Label(key string) (value string, ok bool) {
	meta := parseObject(m.Meta)
	return meta.Text(key), meta.Get(key) != nil
}

// MetaString returns a string that SetMeta set, else "".
func (m *Message) MetaString(key string) string { return parseObject(m.Meta).Object("atm").Text(key) }

// HasOurMeta reports whether meta has a member atm or atm.…, which only atm writes.
func (m *Message) HasOurMeta() bool {
	return slices.ContainsFunc(parseObject(m.Meta), func(o Member) bool { return strings.HasPrefix(o.Name+".", "atm.") })
}
