// Package reducer folds an agent's events, and the messages that lie in its
// inbox, into what is true of it now, and names what is to be done about that.
//
// It is pure: no clock, no file, no goroutine. Time comes with the input; the
// same inputs give the same state and the same effects, on any machine. One
// State is one agent of one team; within it each session of the agent's
// program has a Turn of its own, and the one heard last is the one shown,
// unless it waits while another works or asks.
//
// What may be relied on:
//
//   - Positive evidence only. Quiet changes nothing; what no event has said is
//     unknown, which is neither idle nor off.
//   - Order-tolerant: what comes late about a turn or a session that is over,
//     or about a turn that is not the current one, changes no state.
//   - Idempotent: the same event twice is once, by its number in the log, by
//     its event_id among the newest 512, and by what it says.
//   - An unknown kind is counted and changes nothing.
//   - Bounded: a State is never more than 16 KiB of JSON, whatever was folded.
//   - A State is plain data: its JSON is what state.json holds. Folding on from
//     the JSON, or discarding it and folding the log again, gives the same.
//
// The table of what each event does is docs/states.md; a test runs it.
package reducer

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Version is that of the fold: a snapshot of another version is discarded.
const Version = 3

// TurnStatus is where a turn stands, in the daemon stream's three words.
type TurnStatus string

// The states of a turn. Terminal: it is over, and nothing has said yet that
// the agent waits for the next one.
const (
	TurnIdle     TurnStatus = "idle"
	TurnBusy     TurnStatus = "busy"
	TurnTerminal TurnStatus = "terminal"
)

// Activity is what is known of an agent beyond its turn.
type Activity string

// The activities; docs/states.md says what each means.
const (
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
)

// Word is an agent's state in one word, for people and scripts.
type Word string

// The words. WordPerson is given by the roster, not by events.
const (
	WordStarting Word = "starting"
	WordIdle     Word = "idle"
	WordBusy     Word = "busy"
	WordBlocked  Word = "blocked"
	WordError    Word = "error"
	WordOff      Word = "off"
	WordUnknown  Word = "unknown"
	WordPerson   Word = "person"
)

// How the last turn ended.
const (
	Completed   = "completed"
	Interrupted = "interrupted"
	Failed      = "failed"
)

// State is the fold of one agent's events. The zero value is an agent of whom
// nothing is known. Not for concurrent use; Clone makes an independent one.
type State struct {
	Team  wire.Name `json:"team,omitempty"`
	Agent wire.Name `json:"agent,omitempty"`
	Seq   uint64    `json:"seq"` // of the newest event folded

	// Turns are the sessions of the agent's program, the one that is shown at the
	// end: the newest three.
	Turns []Turn `json:"turns,omitempty"`

	Heard time.Time `json:"heard,omitzero"` // the newest sign of life
	Gone  time.Time `json:"gone,omitzero"`  // since when it is known to be off
	Read  time.Time `json:"read,omitzero"`  // the newest message_read
	Run   *Run      `json:"run,omitempty"`  // what a runner started last

	Errors    uint64    `json:"errors,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	ErrorAt   time.Time `json:"error_at,omitzero"`
	Dropped   Dropped   `json:"dropped,omitzero"`
	Unknown   uint64    `json:"unknown,omitempty"` // events of kinds we do not know

	Recent marks `json:"recent,omitempty"` // the newest event ids
	Past   marks `json:"past,omitempty"`   // turns of the program before, which named no session

	mail mail // the runner's: what waits in the inbox; never in a snapshot
}

// Turn is one session of an agent's program: its current or last turn, and
// what the program is doing.
type Turn struct {
	Session   string     `json:"session,omitempty"`
	ID        string     `json:"turn_id,omitempty"`
	Own       bool       `json:"own,omitempty"`       // the id is ours: none is known
	Thread    string     `json:"thread_id,omitempty"` // survives idle
	Transport string     `json:"transport,omitempty"`
	Status    TurnStatus `json:"turn_status"`
	Activity  Activity   `json:"activity"`
	Detail    string     `json:"detail,omitempty"` // the tool, compacting, …
	Since     time.Time  `json:"since,omitzero"`   // of the word
	Began     time.Time  `json:"began,omitzero"`   // the turn, until it is known how it ended
	Last      *Last      `json:"last_turn,omitempty"`
	Waiting   *Waiting   `json:"waiting_on,omitempty"` // while it is blocked, and only then
	Behind    []Waiting  `json:"behind,omitempty"`     // permissions asked for other calls meanwhile

	Begun bool      `json:"begun,omitempty"` // its session_start was heard
	Came  uint64    `json:"came,omitempty"`  // the event it was heard of first
	Spoke uint64    `json:"spoke,omitempty"` // the newest that was about it
	Heard time.Time `json:"heard,omitzero"`  // when that was
	Over  marks     `json:"over,omitempty"`  // its newest turns that are over
	Calls marks     `json:"calls,omitempty"` // the newest calls of the turn

	Soft bool `json:"soft,omitempty"` // a hook said that the turn is over; another may have kept it going
	Anew int  `json:"anew,omitempty"` // how often it went on after that
	Next bool `json:"next,omitempty"` // the session has ended, and its program goes on with another
	Lost bool `json:"lost,omitempty"` // another session lived and ended since it was heard
}

// Last is how the last turn ended.
type Last struct {
	ID       string        `json:"turn_id,omitempty"`
	Status   string        `json:"status"`
	At       time.Time     `json:"at"`
	Duration time.Duration `json:"-"`               // whole milliseconds; 0: its start was not seen
	Why      string        `json:"error,omitempty"` // it failed with this
	Cut      bool          `json:"cut,omitempty"`   // it ended with its program; no event says how
}

type lastWire struct {
	ID     string    `json:"turn_id,omitempty"`
	Status string    `json:"status"`
	At     time.Time `json:"at"`
	MS     int64     `json:"duration_ms,omitempty"`
	Why    string    `json:"error,omitempty"`
	Cut    bool      `json:"cut,omitempty"`
}

// MarshalJSON writes the duration as whole milliseconds.
func (l Last) MarshalJSON() ([]byte, error) {
	return json.Marshal(lastWire{l.ID, l.Status, l.At, l.Duration.Milliseconds(), l.Why, l.Cut})
}

// The kinds of Waiting.
const (
	Permission = "permission"
	Question   = "prompt"
)

// Waiting is what an agent waits for: an answer to a permission request or to
// a question. Since tells one dialog from the next: it stays while more becomes
// known of the same one.
type Waiting struct {
	ID      string          `json:"id,omitempty"`
	Call    string          `json:"tool_call_id,omitempty"`
	Kind    string          `json:"kind"` // permission, prompt
	Prompt  string          `json:"prompt,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Input   string          `json:"input,omitempty"`  // what the tool is about to do, where the prompt is another thing; shortened
	Dialog  string          `json:"dialog,omitempty"` // what kind of dialog a screen shows: permission, trust, question
	Options json.RawMessage `json:"options,omitempty"`
	Since   time.Time       `json:"since"`
	Cut     bool            `json:"cut,omitempty"` // Prompt or Tool is not all there is, or they were said apart: no rule may allow by them
}

// Dropped adds up what the reports of a stream say it lost.
type Dropped struct {
	Dropped uint64 `json:"dropped"`
	Unknown uint64 `json:"unknown"`
}

// Run is a process that a runner started for the agent.
type Run struct {
	PID     int64     `json:"pid,omitempty"`
	Started time.Time `json:"started,omitzero"` // as the runner said, else when it said so
	Code    *int64    `json:"code,omitempty"`   // it exited with this
	Signal  string    `json:"signal,omitempty"`
	Over    bool      `json:"over,omitempty"`
	Locked  bool      `json:"locked,omitempty"` // by a runner that holds its lock as long as it lives
	Begun   bool      `json:"begun,omitempty"`  // a session has begun in it
	Left    bool      `json:"left,omitempty"`   // and another since: perhaps outside of it
}

// Clone is an independent copy.
func (s State) Clone() State {
	s.Turns = slices.Clone(s.Turns)
	for i := range s.Turns {
		t := &s.Turns[i]
		t.Over, t.Calls = slices.Clone(t.Over), slices.Clone(t.Calls)
		t.Last = copied(t.Last)
		if t.Waiting = copied(t.Waiting); t.Waiting != nil {
			t.Waiting.Options = slices.Clone(t.Waiting.Options)
		}
		t.Behind = slices.Clone(t.Behind)
	}
	if s.Run = copied(s.Run); s.Run != nil {
		s.Run.Code = copied(s.Run.Code)
	}
	s.Recent, s.Past = slices.Clone(s.Recent), slices.Clone(s.Past)
	s.mail = s.mail.clone()
	return s
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Turn is the session that is shown. Never nil.
func (s *State) Turn() *Turn {
	if len(s.Turns) == 0 {
		return &Turn{Status: TurnIdle, Activity: Unknown}
	}
	return &s.Turns[len(s.Turns)-1]
}

// Open tells the open turn of a session ("": of the one that is shown); when none
// is open, its last one.
func (s *State) Open(session string) (id string, open bool) {
	session = short(session)
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.Session == session || session == "" && i == len(s.Turns)-1 {
			return t.ID, t.Status == TurnBusy
		}
	}
	return "", false
}

// Word is the turn's state in one word, as far as events tell.
func (t *Turn) Word() Word {
	switch t.Activity {
	case Exited:
		return WordOff
	case Error:
		return WordError
	case Starting:
		return WordStarting
	case Idle:
		return WordIdle
	case Thinking, Responding, ToolRunning:
		return WordBusy
	case AwaitingInput, Confirming:
		return WordBlocked
	}
	if t.Status == TurnBusy {
		return WordBusy
	}
	return WordUnknown
}
