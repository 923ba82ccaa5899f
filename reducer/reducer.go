// Package reducer folds an agent's events, and the messages in its inbox, into what is true of the agent now, and
// returns what is to be done. It is pure: no clock, no file, no goroutine; the time comes with the input.
//
//   - Only positive evidence counts: silence changes nothing.
//   - Late events change no state: those about a turn or session that is over, or not about the current turn.
//   - A repeated event counts once. Repeats are found by number in the log, by event_id among the newest 512, and by
//     content.
//   - Texts and lists are cut: a State does not grow with the log.
//   - Folding on from a State's JSON gives the same as folding the whole log.
//
// docs/states.md has the rules in words; testdata/states.md has every event in every state as tables that a test runs.
package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// Version is the version of State's JSON and of the fold. A snapshot of another version is discarded.
const Version = 25

// TurnStatus is the state of a turn in the daemon stream's words. Terminal: it is over, but the agent is not idle yet.
type TurnStatus string

// Activity is what an agent does, in more detail than its TurnStatus.
type Activity string

// Word is an agent's state in one word, for people and scripts. WordPerson comes from team.toml, not from events.
type Word string

// IsWork reports whether an agent works that does so.
func (a Activity) IsWork() bool { return a == Thinking || a == Responding || a == ToolRunning }

// docs/states.md says what each of these means.
const (
	TurnIdle     TurnStatus = "idle"
	TurnBusy     TurnStatus = "busy"
	TurnTerminal TurnStatus = "terminal"

	Unknown       Activity = "unknown"
	Starting      Activity = "starting"
	Idle          Activity = "idle"
	Thinking      Activity = "thinking"
	Responding    Activity = "responding"
	ToolRunning   Activity = "tool_running"
	AwaitingInput Activity = "awaiting_input"
	Confirming    Activity = "confirming"
	Exited        Activity = "exited"
	Error         Activity = "error"
	Limited       Activity = "limited"

	WordStarting Word = "starting"
	WordIdle     Word = "idle"
	WordBusy     Word = "busy"
	WordBlocked  Word = "blocked"
	WordError    Word = "error"
	WordLimited  Word = "limited"
	WordOff      Word = "off"
	WordUnknown  Word = "unknown"
	WordPerson   Word = "person"

	// How the last turn ended.
	Completed   = "completed"
	Interrupted = "interrupted"
	Cancelled   = "cancelled"      // interrupted, in ACP
	Awaiting    = "awaiting_input" // ended in a question, in ACP
	Failed      = "failed"
)

// State is the fold of one agent's events. The zero value knows nothing of its agent. Not for concurrent use.
type State struct {
	Team     wire.Name `json:"team,omitempty"`
	Agent    wire.Name `json:"agent,omitempty"`
	Seq      uint64    `json:"seq"`                 // of the newest event folded
	Turns    []Turn    `json:"turns,omitempty"`     // the newest sessions, ordered by their last event
	Asked    []Waiting `json:"asked,omitempty"`     // what it asks on its session channel
	AskedSeq uint64    `json:"asked_seq,omitempty"` // the newest event that asked there

	HeardAt  time.Time `json:"heard,omitzero"` // the newest sign of life
	OffSince time.Time `json:"gone,omitzero"`  // since when it is known to be off
	Read     time.Time `json:"read,omitzero"`  // the newest message_read or injected
	Run      *Run      `json:"run,omitempty"`  // the last process that a runner started

	Errors    uint64    `json:"errors,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	ErrorAt   time.Time `json:"error_at,omitzero"`
	Dropped   Dropped   `json:"dropped,omitzero"`
	Unknown   uint64    `json:"unknown,omitempty"` // events of unknown kinds

	EventIDs  []string `json:"event_ids,omitempty"`  // the newest
	PastTurns []string `json:"past_turns,omitempty"` // ended turns of earlier programs that named no session

	inbox []message // in order of arrival; not in a snapshot
}

// Turn is one session of an agent's program: its current or last turn, and what the program is doing.
type Turn struct {
	Session     string     `json:"session,omitempty"` // "": not known yet
	ID          string     `json:"turn_id,omitempty"`
	IsGenerated bool       `json:"id_is_generated,omitempty"` // the id is ours: no event has named the turn
	Thread      string     `json:"thread_id,omitempty"`       // survives idle
	Transport   string     `json:"transport,omitempty"`
	Status      TurnStatus `json:"turn_status"`
	Activity    Activity   `json:"activity"`
	Detail      string     `json:"detail,omitempty"`   // the tool, compacting, …
	Source      Source     `json:"source,omitempty"`   // what the activity rests on
	Since       time.Time  `json:"since,omitzero"`     // of the word
	Began       time.Time  `json:"began,omitzero"`     // when the turn began; zero once its end is recorded
	TurnSeq     uint64     `json:"turn_seq,omitempty"` // the turn's first event; kept when the turn is named
	Last        *Last      `json:"last_turn,omitempty"`
	Requests    []Waiting  `json:"requests,omitempty"` // what it asks; empty unless it is blocked; the first is shown

	HasSessionStart bool      `json:"has_session_start,omitempty"` // session_start was seen
	StartedAt       time.Time `json:"started_at,omitzero"`         // the time of the newest that named it; zero once its program has ended
	FirstSeq        uint64    `json:"first_seq,omitempty"`         // the session's first event
	LastSeq         uint64    `json:"last_seq,omitempty"`          // its newest event
	HeardAt         time.Time `json:"heard_at,omitzero"`           // the time of that event
	Ended           []string  `json:"ended,omitempty"`             // its newest turns that are over
	StartedCalls    []string  `json:"started_calls,omitempty"`     // the turn's newest tool calls
	EndedCalls      []string  `json:"ended_calls,omitempty"`

	Reopened        int  `json:"reopened,omitempty"`          // how often the turn went on after its end
	IsReplaced      bool `json:"is_replaced,omitempty"`       // the session has ended, its program goes on with another
	IsPresumedEnded bool `json:"is_presumed_ended,omitempty"` // another session began and ended since its last event
}

// Last is how the last turn ended.
type Last struct {
	ID         string    `json:"turn_id,omitempty"`
	Status     string    `json:"status"`
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms,omitempty"` // 0: its start was not seen
	Error      string    `json:"error,omitempty"`
	IsCutOff   bool      `json:"cut,omitempty"`         // it ended with its program; no event says how
	WasStopped bool      `json:"was_stopped,omitempty"` // its program was stopped on request
}

// Dropped adds up the losses that a stream has reported.
type Dropped struct {
	Dropped uint64 `json:"dropped"`
	Unknown uint64 `json:"unknown"`
}

// Word returns the turn's state in one word, as far as events tell.
func (t *Turn) Word() Word {
	switch t.Activity {
	case Exited:
		return WordOff
	case Error, Limited, Starting, Idle:
		return Word(t.Activity)
	case AwaitingInput, Confirming:
		return WordBlocked
	case Unknown:
		if !t.IsOpen() {
			return WordUnknown
		}
	}
	return WordBusy
}

// Duration returns how long the turn took, in whole milliseconds; 0 if that is not known.
func (l *Last) Duration() time.Duration { return time.Duration(l.DurationMS) * time.Millisecond }

// IsOpen reports whether the turn goes on.
func (t *Turn) IsOpen() bool { return t.Status == TurnBusy }

// End returns how the current turn ended; nil while it goes on, and if no event said so.
func (t *Turn) End() *Last {
	if t.IsOpen() || t.Last == nil || t.Last.ID != t.ID {
		return nil
	}
	return t.Last
}
