package wire

import (
	"cmp"
	"encoding/json"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one line of an agent's event log. Our own kinds have their fields in Extra; an event of another vocabulary
// is kept whole in Wire.
type Event struct {
	Seq     uint64          `json:"seq"`         // from 1, no gaps, per agent; assigned by the log
	At      time.Time       `json:"at,omitzero"` // when it was appended, UTC
	Team    Name            `json:"team,omitzero"`
	Agent   Name            `json:"agent,omitzero"`  // the log's owner
	Source  string          `json:"source,omitzero"` // pty, acp, hook, drop, cli, mcp, bridge
	Kind    string          `json:"kind,omitzero"`
	Session string          `json:"session,omitzero"`
	TurnID  string          `json:"turn_id,omitzero"`
	EventID string          `json:"event_id,omitzero"` // idempotency key: appending it again within the last MiB is a no-op
	Wire    json.RawMessage `json:"wire,omitzero"`
	Extra   jsontext.Value  `json:",embed,inline"` // an object
}

// The mailbox's own kinds. Each carries the message's id.
const (
	EventAnnounced       = "message_announced"
	EventRead            = "message_read" // with batch
	EventAcked           = "message_acked"
	EventWithdrawn       = "message_withdrawn"
	EventInjecting       = "injecting"
	EventInjected        = "injected"
	EventInjectionFailed = "injection_failed"
	EventReturned        = "message_returned" // the lease has ended, the message is free again; with by and how
	EventAgain           = "message_again"    // unread again: its turn was cut short and its sender asks again
)

// EventStage reports how far a message of the log's owner has got on another host: with id, to, host, stage,
// reached_at, evidence and text.
const EventStage = "delivery_stage"

// The kinds of the daemon stream.
const (
	TurnStarted     = "turn_started"
	TurnCompleted   = "turn_completed"
	TurnIdle        = "turn_idle"
	StreamFailed    = "stream_error"
	DroppedCounters = "dropped_counters"
)

func isEventField(name string) bool { return schemas()["log.Event"].hasField(name) }

// With returns the event with a field of its kind set. A value that JSON cannot express changes nothing.
func (e Event) With(key string, value any) Event {
	if raw, err := Marshal(value); err == nil {
		e.Extra = jsontext.Value(parseObject(e.Extra).With(key, raw).encode())
	}
	return e
}

// Field returns a field in Extra that is a string, else "".
func (e *Event) Field(key string) string { return parseObject(e.Extra).Text(key) }

// MessageID returns the id of the message that a mailbox event is about.
func (e *Event) MessageID() ID { return ID(e.Field("id")) }

// Names returns the agent that the event itself names, which may differ from the log's owner, else the log's owner.
func (e *Event) Names() string { return cmp.Or(e.Text("agent"), string(e.Agent)) }

// Append appends the event as one line of JSON, without a line feed. It appends nothing if Wire or Extra is not JSON.
func (e *Event) Append(dst []byte) []byte {
	line, err := e.MarshalJSON()
	if err != nil {
		return dst
	}
	return append(dst, line...)
}

// MarshalJSON writes the event in one line. It fails if Wire or Extra is not JSON.
func (e *Event) MarshalJSON() ([]byte, error) {
	type plain Event // without this method
	return jsonv2.Marshal((*plain)(e), writing)
}

// DecodeEvent reads one line of an event log.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	if err := jsonv2.Unmarshal(line, &e, reading); err != nil || !utf8.Valid(line) {
		if _, wrong := Canonical("log.Event", line); wrong != nil {
			return Event{}, wrong // it has a place
		}
		return Event{}, err
	}
	if string(e.Wire) == "null" {
		e.Wire = nil
	}
	if e.Seq == 0 {
		return Event{}, errorAt(0, "the event has no seq").locate(line)
	}
	return e, nil
}
