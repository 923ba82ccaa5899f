// Package reducer folds an agent's events, and the messages in its inbox, into what is true of the agent now, and names
// what is to be done. It is pure: no clock, no file, no goroutine; the time comes with the input.
//
//   - Positive evidence only: silence changes nothing.
//   - Late events change no state: about a turn or a session that is over, or about a turn that is not the current one.
//   - The same event twice counts once: by its number in the log, by its event_id among the newest 512,
//     and by what it says.
//   - Texts are cut and lists are capped: a State does not grow with the log.
//   - Folding on from a State's JSON gives the same as folding the whole log.
//
// docs/states.md has the rules in words, testdata/states.md every event in every state as tables that a test runs.
package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// Version is the version of State's JSON and of the fold. A snapshot of another version is discarded.
const Version = 12

// TurnStatus is where a turn stands, in the daemon stream's three words. Terminal: it is over, and
// nothing has said yet that the agent waits for the next one.
type TurnStatus string

// Activity is what is known of an agent beyond its turn.
type Activity string

// Word is an agent's state in one word, for people and scripts. WordPerson is given by team.toml, not by events.
type Word string

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

	WordStarting Word = "starting"
	WordIdle     Word = "idle"
	WordBusy     Word = "busy"
	WordBlocked  Word = "blocked"
	WordError    Word = "error"
	WordOff      Word = "off"
	WordUnknown  Word = "unknown"
	WordPerson   Word = "person"

	// How the last turn ended.
	Completed   = "completed"
	Interrupted = "interrupted"
	Cancelled   = "cancelled"      // ACP's word for that
	Awaiting    = "awaiting_input" // and for a turn that ended in a question
	Failed      = "failed"
)

// What a State keeps of each list, and how many bytes of each text.
const (
	maxTurns, maxEventIDs = 3, 512  // of one agent
	maxEnded, maxCalls    = 32, 12  // turns of one session; calls of one turn, started and ended
	maxRequests           = 3       // open at once
	maxID, maxDetail      = 80, 120 // maxID is also for names
	maxText               = 300     // of a tool's input, an error
	maxPrompt, maxOptions = 400, 3000
)

// State is the fold of one agent's events. The zero value is an agent of whom nothing is known. Not for concurrent use.
type State struct {
	Team  wire.Name `json:"team,omitempty"`
	Agent wire.Name `json:"agent,omitempty"`
	Seq   uint64    `json:"seq"`             // of the newest event folded
	Turns []Turn    `json:"turns,omitempty"` // the newest sessions of its program, the one heard last at the end

	Heard time.Time `json:"heard,omitzero"` // the newest sign of life
	Gone  time.Time `json:"gone,omitzero"`  // since when it is known to be off
	Read  time.Time `json:"read,omitzero"`  // the newest message_read, or injected
	Run   *Run      `json:"run,omitempty"`  // what a runner started last

	Errors    uint64    `json:"errors,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	ErrorAt   time.Time `json:"error_at,omitzero"`
	Dropped   Dropped   `json:"dropped,omitzero"`
	Unknown   uint64    `json:"unknown,omitempty"` // events of unknown kinds

	EventIDs  []string `json:"event_ids,omitempty"`  // the newest
	PastTurns []string `json:"past_turns,omitempty"` // ended turns of earlier programs that named no session

	mail mail // what waits in the inbox, for the runner; never in a snapshot
}

// Turn is one session of an agent's program: its current or last turn, and what the program is doing.
type Turn struct {
	Session     string     `json:"session,omitempty"` // "": the program has not named it yet
	ID          string     `json:"turn_id,omitempty"`
	IsGenerated bool       `json:"id_is_generated,omitempty"` // no event has named the turn: the id is ours
	Thread      string     `json:"thread_id,omitempty"`       // survives idle
	Transport   string     `json:"transport,omitempty"`
	Status      TurnStatus `json:"turn_status"`
	Activity    Activity   `json:"activity"`
	Detail      string     `json:"detail,omitempty"`   // the tool, compacting, …
	Since       time.Time  `json:"since,omitzero"`     // of the word
	Began       time.Time  `json:"began,omitzero"`     // the turn, until it is known how it ended
	TurnSeq     uint64     `json:"turn_seq,omitempty"` // the event that told of the turn; stays when the turn gets its name
	Last        *Last      `json:"last_turn,omitempty"`
	Requests    []Waiting  `json:"requests,omitempty"` // what it asks while it is blocked, and only then; the first is shown

	HasSessionStart bool      `json:"has_session_start,omitempty"` // its session_start was heard
	FirstSeq        uint64    `json:"first_seq,omitempty"`         // the event by which the session became known
	LastSeq         uint64    `json:"last_seq,omitempty"`          // the newest event about it
	HeardAt         time.Time `json:"heard_at,omitzero"`           // the time of that
	Ended           []string  `json:"ended,omitempty"`             // its newest turns that are over
	StartedCalls    []string  `json:"started_calls,omitempty"`     // the newest tool calls of the turn
	EndedCalls      []string  `json:"ended_calls,omitempty"`

	EndIsTentative  bool `json:"end_is_tentative,omitempty"`  // only a hook said so; another may have kept the turn going
	Reopened        int  `json:"reopened,omitempty"`          // how often the turn went on after that
	IsReplaced      bool `json:"is_replaced,omitempty"`       // the session has ended, and its program goes on with another
	IsPresumedEnded bool `json:"is_presumed_ended,omitempty"` // another session began and ended since it was heard
}

// Last is how the last turn ended.
type Last struct {
	ID         string    `json:"turn_id,omitempty"`
	Status     string    `json:"status"`
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms,omitempty"` // 0: its start was not seen
	Error      string    `json:"error,omitempty"`
	IsCutOff   bool      `json:"cut,omitempty"`         // it ended with its program; no event says how
	WasStopped bool      `json:"was_stopped,omitempty"` // somebody wanted its program to end
}

// Dropped adds up what the reports of a stream say it lost.
type Dropped struct {
	Dropped uint64 `json:"dropped"`
	Unknown uint64 `json:"unknown"`
}

// Word is the turn's state in one word, as far as events tell.
func (t *Turn) Word() Word {
	switch t.Activity {
	case Exited:
		return WordOff
	case Error, Starting, Idle:
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

// Duration is how long the turn took, in whole milliseconds. 0: not known.
func (l *Last) Duration() time.Duration { return time.Duration(l.DurationMS) * time.Millisecond }

// IsOpen reports whether the turn goes on.
func (t *Turn) IsOpen() bool { return t.Status == TurnBusy }

// End is how the current turn ended, as far as anything said so; nil while it goes on, and where nothing did.
func (t *Turn) End() *Last {
	if t.IsOpen() || t.Last == nil || t.Last.ID != t.ID {
		return nil
	}
	return t.Last
}
