package wire

import (
	"fmt"
	"strconv"
)

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
// is said by Kind; the others are not written.
type DaemonStreamEvent struct {
	Kind         string
	Agent        string // "agent" of a turn, "agent_id" of the others
	ThreadID     string // started, completed
	TurnID       string // started, completed, idle (there "" when it is not known)
	Transport    string // mcp, cli-json, app-server, or another; of a turn
	Status       TurnStatusWire
	SessionID    string // stream_error
	ErrorSummary string
	Dropped      uint64 // dropped_counters
	Unknown      uint64
}

// TurnStatusWire says how a turn ended.
type TurnStatusWire string

func (TurnStatusWire) variants() []string { return []string{"completed", "interrupted", "failed"} }

// StreamTurnStatus is where an agent's turn is.
type StreamTurnStatus string

// The states of a turn.
const (
	StreamIdle     StreamTurnStatus = "idle" // the start
	StreamBusy     StreamTurnStatus = "busy"
	StreamTerminal StreamTurnStatus = "terminal"
)

func (StreamTurnStatus) variants() []string { return []string{"idle", "busy", "terminal"} }

func (s StreamTurnStatus) String() string { return string(s) }

// AgentStreamState is what the daemon knows of an agent's turn; nil is not
// known.
type AgentStreamState struct {
	TurnID     *string          `wire:"turn_id"`
	ThreadID   *string          `wire:"thread_id"`
	Transport  *string          `wire:"transport"`
	TurnStatus StreamTurnStatus `wire:"turn_status"`
}

// IsDaemonKind reports whether a kind is one of the daemon's stream.
func IsDaemonKind(kind string) bool {
	switch kind {
	case TurnStarted, TurnCompleted, TurnIdle, StreamFailed, DroppedCounters:
		return true
	}
	return false
}

func (e *DaemonStreamEvent) read(r *reading) error { return e.take(r, false) }

// take reads the event. Who is not strict may leave out, of a turn, what
// format.md 5 knows how to do without: agent, thread, turn id and transport.
func (e *DaemonStreamEvent) take(r *reading, loose bool) error {
	f, err := r.must("kind")
	if err != nil {
		return err
	}
	if e.Kind, err = exactString(f.Raw); err != nil {
		return r.fail(f.at, "kind: %s", err)
	}
	switch e.Kind {
	case TurnStarted, TurnCompleted, TurnIdle:
		err = r.text("agent", &e.Agent, loose)
		if err == nil && e.Kind != TurnIdle {
			err = r.text("thread_id", &e.ThreadID, loose)
		}
		if err == nil {
			err = r.text("turn_id", &e.TurnID, loose)
		}
		if err == nil && e.Kind == TurnCompleted {
			err = e.takeStatus(r)
		}
		if err == nil {
			err = r.text("transport", &e.Transport, loose)
		}
	case StreamFailed:
		err = r.text("agent_id", &e.Agent, false)
		if err == nil {
			err = r.text("session_id", &e.SessionID, false)
		}
		if err == nil {
			err = r.text("error_summary", &e.ErrorSummary, false)
		}
	case DroppedCounters:
		err = r.text("agent_id", &e.Agent, false)
		if err == nil {
			err = r.uint("dropped", &e.Dropped)
		}
		if err == nil {
			err = r.uint("unknown", &e.Unknown)
		}
	default:
		err = r.fail(f.at, "kind: the daemon has no %q", e.Kind)
	}
	return err
}

func (e *DaemonStreamEvent) takeStatus(r *reading) error {
	var s string
	if err := r.text("status", &s, false); err != nil {
		return err
	}
	switch s {
	case "completed", "interrupted", "failed":
		e.Status = TurnStatusWire(s)
		return nil
	}
	f, _ := r.must("status")
	return r.fail(f.at, "status: %s", oneOf(e.Status.variants()))
}

func (e *DaemonStreamEvent) append(dst []byte) []byte {
	w := objectWriter{b: dst}
	w.text("kind", e.Kind)
	switch e.Kind {
	case TurnStarted, TurnCompleted, TurnIdle:
		w.text("agent", e.Agent)
		if e.Kind != TurnIdle {
			w.text("thread_id", e.ThreadID)
		}
		w.text("turn_id", e.TurnID)
		if e.Kind == TurnCompleted {
			w.text("status", string(e.Status))
		}
		w.text("transport", e.Transport)
	case StreamFailed:
		w.text("agent_id", e.Agent)
		w.text("session_id", e.SessionID)
		w.text("error_summary", e.ErrorSummary)
	case DroppedCounters:
		w.text("agent_id", e.Agent)
		w.key("dropped")
		w.b = strconv.AppendUint(w.b, e.Dropped, 10)
		w.key("unknown")
		w.b = strconv.AppendUint(w.b, e.Unknown, 10)
	}
	return w.end()
}

// text writes a string, also an empty one.
func (w *objectWriter) text(k, v string) {
	w.key(k)
	w.b = AppendString(w.b, v)
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
		return fmt.Sprintf("StreamError(agent_id=%s, session_id=%s, error_summary=%s)", e.Agent, e.SessionID, e.ErrorSummary)
	case DroppedCounters:
		return fmt.Sprintf("DroppedCounters(agent_id=%s, dropped=%d, unknown=%d)", e.Agent, e.Dropped, e.Unknown)
	}
	return e.Kind
}
