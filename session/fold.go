package session

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

const (
	// FieldSession is the field of an event, and of a message's meta.atm, that names its session; without it: all.
	FieldSession = wire.FieldSession

	// FieldAnswer marks output that repeats, for readers of output alone, the answer, or words of it, in the event with this
	// number.
	FieldAnswer = "answer_of"
)

// CatchUp folds what its agent's events and inbox have gained into a session that is not over: what the agent emits,
// asks and answers at the end of a turn; and human input, delivered in whatever
// way. An abort ends the session.
func (st *Store) CatchUp(ctx context.Context, s *Session) error { return st.catchUp(ctx, s, nil) }

// catchUp is CatchUp that opens only those unread messages that are not in known.
func (st *Store) catchUp(ctx context.Context, s *Session, known *unread) error {
	if !s.State.Alive() {
		return nil
	}
	err := s.foldEvents(st, st.box(s))
	if err == nil && known == nil {
		known, err = st.readUnread(ctx, s)
	} else if err == nil {
		err = known.addNew(st.box(s))
	}
	if err == nil {
		for _, m := range known.human {
			s.foldMessage(st, m)
		}
	}
	if errors.Is(err, maildir.ErrNoAgent) { // a retired agent says nothing more
		return nil
	}
	return err
}

func (s *Session) foldEvents(st *Store, box *maildir.Box) error {
	last, err := box.Log().LastSeq()
	if err != nil || last == s.Notes.Seq {
		return err
	}
	if last < s.Notes.Seq {
		s.Notes.Seq = 0 // a new log: the agent was retired and created again
	}
	c := box.Log().Follow(s.Notes.Seq)
	defer c.Close()
	var said strings.Builder
	for {
		e, _, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.foldEvent(&e, st, box, &said)
		s.Notes.Seq = e.Seq
	}
}

// activeKinds are the events that show that an agent is not idle, beside the state_change that ends its start.
var activeKinds = []string{
	wire.TurnStarted, wire.TurnCompleted, wire.ToolCallStart, wire.ToolCallEnd, wire.MessageDelta,
}

func (s *Session) foldEvent(e *wire.Event, st *Store, box *maildir.Box, said *strings.Builder) {
	if of := e.Field(FieldSession); of != "" && of != string(s.SessionID) || !s.State.Alive() {
		return
	}
	hasStarted := e.Kind == wire.StateChange && e.Field("previous") == "starting"
	if hasStarted || slices.Contains(activeKinds, e.Kind) {
		s.touch(e.At)
	}
	switch e.Kind {
	case wire.AgentOutput, wire.DraftReady, wire.GoalComplete, wire.WaitingForInput, wire.StatusUpdate:
		_, isRepeat := e.Uint(FieldAnswer)
		if emitted, ok := ChannelEvent(e); ok && !isRepeat {
			s.foldEmitted(emitted, e.At)
		}
	case wire.TurnCompleted:
		if answer := cmp.Or(AnswerOf(e), s.Notes.Said); answer != "" {
			s.LogMessage(SenderAgent, answer, e.At)
		}
		s.Notes.Said = ""
	case wire.ConfirmRequired:
		// A hook and the screen report the same dialog.
		question := foreign.SessionEvent{Kind: wire.WaitingForInput, Prompt: e.Text("prompt", "message")}.String()
		if n := len(s.Messages); n == 0 || s.Messages[n-1].Content != question {
			s.LogMessage(SenderSystem, question, e.At)
		}
	case wire.TurnStarted:
		s.Notes.Said = ""
	case wire.ToolCallStart:
		if e.Source != wire.SourceHook { // an ACP agent's
			s.LogMessage(SenderSystem, "Tool: "+strings.TrimSpace(e.Text(wire.FieldTool)+" "+e.Text("title")), e.At)
		}
	case wire.MessageDelta:
		s.Notes.Said = JoinDelta(said, s.Notes.Said, e)
	case wire.EventRead, wire.EventInjected:
		if it, err := box.Get(e.MessageID()); err == nil { // else the message is gone
			s.foldMessage(st, it.Message)
		}
	}
}

func (s *Session) foldEmitted(e foreign.SessionEvent, at time.Time) {
	switch e.Kind {
	case wire.AgentOutput:
		content := e.Content
		if e.Stream == "std_err" {
			content = e.String() // it names the stream
		}
		s.LogMessage(SenderAgent, content, at)
		return
	case wire.DraftReady:
		if !s.announceDraft(Draft{ID: e.DraftID, Summary: e.Summary, Artifacts: e.ArtifactCount, At: at}) {
			return
		}
	case wire.GoalComplete:
		if (s.GoalID == NoGoal || s.GoalID == e.GoalID) && s.Notes.Goal.IsZero() {
			s.Notes.Goal = at
		}
	}
	s.LogMessage(SenderSystem, e.String(), at)
}

// foldMessage folds human input that names this session, or names none and was delivered since this session began.
func (s *Session) foldMessage(st *Store, m *wire.Message) {
	in, ok := st.InputOf(wire.Name(s.AgentID), m)
	if !ok || !in.For(s.SessionID) || !s.State.Alive() {
		return
	}
	// The id is made at delivery; a dropped file's sent_at may be older.
	if in.Session == "" && m.ID.Time().Before(s.CreatedAt.Truncate(time.Millisecond)) {
		return
	}
	s.AddInput(in)
	if in.Kind == foreign.HumanAbort {
		_ = s.Move(Aborted, "by "+string(in.From.Agent), in.At) // allowed while it is alive
	}
}

// AnswerOf returns the agent's answer from the event that ends its turn, "" if the event has none.
func AnswerOf(e *wire.Event) string {
	switch e.Kind {
	case wire.TurnCompleted:
		return e.Text("response", "last_assistant_message", "last-assistant-message", "prompt_response")
	}
	return ""
}

// maxSaid is how many bytes of message deltas are joined.
const maxSaid = 256 << 10

// JoinDelta appends the message delta in an event, if it has one, to what the agent has said in its turn. joined has what
// the last call returned, so that not each delta copies all before it.
func JoinDelta(joined *strings.Builder, said string, e *wire.Event) string {
	if e.Kind != wire.MessageDelta || len(said) >= maxSaid {
		return said
	}
	if joined.String() != said {
		joined.Reset()
		joined.WriteString(said)
	}
	joined.WriteString(e.Text(wire.FieldDelta))
	return joined.String()
}

// ChannelEvent translates an event for a session's channel; false if it has no counterpart there.
func ChannelEvent(e *wire.Event) (out foreign.SessionEvent, ok bool) {
	raw, ok := foreign.AsWire(e, foreign.Session)
	return out, ok && out.UnmarshalJSON(raw) == nil
}
