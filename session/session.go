// Package session keeps interactive sessions: conversations between people and an agent, with a goal, a
// log and the drafts that came of them.
//
//	<team>/.sessions/<id>.json    one session; the id is its UUID
//
// A file is the session as Trusted Autonomy writes it (wire.InteractiveSession) with one member of ours
// beside, "atm". Unknown members are kept. It is changed under the team's lock and replaced in one step.
// One that cannot be understood is refused with a *FileError and never overwritten.
//
// The log is a fold: what the agent emits goes to its events and nowhere else, and every change of a
// session first takes in what the events and the inbox say since the last one. So what is emitted while
// nobody looks is not lost. The log keeps the last MiB; older messages are in the events and the mailbox.
//
// A Store and a MailboxChannel may be used by several goroutines at once, a Session by one.
package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentteammail/atm/wire"
)

// The senders of messages in a session.
const (
	SenderHuman  = "human"
	SenderAgent  = "agent"
	SenderSystem = "ta-system" // the session itself: state, drafts, goals
)

// MaxLog is how many bytes of messages a session keeps, as they are written.
const MaxLog = 1 << 20

// NoGoal is the goal of a session for which none was named. Any completed goal completes it.
const NoGoal wire.UUID = "00000000-0000-0000-0000-000000000000"

// Session is one session, as it was when it was read.
type Session struct {
	wire.InteractiveSession

	notes notes
	extra jsontext.Value // members of the file that this version does not know
}

// Draft is something that the agent has made and that waits for a person's answer.
type Draft struct {
	ID        wire.UUID `json:"-"`
	At        time.Time `json:"at,omitzero"` // when it was first announced; zero: not known
	Summary   string    `json:"summary,omitzero"`
	Artifacts uint64    `json:"artifact_count,omitzero"`
}

// Drafts lists the session's drafts, oldest first.
func (s *Session) Drafts() []Draft {
	out := make([]Draft, len(s.DraftIDs))
	for i, id := range s.DraftIDs {
		out[i] = s.notes.Drafts[id]
		out[i].ID = id
	}
	return out
}

// addDraft notes a draft. Announced again, it has the newer summary.
func (s *Session) addDraft(d Draft) (isNew bool) {
	if before, ok := s.notes.Drafts[d.ID]; ok {
		d.At = before.At
	}
	d.Summary = wire.Clip(d.Summary, 4<<10)
	if s.notes.Drafts == nil {
		s.notes.Drafts = map[wire.UUID]Draft{}
	}
	s.notes.Drafts[d.ID] = d
	if isNew = !slices.Contains(s.DraftIDs, d.ID); isNew {
		s.DraftIDs = append(s.DraftIDs, d.ID)
	}
	return isNew
}

// AddMessage appends to the log. A message that is too long by itself loses its beginning. Bytes that are
// not UTF-8 become U+FFFD.
func (s *Session) AddMessage(sender, content string, at time.Time) {
	m := wire.SessionMessage{Sender: sender, Content: strings.ToValidUTF8(content, "\uFFFD"), Timestamp: at.UTC().Round(0)}
	if messageSize(m) > MaxLog { // at most six bytes for each
		m.Content = "…" + strings.ToValidUTF8(m.Content[max(0, len(m.Content)-MaxLog/8):], "")
	}
	s.Messages = append(s.Messages, m)
	s.touch(m.Timestamp)
}

func (s *Session) trimLog() {
	first, size := len(s.Messages), 0
	for ; first > 0; first-- {
		if size += messageSize(s.Messages[first-1]); size > MaxLog {
			break
		}
	}
	s.Messages = s.Messages[first:]
	s.notes.Dropped += uint64(first)
}

// AddInput notes in the log what a person has said, once: unread input is met again and again, also when the log has
// become too long for it.
func (s *Session) AddInput(in Input) {
	content := in.String()
	if in.Kind == "message" {
		content = in.Text
	}
	content = strings.ToValidUTF8(content, "\uFFFD")
	isKnown := slices.ContainsFunc(s.Messages, func(m wire.SessionMessage) bool {
		return m.Sender == SenderHuman && m.Timestamp.Equal(in.At) && m.Content == content
	})
	isRemoved := s.notes.Dropped > 0 && len(s.Messages) > 0 && in.At.Before(s.Messages[0].Timestamp)
	if !isKnown && !isRemoved {
		s.AddMessage(SenderHuman, content, in.At)
	}
}

// touch notes a sign of the agent or of people.
func (s *Session) touch(at time.Time) { s.UpdatedAt = later(s.UpdatedAt, at) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// now is as it is written: UTC, without the monotonic clock.
func now() time.Time { return time.Now().UTC().Round(0) }

// Move takes the session to another state and says so in the log, with why behind it: "by alice". The
// error is a *wire.SessionError and changes nothing.
func (s *Session) Move(to wire.InteractiveSessionState, why string, now time.Time) error {
	now = later(s.UpdatedAt, now.UTC().Round(0)) // the clock may have been set back
	what := string(to)
	if s.State == wire.SessionPaused && to == wire.SessionActive {
		what = "resumed"
	}
	if err := s.Transition(to, now); err != nil {
		return err
	}
	s.notes.Runner.AutoPaused = false
	s.AddMessage(SenderSystem, strings.TrimSpace("Session "+what+" "+why), now)
	return nil
}

// Entries are the messages after the first n that the log ever had, without those that were removed, and
// how many there have been in all: the n of the next call.
func (s *Session) Entries(n uint64) (list []wire.SessionMessage, all uint64) {
	removed := s.notes.Dropped
	all = removed + uint64(len(s.Messages))
	return s.Messages[min(max(n, removed), all)-removed:], all
}

// Rules say when a session ends by itself; the zero value: never. A runner applies them by its clock, and
// whoever looks at a session applies them too.
type Rules struct {
	WhenIdle time.Duration // nobody has said anything for so long, and the agent is in no turn; 0: never
	OnGoal   bool          // its goal is complete
}

// ApplyRules completes the session if a rule says so, and notes which. busy means that its agent works,
// or waits for an answer to a question of its own. A paused session does not end.
func (s *Session) ApplyRules(r Rules, busy bool, now time.Time) error {
	switch {
	case s.State != wire.SessionActive:
		return nil
	case r.OnGoal && !s.notes.Goal.IsZero():
		s.notes.Runner.Ended = "goal_complete"
	case r.WhenIdle > 0 && !busy && !now.Before(s.UpdatedAt.Add(r.WhenIdle)):
		s.notes.Runner.Ended = fmt.Sprintf("idle_timeout: %gs", r.WhenIdle.Seconds())
	default:
		return nil
	}
	return s.Move(wire.SessionCompleted, "("+s.notes.Runner.Ended+")", now)
}

// EndedBy is the rule by which the session has ended; "" for one that somebody has ended, or that goes on.
func (s *Session) EndedBy() string { return s.notes.Runner.Ended }
