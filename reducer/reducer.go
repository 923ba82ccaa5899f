// Package reducer folds an agent's events into what is true of the agent now: what it does, what it asks, and how its
// turns ended. It is pure: no clock, no file, no goroutine; the time comes with the events, and with the question.
//
// State.Apply takes the events of one agent, in the order of its log; State.Evaluate says what is true at a time, with what
// is known beside the events. To show in one word how an agent is, take View.Word, which Evaluate returns. State.Word and
// Session.Word know only events, and are for those who decide about turns and mail.
//
// A State has one session that is shown, a conversation of the agent's program with its Turn and its open questions. Two
// windows, or a program that the agent runs, may speak under one name: of the others it is only told that they work.
//
//   - Only positive evidence counts: silence changes nothing.
//   - Late events change no state: those about a turn or session that is over, or not about the current turn.
//   - A repeated event counts once. Repeats are found by number in the log, by event_id among the newest 512, and by
//     content.
//   - A question has the words of one report, the surest. It stays until its source, or a surer one, says that it is gone.
//   - What was used of tokens and money are totals of a conversation, which only rise.
//   - Texts and lists are cut: a State does not grow with the log.
//   - Folding on from a State's JSON gives the same as folding the whole log. A View shares nothing with its State.
//
// docs/states.md has the rules in words; testdata/states.md has every event in every state as tables that a test runs.
package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// Version is the version of State's JSON and of the fold. A snapshot of another version is discarded.
const Version = 40

// TurnStatus is the state of a turn in the daemon stream's words. Terminal: it is over, but the agent is not idle yet.
type TurnStatus string

// Activity is what an agent does, in more detail than its TurnStatus.
type Activity string

// Word is an agent's state in one word, for people and scripts. WordPerson comes from team.toml, not from events.
type Word string

// IsWork reports whether an agent works that does so.
func (a Activity) IsWork() bool { return a == Thinking || a == Responding || a == ToolRunning }

// Word returns the word for an agent that does so.
func (a Activity) Word() Word {
	switch a {
	case Exited:
		return WordOff
	case AwaitingInput, Confirming:
		return WordBlocked
	case Error, Limited, Starting, Idle, Unknown:
		return Word(a)
	}
	return WordBusy
}

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
	Team   wire.Name `json:"team,omitempty"`
	Agent  wire.Name `json:"agent,omitempty"`
	Seq    uint64    `json:"seq"`              // of the newest event folded
	Shown  Session   `json:"shown,omitzero"`   // the session of its program
	Others []Session `json:"others,omitempty"` // others under its name, ordered by their last event
	Asked  []Waiting `json:"asked,omitempty"`  // what it asks on its session channel
	Drafts []Draft   `json:"drafts,omitempty"` // the newest that it announced there, in that order
	Goals  []Goal    `json:"goals,omitempty"`  // the newest that it reached

	FreshAt  time.Time `json:"fresh_at,omitzero"`  // the newest fresh_start
	HeardAt  time.Time `json:"heard_at,omitzero"`  // the newest sign of life
	OffSince time.Time `json:"off_since,omitzero"` // since when it is known to be off
	Read     time.Time `json:"read,omitzero"`      // the newest message_read or injected
	Run      *Run      `json:"run,omitempty"`      // the last process that a runner started
	Limit    *Limit    `json:"limit,omitempty"`    // the last usage limit, until a turn begins; nil: nobody has said when it ends
	Usage    *Usage    `json:"usage,omitempty"`    // what it has used; nil: nobody has said

	Errors    uint64  `json:"errors,omitempty"`
	LastError string  `json:"last_error,omitempty"`
	Dropped   Dropped `json:"dropped,omitzero"`
	Unknown   uint64  `json:"unknown,omitempty"` // events of unknown kinds

	memory
}

// memory is what a State keeps for the events to come.
type memory struct {
	AskedSeq uint64    `json:"asked_seq,omitempty"` // the newest event that asked on the session channel
	ErrorAt  time.Time `json:"error_at,omitzero"`
	EventIDs []string  `json:"event_ids,omitempty"` // the newest

	UsageOf   []conversationUsage `json:"usage_of,omitempty"`   // the totals of the newest conversations, ordered by their last event
	UsageTurn uint64              `json:"usage_turn,omitempty"` // Turn.Seq of the turn in Usage
}

// Dropped adds up the losses that a stream has reported.
type Dropped struct {
	Dropped uint64 `json:"dropped"`
	Unknown uint64 `json:"unknown"`
}
