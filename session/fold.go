package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// FieldSession is the field of an event, and of meta.atm of a message, that
// names the session it belongs to. What names none belongs to every session of
// its agent.
const FieldSession = "interactive_session"

// CatchUp takes into the session what its agent's events and inbox say since. An
// agent that is gone says nothing more.
//
// Into the log go: what the agent emits on the session's channel, what it
// answered at the end of a turn where an event tells and its output is not kept
// anyway, what it asks, and human input, however it was delivered. An abort among
// that ends the session.
func (s *Session) CatchUp(ctx context.Context, box *mailbox.Box) error {
	if err := s.events(box); err != nil {
		return absent(err)
	}
	human := []byte(`"` + wire.TypeHumanInput + `"`)
	rg := mailbox.Range{Unread: true, Keep: func(raw []byte) bool { return bytes.Contains(raw, human) }}
	_, _, err := box.Walk(ctx, rg, func(it *mailbox.Item) bool {
		s.delivered(it.Message)
		return true
	})
	return absent(err)
}

// events folds what was appended to the log since.
func (s *Session) events(box *mailbox.Box) error {
	last, err := box.LastSeq()
	if err != nil || last == s.seq {
		return err
	}
	if last < s.seq {
		// Another log by now: the agent was retired and made again.
		s.seq = 0
	}
	c := box.Events(s.seq)
	defer c.Close()
	for {
		e, _, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.take(&e, box)
		s.seq = e.Seq
	}
}

func absent(err error) error {
	if errors.Is(err, mailbox.ErrNoAgent) {
		return nil
	}
	return err
}

// Owns reports whether an event belongs to the session.
func (s *Session) Owns(e *wire.Event) bool {
	of := e.Field(FieldSession)
	return of == "" || of == string(s.SessionID)
}

// take folds one event.
func (s *Session) take(e *wire.Event, box *mailbox.Box) {
	if !s.Owns(e) || !s.State.Alive() {
		return
	}
	switch e.Kind {
	case "agent_output", "draft_ready", "goal_complete", "waiting_for_input", "status_update":
		if _, repeats := e.Uint(FieldAnswer); repeats {
			return
		}
		if said, ok := EventOf(e); ok {
			s.emitted(said, e.At)
		}
	case wire.TurnCompleted, "turn_complete":
		s.heard = later(s.heard, e.At)
		if answer := AnswerOf(e); answer != "" && !s.run.Lines {
			s.Say(SenderAgent, answer, e.At)
		}
	case "confirm_required":
		// Hooks and the screen tell of the same dialog.
		asks := wire.SessionEvent{Kind: "waiting_for_input", Prompt: e.Text("prompt", "message")}.String()
		if n := len(s.Messages); n == 0 || s.Messages[n-1].Content != asks {
			s.Say(SenderSystem, asks, e.At)
		}
	case wire.TurnStarted, "tool_call_start", "tool_call_end", "message_delta":
		s.heard = later(s.heard, e.At)
	case "state_change":
		if e.Field("previous") == "starting" { // only now can anybody be idle
			s.heard = later(s.heard, e.At)
		}
	case wire.EventRead, wire.EventInjected:
		if it, err := box.Get(e.MessageID()); err == nil { // else: of none that is still there
			s.delivered(it.Message)
		}
	}
}

// delivered takes a message that was delivered to the agent, if it is human
// input for this session: addressed to it, or since it began to any.
func (s *Session) delivered(m *wire.Message) {
	in, ok := InputOf(m)
	// By the id, which is made at delivery: what was dropped has the file's time.
	late := m.ID.Time().Before(s.CreatedAt.Truncate(time.Millisecond))
	if !ok || !in.For(s.SessionID) || in.session == "" && late || !s.State.Alive() {
		return
	}
	s.Hear(in)
	if in.Kind == "abort" {
		// From a state that is alive nothing refuses it.
		_ = s.Move(wire.SessionAborted, "by "+string(in.From.Agent), in.At)
	}
}

func (s *Session) emitted(said wire.SessionEvent, at time.Time) {
	switch said.Kind {
	case "agent_output":
		s.Say(SenderAgent, said.Content, at)
		return
	case "draft_ready":
		if slices.Contains(s.DraftIDs, said.DraftID) {
			s.addDraft(Draft{ID: said.DraftID, Summary: said.Summary, Artifacts: said.ArtifactCount, At: at})
			return
		}
		s.addDraft(Draft{ID: said.DraftID, Summary: said.Summary, Artifacts: said.ArtifactCount, At: at})
	case "goal_complete":
		if (s.GoalID == NoGoal || s.GoalID == said.GoalID) && s.goal.IsZero() {
			s.goal = at
		}
	}
	s.Say(SenderSystem, said.String(), at)
}

// Hear notes in the log what a person has said, once.
func (s *Session) Hear(in Input) {
	content := in.String()
	if in.Kind == "message" {
		content = in.Text
	}
	s.SayOnce(SenderHuman, content, in.At)
}

// SayOnce is Say unless the log has that very message already.
func (s *Session) SayOnce(sender, content string, at time.Time) {
	content = strings.ToValidUTF8(content, "\uFFFD")
	if at = at.UTC().Round(0); !s.said(sender, content, at) {
		s.Say(sender, content, at)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// FieldAnswer is the field of an event of output that repeats the answer in the
// event of the turn's end, whose number it holds: for who follows the output
// alone. The log has it from there.
const FieldAnswer = "answer_of"

// AnswerOf is what the agent answered in the turn that an event ends, where the
// event tells; else "".
func AnswerOf(e *wire.Event) string {
	switch e.Kind {
	case wire.TurnCompleted, "turn_complete":
		return e.Text("response", "last_assistant_message", "last-assistant-message", "prompt_response")
	}
	return ""
}

// EventOf is what an event says on a session's channel; false for one that says
// nothing there.
func EventOf(e *wire.Event) (wire.SessionEvent, bool) {
	raw, ok := wire.AsWire(e, wire.Session)
	if !ok {
		return wire.SessionEvent{}, false
	}
	said, err := wire.Parse[wire.SessionEvent](raw)
	return said, err == nil
}

// Input is what a person said to a session, and the message that brought it.
type Input struct {
	wire.HumanInput
	ID   wire.ID         // of the message
	From wire.Address    // who said it; drop@team: who dropped a file
	At   time.Time       // when
	Wire json.RawMessage // as it came; nil where it came as plain text

	session string // for which it is meant; "": for any
}

// For reports whether the input is meant for a session.
func (in Input) For(id wire.UUID) bool { return in.session == "" || in.session == string(id) }

// ForAny reports whether the input names no session.
func (in Input) ForAny() bool { return in.session == "" }

// InputOf is the human input that a message brings; false for a message of
// another type. One without a payload that can be read says its text.
func InputOf(m *wire.Message) (Input, bool) {
	if m.Kind() != wire.TypeHumanInput {
		return Input{}, false
	}
	in := Input{ID: m.ID, From: m.From, At: m.SentAt, session: m.MetaString(FieldSession)}
	if h, err := wire.Parse[wire.HumanInput](m.Payload); err == nil {
		in.HumanInput, in.Wire = h, m.Payload
	} else {
		in.HumanInput = wire.HumanInput{Kind: "message", Text: m.Body}
	}
	return in, true
}

// Message is the message that brings an input to a session's agent: the wire's
// object as its payload, and the text or the kind in words as its body. The
// sender fills in the rest. An input that cannot be written is a
// *wire.SessionError.
func Message(id wire.UUID, in wire.HumanInput) (*wire.Message, error) {
	raw := wire.Encode(in)
	if _, err := wire.Parse[wire.HumanInput](raw); err != nil {
		return nil, &wire.SessionError{Reason: "no human input: " + err.Error()}
	}
	fields, err := wire.Object(raw)
	if err != nil {
		return nil, err
	}
	body, _, err := wire.HumanText(raw, fields)
	if err != nil {
		return nil, err
	}
	m := &wire.Message{ID: wire.NewID(), Type: wire.TypeHumanInput, Body: body, Payload: raw, SentAt: time.Now().UTC().Round(0)}
	if id != "" {
		m.SetMeta(FieldSession, wire.AppendString(nil, string(id)))
	}
	return m, nil
}
