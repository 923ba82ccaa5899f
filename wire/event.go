package wire

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one line of an agent's event log. Kinds of our own have their fields beside the common ones
// (Extra); an event of another vocabulary is kept whole under Wire.
type Event struct {
	Seq     uint64          `json:"seq"`         // from 1, no gaps, per agent; given by the log
	At      time.Time       `json:"at,omitzero"` // when it was appended, UTC
	Team    Name            `json:"team,omitzero"`
	Agent   Name            `json:"agent,omitzero"`  // the log's owner
	Source  string          `json:"source,omitzero"` // pty, acp, hook, drop, cli, mcp, bridge
	Kind    string          `json:"kind,omitzero"`
	Session string          `json:"session,omitzero"`
	TurnID  string          `json:"turn_id,omitzero"`
	EventID string          `json:"event_id,omitzero"` // an append with the same one within the last MiB is a no-op
	Wire    json.RawMessage `json:"wire,omitzero"`
	Extra   jsontext.Value  `json:",embed,inline"` // an object of the kind's own fields
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
	EventReturned        = "message_returned" // the lease has ended and the message is free; with by and how
	EventAgain           = "message_again"    // unread again, since its turn was cut short and its sender asks again
)

// EventStage says how far a message of the log's owner has got on another host: with id, to, host, stage, reached_at,
// evidence and text.
const EventStage = "delivery_stage"

// The kinds of the daemon's stream.
const (
	TurnStarted     = "turn_started"
	TurnCompleted   = "turn_completed"
	TurnIdle        = "turn_idle"
	StreamFailed    = "stream_error"
	DroppedCounters = "dropped_counters"
)

func isEventField(name string) bool { return schemas()["log.Event"].has(name) }

// With is the event with a field of its kind set to a value. A value that cannot be written as JSON changes nothing.
func (e Event) With(key string, value any) Event {
	if raw, err := Marshal(value); err == nil {
		e.Extra = jsontext.Value(members(e.Extra).With(key, raw).encode())
	}
	return e
}

// Field is a field of the kind's own that is a string, else "".
func (e *Event) Field(key string) string { return members(e.Extra).Text(key) }

// MessageID is the id of the message that an event of the mailbox is about.
func (e *Event) MessageID() ID { return ID(e.Field("id")) }

// Append appends the event as one line of JSON, without a line feed. It appends nothing if Wire or Extra is not JSON.
func (e *Event) Append(dst []byte) []byte {
	line, err := e.MarshalJSON()
	if err != nil {
		return dst
	}
	return append(dst, line...)
}

// MarshalJSON writes the event in one line. The error is a Wire or Extra that is no JSON.
func (e *Event) MarshalJSON() ([]byte, error) {
	type plain Event // without this method
	return jsonv2.Marshal((*plain)(e), writing)
}

// DecodeEvent reads one line of an event log.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	if err := jsonv2.Unmarshal(line, &e, reading); err != nil || !utf8.Valid(line) {
		if _, wrong := Canonical("log.Event", line); wrong != nil {
			return Event{}, wrong // it says where
		}
		return Event{}, err
	}
	if string(e.Wire) == "null" {
		e.Wire = nil
	}
	if e.Seq == 0 {
		return Event{}, errorAt(0, "the event has no seq").in(line)
	}
	return e, nil
}
