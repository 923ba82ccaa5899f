package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Event is one line of an agent's event log.
//
// Kinds of our own have their fields beside the common ones (Extra); an event
// of another vocabulary is kept whole, as received, under Wire.
type Event struct {
	Seq     uint64    // from 1, no gaps, per agent; given by the log
	At      time.Time // when it was appended, UTC
	Team    Name
	Agent   Name   // the log's owner
	Source  string // pty, acp, hook, drop, cli, mcp, bridge
	Kind    string
	Session string
	TurnID  string
	EventID string // an append with the same one within the last MiB is a no-op
	Wire    json.RawMessage
	Extra   []Field
}

// The mailbox's own kinds; each carries the message's id.
const (
	EventAnnounced       = "message_announced"
	EventRead            = "message_read" // with batch
	EventAcked           = "message_acked"
	EventWithdrawn       = "message_withdrawn"
	EventInjecting       = "injecting"
	EventInjected        = "injected"
	EventInjectionFailed = "injection_failed"
	EventTaken           = "message_taken"    // under a lease, with by, lease and try
	EventReturned        = "message_returned" // that one has ended and the message is free, with by and how
	EventAside           = "message_aside"    // taken too often and never finished, with tries
	EventAgain           = "message_again"    // its turn was cut short: unread again, for who asks again, by
)

// IsMailboxKind reports whether a kind is the mailbox's own: evidence of what
// was done with a message, which only who does it appends.
func IsMailboxKind(kind string) bool {
	switch kind {
	case EventAnnounced, EventRead, EventAcked, EventWithdrawn, EventInjecting, EventInjected, EventInjectionFailed,
		EventTaken, EventReturned, EventAside, EventAgain:
		return true
	}
	return false
}

// IsLeaseKind reports whether a kind tells of a message under a lease.
func IsLeaseKind(kind string) bool {
	return kind == EventTaken || kind == EventReturned || kind == EventAside
}

// With adds a string field of the kind's own and returns the event.
func (e Event) With(key, value string) Event {
	e.Extra = append(e.Extra[:len(e.Extra):len(e.Extra)], StringField(key, value))
	return e
}

// StringField is a member that is a string.
func StringField(key, value string) Field {
	return Field{Key: key, Raw: AppendString(make([]byte, 0, len(value)+2), value)}
}

// Field is the string value of one of the kind's own fields, "" when it is
// absent or no string.
func (e *Event) Field(key string) string {
	for _, f := range e.Extra {
		if f.Key == key {
			s, _ := decodeString(f.Raw)
			return s
		}
	}
	return ""
}

// MessageID is the id of the message that an event of the mailbox is about.
func (e *Event) MessageID() ID { return ID(e.Field("id")) }

// Append appends the event as one line of JSON, without a line feed.
func (e *Event) Append(dst []byte) []byte {
	w := objectWriter{b: dst}
	w.key("seq")
	w.b = strconv.AppendUint(w.b, e.Seq, 10)
	w.time("at", e.At)
	w.str("team", string(e.Team))
	w.str("agent", string(e.Agent))
	w.str("source", e.Source)
	w.str("kind", e.Kind)
	w.str("session", e.Session)
	w.str("turn_id", e.TurnID)
	w.str("event_id", e.EventID)
	w.raw("wire", e.Wire)
	w.fields(e.Extra)
	return w.end()
}

// MarshalJSON is Append for encoding/json.
func (e *Event) MarshalJSON() ([]byte, error) { return e.Append(nil), nil }

// eventFields are the fields that all events have.
var eventFields = []string{"seq", "at", "team", "agent", "source", "kind", "session", "turn_id", "event_id", "wire"}

// DecodeEvent reads one line of an event log.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	var room [16]Field
	fields, err := taken(bytes.Clone(line), room[:0]) // Object, in less memory
	if err != nil {
		return e, err
	}
	for _, f := range fields {
		if string(f.Raw) == "null" {
			switch f.Key {
			case "seq", "at", "team", "agent", "source", "kind", "session", "turn_id", "event_id", "wire":
			default:
				e.Extra = append(e.Extra, f)
			}
			continue
		}
		switch f.Key {
		case "seq":
			if e.Seq, err = strconv.ParseUint(string(f.Raw), 10, 64); err != nil {
				err = errors.New("must be a whole number")
			}
		case "at":
			e.At, err = decodeTime(f.Raw)
		case "team":
			err = decodeName(f.Raw, &e.Team)
		case "agent":
			err = decodeName(f.Raw, &e.Agent)
		case "source":
			e.Source, err = decodeString(f.Raw)
		case "kind":
			e.Kind, err = decodeString(f.Raw)
		case "session":
			e.Session, err = decodeString(f.Raw)
		case "turn_id":
			e.TurnID, err = decodeString(f.Raw)
		case "event_id":
			e.EventID, err = decodeString(f.Raw)
		case "wire":
			e.Wire = f.Raw
		default:
			e.Extra = append(e.Extra, f)
		}
		if err != nil {
			return e, decodeError(line, f.at, false, "%s: %s", f.Key, err)
		}
	}
	if e.Seq == 0 {
		return e, decodeError(line, 0, false, "the event has no seq")
	}
	return e, nil
}

func decodeName(raw json.RawMessage, to *Name) error {
	s, err := decodeString(raw)
	if err == nil {
		*to, err = ParseName(s)
	}
	return err
}
