package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/jsonextra"
)

// Event is one line of an event log. The fields of its kind are in Extra. What came from another system has that
// system's object, whole, in Wire; package foreign makes such events.
type Event struct {
	Seq     uint64          `json:"seq"`         // from 1, no gaps, per agent; assigned by the log
	At      time.Time       `json:"at,omitzero"` // when it was appended, UTC
	Team    Name            `json:"team,omitzero"`
	Agent   Name            `json:"agent,omitzero"`  // the log's owner
	Source  string          `json:"source,omitzero"` // SourceCLI, …: whoever says so
	Kind    string          `json:"kind,omitzero"`
	Session string          `json:"session,omitzero"`
	TurnID  string          `json:"turn_id,omitzero"`
	EventID string          `json:"event_id,omitzero"` // an append with the same one within the last MiB is a no-op
	Wire    json.RawMessage `json:"wire,omitzero"`     // an object
	Extra   json.RawMessage `json:"-"`                 // an object
}

// The sources of events. What an event counts for depends on its source (package reducer).
const (
	SourceCLI    = "cli"    // the agent itself, with a command or by a program that appends to its log
	SourceDrop   = "drop"   // a dropped file
	SourceHook   = "hook"   // the hooks of the agent's program
	SourcePTY    = "pty"    // the runner, of a program in a terminal
	SourceACP    = "acp"    // the runner, of a program that speaks ACP
	SourceBridge = "bridge" // a bridge to other machines or programs
)

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

// The kinds of a turn, and of what went wrong in one.
const (
	TurnStarted     = "turn_started"
	TurnCompleted   = "turn_completed"
	TurnIdle        = "turn_idle"
	StreamError     = "stream_error"
	DroppedCounters = "dropped_counters"
)

// The kinds of what an agent's program does. docs/format.md has the fields of each.
const (
	Spawned    = "spawned" // by a runner; with pid
	Exited     = "exited"
	Restarting = "restarting"

	FreshStart = "fresh_start" // nothing that the log has begun goes on: the root was accepted, or the member restored

	SessionStart  = "session_start"
	SessionEnd    = "session_end"
	SessionNew    = "session_new" // a client asks for it, as for the next two
	SessionLoad   = "session_load"
	SessionCancel = "session_cancel"

	StateChange    = "state_change" // with new, the activity (package reducer)
	ThreadActive   = "thread_active"
	MessageDelta   = "message_delta"
	ThoughtDelta   = "thought_delta"
	ToolCallStart  = "tool_call_start"
	ToolCallUpdate = "tool_call_update"
	ToolCallEnd    = "tool_call_end"

	ConfirmRequired  = "confirm_required"  // a permission is asked for
	WaitingForInput  = "waiting_for_input" // words are
	ServerRequest    = "server_request"
	PermissionResult = "permission_result"
	ToolResult       = "tool_result"

	AgentOutput  = "agent_output"
	DraftReady   = "draft_ready"
	GoalComplete = "goal_complete"
	StatusUpdate = "status_update"

	Usage = "usage" // tokens and money that a conversation has used so far
)

// The fields that events of several kinds have. docs/format.md says which, and names the others.
const (
	FieldID           = "id"     // of the message, or of the question
	FieldBy           = "by"     // who did it
	FieldNew          = "new"    // the activity, of a StateChange
	FieldStatus       = "status" // how a turn or a tool call ended
	FieldReason       = "reason"
	FieldDetail       = "detail"
	FieldPrompt       = "prompt"
	FieldDelta        = "delta" // a piece of what the agent says or thinks
	FieldTool         = "tool"
	FieldOptions      = "options"  // what a question may be answered with, each with id, label and kind
	FieldResponse     = "response" // what the agent said, of a TurnCompleted
	FieldError        = "error"    // why the turn failed
	FieldErrorSummary = "error_summary"

	FieldInputTokens  = "input_tokens" // of a Usage, with the seven below
	FieldOutputTokens = "output_tokens"
	FieldCachedTokens = "cached_tokens"
	FieldTotalTokens  = "total_tokens"
	FieldCost         = "cost"
	FieldCurrency     = "currency"
	FieldContextUsed  = "context_used"
	FieldContextSize  = "context_size"
)

// FieldSession is the field of an event, and of a message's meta.atm, that names an interactive session of its agent;
// without it: all.
const FieldSession = "interactive_session"

// IsFreshStart reports whether the event is a FreshStart of atm's own. Anybody may drop one: that counts for nothing.
func (e *Event) IsFreshStart() bool { return e.Kind == FreshStart && e.Source == SourceCLI }

// CommandFailed says that a command of the owner's, which was to be run on an event, failed; with event, command, reason.
const CommandFailed = "command_failed"

// eventFields are the members that all events have.
var eventFields = sync.OnceValue(fieldNames[Event])

// With returns the event with a field of its kind set. One that has the name of a member of all events goes under Wire.
// A value that JSON cannot express changes nothing.
func (e Event) With(key string, value any) Event {
	raw, err := Marshal(value)
	switch {
	case err != nil:
	case !slices.Contains(eventFields(), key):
		e.Extra = parseObject(e.Extra).With(key, raw).Encode()
	case e.Wire == nil:
		e.Wire = Object{{Name: "kind", Value: Quote(e.Kind)}}.With(key, raw).Encode()
	default:
		e.Wire = parseObject(e.Wire).With(key, raw).Encode()
	}
	return e
}

// Field returns a field in Extra that is a string, else "". What another system said of itself is not there.
func (e *Event) Field(key string) string { return parseObject(e.Extra).Text(key) }

// MessageID returns the id of the message that a mailbox event is about.
func (e *Event) MessageID() ID { return ID(e.Field(FieldID)) }

// Append appends the event as one line of JSON, without a line feed. It appends nothing if Wire or Extra is not JSON.
func (e *Event) Append(dst []byte) []byte {
	line, err := e.MarshalJSON()
	if err != nil {
		return dst
	}
	return append(dst, line...)
}

// MarshalJSON writes the event in one line. It fails if Wire or Extra is not JSON.
func (e Event) MarshalJSON() ([]byte, error) { return Marshal(e.object()) }

// UnmarshalJSON reads an event in which every member may be missing. The error is a *DecodeError or ErrNotObject.
func (e *Event) UnmarshalJSON(data []byte) error {
	var read Event
	err := readObject(data, read.object())
	if string(read.Wire) == "null" {
		read.Wire = nil
	}
	if err == nil {
		*e = read
	}
	return Locate(data, err)
}

func (e *Event) object() any {
	type plain Event // without the methods
	return jsonextra.Object((*plain)(e), &e.Extra)
}

// DecodeEvent reads one line of an event log. The error is a *DecodeError or ErrNotObject.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	err := e.UnmarshalJSON(line)
	if err == nil && e.Seq == 0 {
		err = Locate(line, errors.New("the event has no seq"))
	}
	return e, err
}

// Body has the fields of an event: its own, then those at the top of Wire that have other names.
type Body struct{ members Object }

// Body parses Extra and Wire. To read several fields, call it once.
func (e *Event) Body() Body {
	var own Object
	if e.Session != "" {
		own = append(own, Member{Name: "session", Value: Quote(e.Session)})
	}
	if e.TurnID != "" {
		own = append(own, Member{Name: "turn_id", Value: Quote(e.TurnID)})
	}
	return Body{slices.Concat(own, parseObject(e.Extra), parseObject(e.Wire))}
}

// Raw returns a field's value, nil if it is absent or null.
func (b Body) Raw(name string) json.RawMessage {
	for _, m := range b.members {
		if m.Name == name && string(m.Value) != "null" {
			return m.Value
		}
	}
	return nil
}

// Text returns the first of the fields that is a string and not empty, else "".
func (b Body) Text(names ...string) string {
	for _, name := range names {
		for _, m := range b.members {
			if s := Unquote(m.Value); m.Name == name && s != "" {
				return s
			}
		}
	}
	return ""
}

// Uint returns a field that is a whole number, exact to 64 bits.
func (b Body) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(string(b.Raw(name)), 10, 64)
	return n, err == nil
}

// Text is Body().Text.
func (e *Event) Text(names ...string) string { return e.Body().Text(names...) }

// Uint is Body().Uint.
func (e *Event) Uint(name string) (uint64, bool) { return e.Body().Uint(name) }
