package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one line of an event log. Our own kinds have fields in Extra; other vocabularies are kept whole in Wire.
type Event struct {
	Seq     uint64          `json:"seq"`         // from 1, no gaps, per agent; assigned by the log
	At      time.Time       `json:"at,omitzero"` // when it was appended, UTC
	Team    Name            `json:"team,omitzero"`
	Agent   Name            `json:"agent,omitzero"`  // the log's owner
	Source  string          `json:"source,omitzero"` // cli, drop, hook, pty, acp, bridge
	Kind    string          `json:"kind,omitzero"`
	Session string          `json:"session,omitzero"`
	TurnID  string          `json:"turn_id,omitzero"`
	EventID string          `json:"event_id,omitzero"` // an append with the same one within the last MiB is a no-op
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
	EventReturned        = "message_returned" // free again: the holder of its lease gave it back; with by
	EventUnread          = "message_again"    // unread again: its turn was cut short
	EventStage           = "delivery_stage"   // how far it has got on another host; with stage, evidence, …
)

// The kinds of the daemon stream.
const (
	TurnStarted     = "turn_started"
	TurnCompleted   = "turn_completed"
	TurnIdle        = "turn_idle"
	StreamError     = "stream_error"
	DroppedCounters = "dropped_counters"
)

// With returns the event with a field of its kind set. A value that JSON cannot express changes nothing.
func (e Event) With(key string, value any) Event {
	if raw, err := Marshal(value); err == nil {
		e.Extra = parseObject(e.Extra).With(key, raw).Encode()
	}
	return e
}

// Field returns a field in Extra that is a string, else "".
func (e *Event) Field(key string) string { return parseObject(e.Extra).Text(key) }

// MessageID returns the id of the message that a mailbox event is about.
func (e *Event) MessageID() ID { return ID(e.Field("id")) }

// AgentName returns the agent that the event itself names, which may differ from the log's owner, else the log's owner.
func (e *Event) AgentName() string { return cmp.Or(e.Text("agent"), string(e.Agent)) }

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

// DecodeEvent reads one line of an event log. The error is a *DecodeError or ErrNotObject.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	err := Unmarshal(line, &e)
	if err != nil {
		_, wrong := Canonical("log.Event", line) // it has a place
		err = cmp.Or(wrong, err)
	} else if e.Seq == 0 {
		err = locate(line, errors.New("the event has no seq"))
	}
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// isAnswer reports whether a kind of event answers a request of the older ACP.
func isAnswer(kind string) bool { return kind == "permission_result" || kind == "tool_result" }

// IsHearsay reports whether the event is an answer to a request that neither atm approve nor atm reject has given: these
// alone say, at the top of the event, by whom. Whoever follows the log for an answer must not get it.
func (e *Event) IsHearsay() bool { return isAnswer(e.Kind) && e.Field("by") == "" }

// Compose makes an event from a kind and the fields that somebody types. A value is a string, unless it is a JSON
// object or array, or the kind's field is a number. turn_id, session and event_id become the event's own. If a field
// has the name of another member that all events have (seq, at, team, agent, source), or is agent_id, the daemon's
// other word for agent, all fields go under Wire.
func Compose(kind string, pairs [][2]string) (Event, error) {
	e, s := Event{Kind: kind}, schemas()[typeOf(kind)]
	switch {
	case !isKind(kind):
		return e, fmt.Errorf("%q is not a kind: a-z, 0-9 and _, at most 64", Clip(kind, 40))
	case hasKind(mailboxEvent, kind):
		return e, fmt.Errorf("%s records what happens to a message, and only atm appends it", kind)
	case isAnswer(kind) && slices.ContainsFunc(pairs, func(pair [2]string) bool { return pair[0] == "by" }):
		return e, fmt.Errorf("by: only atm approve and atm reject say who has answered")
	}
	whole := Object{{Name: s.tag, Value: Quote(kind)}}
	for _, pair := range pairs {
		name := pair[0]
		if whole.Has(name) || name == "kind" {
			return e, fmt.Errorf("%s appears twice", name)
		}
		raw, err := s.parseTyped(kind, name, pair[1])
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
		whole = append(whole, Member{Name: name, Value: raw})
	}
	e.TurnID, e.Session, e.EventID = whole.Text("turn_id"), whole.Text("session"), whole.Text("event_id")
	own := whole.without(s.tag, "turn_id", "session", "event_id")
	if slices.ContainsFunc(own, func(m Member) bool { return isEventField(m.Name) || m.Name == "agent_id" }) {
		e.Wire = whole.Encode()
	} else if len(own) > 0 {
		e.Extra = own.Encode()
	}
	return e, nil
}

// parseTyped returns the JSON of a field's typed value. The log accepts any new state; here a typing error is caught.
func (s *schema) parseTyped(kind, name, value string) (json.RawMessage, error) {
	want := schemas()["any"]
	for _, f := range s.kinds[kind] {
		if f.name == name {
			want = f.schema
		}
	}
	if kind == "state_change" && name == "new" {
		want = schemas()["log.Activity"]
	}
	raw := compact([]byte(value))
	isNumber := want == schemas()["int"] || want == schemas()["u64"]
	if raw == nil || !isNumber && raw[0] != '{' && raw[0] != '[' {
		raw = Quote(value)
	}
	return want.canonical(raw)
}

func isEventField(name string) bool { return schemas()["log.Event"].hasField(name) }
