package wire

import "fmt"

// The vocabulary of agent-team-mail's daemon: what it tells of the turns of
// its agents, tag "kind".

// The kinds of a DaemonStreamEvent.
const (
	TurnStarted     = "turn_started"
	TurnCompleted   = "turn_completed"
	TurnIdle        = "turn_idle"
	StreamFailed    = "stream_error"
	DroppedCounters = "dropped_counters"
)

// DaemonStreamEvent is one event of the daemon's stream. Which members count
// is said by Kind; the others are not written. Read may be an event that lacks of a
// turn what can be done without: agent, thread, turn id and transport.
type DaemonStreamEvent struct {
	Kind         string         `json:"kind"`
	Agent        string         `json:"agent"`     // of a turn
	AgentID      string         `json:"agent_id"`  // of stream_error and dropped_counters
	ThreadID     string         `json:"thread_id"` // started, completed
	TurnID       string         `json:"turn_id"`   // started, completed, idle (there "" when it is not known)
	Status       TurnStatusWire `json:"status"`
	Transport    string         `json:"transport"` // mcp, cli-json, app-server, or another; of a turn
	SessionID    string         `json:"session_id"`
	ErrorSummary string         `json:"error_summary"`
	Dropped      uint64         `json:"dropped"`
	Unknown      uint64         `json:"unknown"`
}

func (DaemonStreamEvent) form() *group { return &daemonKinds }

// TurnStatusWire says how a turn ended: completed, interrupted or failed.
type TurnStatusWire string

// StreamTurnStatus is where an agent's turn is: idle (the start), busy or
// terminal.
type StreamTurnStatus string

func (s StreamTurnStatus) String() string { return string(s) }

// AgentStreamState is what the daemon knows of an agent's turn; nil is not
// known.
type AgentStreamState struct {
	TurnID     *string          `json:"turn_id"`
	ThreadID   *string          `json:"thread_id"`
	Transport  *string          `json:"transport"`
	TurnStatus StreamTurnStatus `json:"turn_status"`
}

func (AgentStreamState) form() *group {
	return plainly(field{"turn_id", may, text}, field{"thread_id", may, text}, field{"transport", may, text},
		field{"turn_status", must, oneOf("idle", "busy", "terminal")})
}

// String is the daemon's own line for the event.
func (e DaemonStreamEvent) String() string {
	switch e.Kind {
	case TurnStarted:
		return fmt.Sprintf("TurnStarted(agent=%s, turn_id=%s, transport=%s)", e.Agent, e.TurnID, e.Transport)
	case TurnCompleted:
		return fmt.Sprintf("TurnCompleted(agent=%s, turn_id=%s, transport=%s)", e.Agent, e.TurnID, e.Transport)
	case TurnIdle:
		return fmt.Sprintf("TurnIdle(agent=%s, transport=%s)", e.Agent, e.Transport)
	case StreamFailed:
		return fmt.Sprintf("StreamError(agent_id=%s, session_id=%s, error_summary=%s)", e.AgentID, e.SessionID, e.ErrorSummary)
	case DroppedCounters:
		return fmt.Sprintf("DroppedCounters(agent_id=%s, dropped=%d, unknown=%d)", e.AgentID, e.Dropped, e.Unknown)
	}
	return e.Kind
}
