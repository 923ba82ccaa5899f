package foreign

import (
	"cmp"

	"github.com/agentteammail/atm/wire"
)

// The daemon of agent-team-mail. Its stream's kinds are atm's own.
var (
	turnStatusWire   = oneOf("completed", "interrupted", "failed")
	streamTurnStatus = oneOf("idle", "busy", "terminal")

	agentStreamState = object(func() members {
		return members{orAbsent("turn_id", text, "null"), orAbsent("thread_id", text, "null"), orAbsent("transport", text, "null"),
			required("turn_status", streamTurnStatus)}
	})
	daemonEvent = tagged("kind", func() kinds {
		return kinds{
			"turn_started":     {orAbsent("agent", text, `""`), orAbsent("thread_id", text, `""`), orAbsent("turn_id", text, `""`), orAbsent("transport", text, `""`)},
			"turn_completed":   {orAbsent("agent", text, `""`), orAbsent("thread_id", text, `""`), orAbsent("turn_id", text, `""`), required("status", turnStatusWire), orAbsent("transport", text, `""`)},
			"turn_idle":        {orAbsent("agent", text, `""`), orAbsent("turn_id", text, `""`), orAbsent("transport", text, `""`)},
			"stream_error":     {required("agent_id", text), required("session_id", text), required("error_summary", text)},
			"dropped_counters": {required("agent_id", text), required("dropped", uint64s), required("unknown", uint64s)},
		}
	})
	// As the daemon itself reads them. An event that is adopted may lack what the log fills in.
	daemonStream = tagged("kind", func() kinds {
		all := kinds{}
		for kind, fields := range daemonEvent.kinds() {
			for _, f := range fields {
				all[kind] = append(all[kind], required(f.name, f.typ))
			}
		}
		return all
	})
)

// TurnStatusWire, of the daemon of agent-team-mail, says how a turn ended: completed, interrupted or failed.
type TurnStatusWire string

// StreamTurnStatus is the status that the daemon gives a turn: idle, busy or terminal. Its words are those of reducer.TurnStatus.
type StreamTurnStatus string

// DaemonStreamEvent is an event of the daemon's stream, with the members of all kinds: turn_started, turn_completed,
// turn_idle, stream_error and dropped_counters.
type DaemonStreamEvent struct {
	Kind         string         `json:"kind"`
	Agent        string         `json:"agent"`
	ThreadID     string         `json:"thread_id"`
	TurnID       string         `json:"turn_id"`
	Status       TurnStatusWire `json:"status"`
	Transport    string         `json:"transport"` // mcp, cli-json, app-server, or another
	AgentID      string         `json:"agent_id"`
	SessionID    string         `json:"session_id"`
	ErrorSummary string         `json:"error_summary"`
	Dropped      uint64         `json:"dropped"`
	Unknown      uint64         `json:"unknown"`
}

// AgentStreamState is what the daemon knows of an agent's turn. reducer.Turn has it of any agent.
type AgentStreamState struct {
	TurnID     *string          `json:"turn_id"`
	ThreadID   *string          `json:"thread_id"`
	Transport  *string          `json:"transport"`
	TurnStatus StreamTurnStatus `json:"turn_status"`
}

// String returns the line that the daemon prints for the event.
func (v DaemonStreamEvent) String() string { return lineOf(v.Kind, v) }

// UnmarshalJSON reads what the daemon would read. The error is a *wire.DecodeError or wire.ErrNotObject.
func (v *TurnStatusWire) UnmarshalJSON(b []byte) error { return turnStatusWire.read(b, v) }

func (v *StreamTurnStatus) UnmarshalJSON(b []byte) error { return streamTurnStatus.read(b, v) }

// MarshalJSON writes the status; without one a turn is idle.
func (v StreamTurnStatus) MarshalJSON() ([]byte, error) {
	return wire.Quote(string(cmp.Or(v, "idle"))), nil
}

func (v DaemonStreamEvent) MarshalJSON() ([]byte, error)  { return daemonEvent.write(v) }
func (v *DaemonStreamEvent) UnmarshalJSON(b []byte) error { return daemonStream.read(b, v) }

func (v AgentStreamState) MarshalJSON() ([]byte, error)  { return agentStreamState.write(v) }
func (v *AgentStreamState) UnmarshalJSON(b []byte) error { return agentStreamState.read(b, v) }
