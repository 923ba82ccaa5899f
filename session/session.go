// Package session keeps interactive sessions: conversations between people and
// an agent, with a goal, a log and the drafts that came of them.
//
//	<team>/.sessions/<id>.json    one session; the id is its UUID
//
// A file is the session as Trusted Autonomy writes it (wire.InteractiveSession)
// with one field of ours beside, "atm", that says how much of the agent's events
// is in the log already. Fields of others are kept.
//
// # What may be relied on
//
// A file is changed under the team's lock and replaced in one step: whoever
// reads it sees the session before or after a change. One that cannot be
// understood is refused with a *FileError and never written over.
//
// A session moves active → paused | completed | aborted and paused → active |
// aborted; anything else is refused and changes nothing. What is over stays
// over.
//
// The log is a fold: what the agent emits goes to its events and nowhere else,
// and whoever changes a session takes in first what the events and the inbox say
// since. No daemon is needed, and nothing that is emitted while nobody looks is
// lost. The log keeps the last MiB; what is older is in the events and the
// mailbox.
//
// # The channel
//
// A Channel is how an agent's program talks with whoever sits in the session.
// Mail is the one made of files: Emit appends to the agent's events, Receive
// takes human input out of the agent's inbox, each once, however many receive
// and whenever they are started again.
//
// # Under a runner
//
// Who runs an agent takes up its sessions and lets go of them (TakeUp, LetGo):
// one that it has begun itself rests while the agent is off, and is over when the
// agent has left by itself. What else a session says of it is in "atm": whether
// its output is kept, and by which of the Rules it has ended.
//
// # Locks
//
// The team's, held while a session is read, changed and written, and while
// input for it is delivered; inbox and events may be taken within it, in the
// order of package mailbox.
//
// A Mail in which somebody has waited has a watcher and its goroutine, until
// Close; nothing else here starts one. A Store and a Mail may be used by several
// goroutines at once; a Session belongs to one.
package session

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// Who says something in a session.
const (
	SenderHuman  = "human"
	SenderAgent  = "agent"
	SenderSystem = "ta-system" // the session itself: state, drafts, goals
)

// MaxLog is how many bytes of messages a session keeps, as they are written.
const MaxLog = 1 << 20

// NoGoal is the goal of a session for which none was named: that any goal is
// complete completes it.
const NoGoal wire.UUID = "00000000-0000-0000-0000-000000000000"

// Session is one session, as it was when it was read.
type Session struct {
	wire.InteractiveSession

	seq     uint64              // the last event of the agent's that is in the log
	dropped uint64              // messages that the log has let go of
	heard   time.Time           // the last sign of the agent or of people
	goal    time.Time           // when an event said that the goal is complete
	seen    map[string]uint64   // up to where who has seen the log, see Entries
	ours    []wire.Field        // of "atm", what this version does not know
	extra   []wire.Field        // beside "atm", the same
	kept    []kept              // the messages as they were read, from the first
	about   map[wire.UUID]Draft // what was said of its drafts
	run     tenure
}

// kept is a message as it stood in the file, with whatever else it carried.
type kept struct {
	message wire.SessionMessage
	raw     []byte
}

// Draft is something that an agent has made and that waits for a person's word.
type Draft struct {
	ID        wire.UUID
	Summary   string
	Artifacts uint64
	At        time.Time // when it was first said to be ready; zero: not known
}

// Drafts are the session's drafts in the order in which they came, with what is
// known of them.
func (s *Session) Drafts() []Draft {
	out := make([]Draft, len(s.DraftIDs))
	for i, id := range s.DraftIDs {
		out[i] = s.about[id]
		out[i].ID = id
	}
	return out
}

// maxSummary is how much of a draft's summary a session keeps.
const maxSummary = 4 << 10

// addDraft notes a draft, once; what is said of it counts as it was said last.
func (s *Session) addDraft(d Draft) {
	if before, ok := s.about[d.ID]; ok {
		d.At = before.At
	}
	if len(d.Summary) > maxSummary {
		d.Summary = strings.ToValidUTF8(d.Summary[:maxSummary], "") + "…"
	}
	if s.about == nil {
		s.about = map[wire.UUID]Draft{}
	}
	s.about[d.ID] = d
	if !slices.Contains(s.DraftIDs, d.ID) {
		s.DraftIDs = append(s.DraftIDs, d.ID)
	}
}

// Say adds to the log what a sender says, and lets go of the oldest where the
// log has become too long. A text that alone is too long loses its beginning.
// Bytes that are not UTF-8 become U+FFFD.
func (s *Session) Say(sender, content string, at time.Time) {
	content = strings.ToValidUTF8(content, "\uFFFD")
	for encodedLen(sender, content) > MaxLog {
		cut := len(content) - MaxLog/8
		for cut < len(content) && !utf8.RuneStart(content[cut]) {
			cut++
		}
		content = "…" + content[cut:]
	}
	at = at.UTC().Round(0)
	s.Messages = append(s.Messages, wire.SessionMessage{Sender: sender, Content: content, Timestamp: at})
	s.touch(at)
	s.trim()
}

// said reports whether the log has a message already.
func (s *Session) said(sender, content string, at time.Time) bool {
	for i := len(s.Messages) - 1; i >= 0; i-- {
		if m := &s.Messages[i]; m.Sender == sender && m.Timestamp.Equal(at) && m.Content == content {
			return true
		}
	}
	return false
}

// trim lets go of the oldest messages until what is left fits.
func (s *Session) trim() {
	size, first := 0, len(s.Messages)
	for first > 0 {
		m := &s.Messages[first-1]
		if size += encodedLen(m.Sender, m.Content); size > MaxLog {
			break
		}
		first--
	}
	s.Messages = s.Messages[first:]
	s.kept = s.kept[min(first, len(s.kept)):]
	s.dropped += uint64(first)
}

// encodedLen is about how long a message is in the file, never less.
func encodedLen(sender, content string) int {
	const around = len(`{"sender":"","content":"","timestamp":"2006-01-02T15:04:05.000000000Z"},`)
	n := around + 6*len(sender)
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '"', c == '\\':
			n += 2
		case c < 0x20:
			n += 6
		default:
			n++
		}
	}
	return n
}

// touch notes a sign of life.
func (s *Session) touch(at time.Time) {
	if at.After(s.UpdatedAt) {
		s.UpdatedAt = at
	}
	if at.After(s.heard) {
		s.heard = at
	}
}

// Move takes the session to another state and says so in the log. why, if there
// is one, stands behind it: "by alice". The error, a *wire.SessionError, changes
// nothing.
func (s *Session) Move(to wire.InteractiveSessionState, why string, now time.Time) error {
	now = now.UTC().Round(0)
	if now.Before(s.UpdatedAt) { // a clock that was set back
		now = s.UpdatedAt
	}
	from := s.State
	if err := s.Transition(to, now); err != nil {
		return err
	}
	s.run.Parked = false // whoever moves it means it
	what := string(to)
	if from == wire.SessionPaused && to == wire.SessionActive {
		what = "resumed"
	}
	s.Say(SenderSystem, strings.TrimSpace("Session "+what+" "+why), now)
	return nil
}

// HeardAt is when the agent or a person last gave a sign in the session.
func (s *Session) HeardAt() time.Time {
	if s.heard.IsZero() {
		return s.CreatedAt
	}
	return s.heard
}

// GoalDone is when an event said that the session's goal is complete; zero when
// none did.
func (s *Session) GoalDone() time.Time { return s.goal }

// Entries are the messages after the first n that the log ever had, and how
// many there have been in all, which is the n of the next call. Messages that
// the log has let go of are left out.
func (s *Session) Entries(n uint64) (list []wire.SessionMessage, all uint64) {
	all = s.dropped + uint64(len(s.Messages))
	if n < s.dropped {
		n = s.dropped
	}
	if n > all {
		n = all
	}
	return s.Messages[n-s.dropped:], all
}

// Seen is how far somebody has seen the log, as See noted it; ok is false for
// who has not been here.
func (s *Session) Seen(who string) (n uint64, ok bool) {
	n, ok = s.seen[who]
	return n, ok
}

// See notes how far somebody has seen the log. It is no sign of life.
func (s *Session) See(who string, n uint64) {
	if s.seen == nil {
		s.seen = map[string]uint64{}
	}
	s.seen[who] = n
}
