package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

const (
	// FieldSession is the field of an event, and of a message's meta.atm, that names its session; without it: all.
	FieldSession = wire.FieldSession

	// FieldAnswer marks output that repeats, for readers of output alone, the answer, or words of it, in the event with this
	// number.
	FieldAnswer = "answer_of"

	fieldMove = "move" // marks the status that repeats a Move
)

// Said fills in what was said in a session, in the order of time: its Messages, the drafts that were reviewed, and when
// it was last heard of. Of a session whose events are gone it leaves what is there.
func (st *Store) Said(ctx context.Context, s *Session) error {
	l := st.Log(s, 0)
	defer l.Close()
	entries, err := l.Next(ctx, s)
	if len(entries) == 0 {
		return err
	}
	s.Messages = entries
	s.touch(entries[len(entries)-1].Timestamp)
	for _, id := range l.reviewed {
		s.AddDraft(id, s.UpdatedAt)
	}
	return err
}

// Log reads what was said in a session from the events and the inbox of its agent: what the agent emits, asks and answers
// at the end of a turn; human input, delivered in whatever way; and how the session's state changed.
type Log struct {
	st       *Store
	s        *Session // as it was at the last Next
	box      *maildir.Box
	events   *eventlog.Reader
	isPast   bool // the session is over, and so are its events
	moves    int  // that were read
	heard    map[wire.ID]bool
	drafts   map[wire.UUID]bool // that were announced
	reviewed []wire.UUID
	last     string // the content of the last entry
	said     string
	joined   strings.Builder
	entries  []Entry // of this Next
}

// Log begins to read a session's log, with newest only in the newest events of its agent, so many.
func (st *Store) Log(s *Session, newest uint64) *Log {
	l := &Log{st: st, box: st.box(s), heard: map[wire.ID]bool{}, drafts: map[wire.UUID]bool{}}
	after := s.Notes.After
	last, _ := l.box.Log().LastSeq() // Next returns the error
	if last < after {
		after = 0 // a new log: the agent was retired and created again
	}
	if newest > 0 && last > newest {
		after = max(after, last-newest)
	}
	l.events = l.box.Log().Follow(after)
	return l
}

// Close closes the log.
func (l *Log) Close() { l.events.Close() }

// SoFar is what the agent has said in a turn that has not ended.
func (l *Log) SoFar() string { return l.said }

// Next returns what is new since the last call, in the order of time. s is the session as it is now.
func (l *Log) Next(ctx context.Context, s *Session) ([]Entry, error) {
	l.s, l.entries = s, nil
	for _, m := range s.Notes.Moves[min(l.moves, len(s.Notes.Moves)):] {
		l.add(SenderSystem, m.String(), m.At)
	}
	l.moves = len(s.Notes.Moves)
	err := l.readEvents()
	if err == nil {
		err = l.readInputs(ctx)
	}
	if errors.Is(err, maildir.ErrNoMailbox) { // a retired agent says nothing more
		err = nil
	}
	slices.SortStableFunc(l.entries, func(a, b Entry) int { return a.Timestamp.Compare(b.Timestamp) })
	return l.entries, err
}

func (l *Log) add(sender, content string, at time.Time) {
	var s InteractiveSession
	s.LogMessage(sender, content, at)
	l.entries, l.last = append(l.entries, s.Messages...), content
}

// isAfterEnd reports whether something happened when the session was over.
func (l *Log) isAfterEnd(at time.Time) bool { return !l.s.State.Alive() && at.After(l.s.UpdatedAt) }

func (l *Log) readEvents() error {
	for !l.isPast {
		e, err := l.events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if l.isPast = l.isAfterEnd(e.At); !l.isPast && !e.At.Before(l.s.CreatedAt) {
			l.readEvent(&e)
		}
	}
	return nil
}

func (l *Log) readEvent(e *wire.Event) {
	if of := e.Field(FieldSession); of != "" && of != string(l.s.SessionID) {
		return
	}
	switch e.Kind {
	case wire.AgentOutput, wire.DraftReady, wire.GoalComplete, wire.WaitingForInput, wire.StatusUpdate:
		_, isAnswer := e.Uint(FieldAnswer)
		if emitted, ok := ChannelEvent(e); ok && !isAnswer && e.Field(fieldMove) == "" {
			l.addEmitted(emitted, e.At)
		}
	case wire.TurnCompleted:
		if answer := cmp.Or(AnswerOf(e), l.said); answer != "" {
			l.add(SenderAgent, answer, e.At)
		}
		l.said = ""
	case wire.ConfirmRequired:
		// A hook and the screen report the same dialog.
		question := foreign.SessionEvent{Kind: wire.WaitingForInput, Prompt: e.Text("prompt", "message")}.String()
		if l.last != question {
			l.add(SenderSystem, question, e.At)
		}
	case wire.TurnStarted:
		l.said = ""
	case wire.ToolCallStart:
		if e.Source != wire.SourceHook { // an ACP agent's
			l.add(SenderSystem, "Tool: "+strings.TrimSpace(e.Text(wire.FieldTool)+" "+e.Text("title")), e.At)
		}
	case wire.MessageDelta:
		l.said = JoinDelta(&l.joined, l.said, e)
	case wire.EventRead, wire.EventInjected:
		if it, err := l.box.Get(e.MessageID()); err == nil { // else the message is gone
			l.addInput(it.Message)
			l.addMail(it.Message)
		}
	}
}

func (l *Log) addEmitted(e foreign.SessionEvent, at time.Time) {
	switch {
	case e.Kind != wire.AgentOutput && e.Kind != wire.DraftReady:
		l.add(SenderSystem, e.String(), at)
	case e.Kind == wire.DraftReady && !l.drafts[e.DraftID]:
		l.drafts[e.DraftID] = true
		l.add(SenderSystem, e.String(), at)
	case e.Stream == foreign.StdErr:
		l.add(SenderAgent, e.String(), at) // it names the stream
	case e.Kind == wire.AgentOutput:
		l.add(SenderAgent, e.Content, at)
	}
}

// readInputs reads the human input that no event has told of: unread, or read when the session was over.
func (l *Log) readInputs(ctx context.Context) error {
	isOver := !l.s.State.Alive()
	rg := maildir.Range{Unread: true, Owed: isOver, Done: isOver, Archive: isOver, Since: l.s.CreatedAt, With: headers.IsInput}
	rg.Wants = func(id wire.ID) bool {
		at := id.Time()
		return !l.heard[id] && !l.isAfterEnd(at) && !at.Before(l.s.CreatedAt.Truncate(time.Millisecond))
	}
	_, err := inbox.Walk(ctx, l.box, rg, func(it *wire.Item) bool {
		l.addInput(it.Message)
		return true
	})
	return err
}

// addMail adds that the agent got mail, once. What a person writes in a session is none.
func (l *Log) addMail(m *wire.Message) {
	if m.Kind() != wire.TypeHumanInput && !l.heard[m.ID] {
		l.heard[m.ID] = true
		l.add(SenderSystem, "Mail from "+string(m.From.Agent)+": "+m.Title(), m.ID.Time())
	}
}

// addInput adds the human input in a message if it is the session's, once, with the message's id.
func (l *Log) addInput(m *wire.Message) {
	in, ok := l.st.InputOf(wire.Name(l.s.AgentID), m)
	if !ok || l.heard[m.ID] || !l.s.hears(in) || l.isAfterEnd(m.ID.Time()) {
		return
	}
	l.heard[m.ID] = true
	content := in.String()
	if in.Kind == foreign.HumanMessage {
		content = in.Text
	}
	l.add(SenderHuman, content, in.At)
	l.entries[len(l.entries)-1].Extra = json.RawMessage(`{"id":` + string(wire.Quote(string(in.ID))) + `}`)
	if in.IsVerdict() && in.ArtifactURI == nil {
		l.reviewed = append(l.reviewed, in.DraftID)
	}
}

// AnswerOf returns the agent's answer from the event that ends its turn, "" if the event has none.
func AnswerOf(e *wire.Event) string {
	if e.Kind != wire.TurnCompleted {
		return ""
	}
	return e.Text("response", "last_assistant_message", "last-assistant-message", "prompt_response")
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

// maxOutput is how many bytes of output one event holds. Escaped in the log they may take six times as much.
const maxOutput = 1 << 20

// Events returns what to append to an agent's log to emit e in a session; id "" means all its sessions. Long output
// becomes several events, cut between characters. Bytes that are not UTF-8 become U+FFFD. The error is a
// *Error.
func Events(id wire.UUID, e foreign.SessionEvent) (out []wire.Event, err error) {
	for content := string([]rune(e.Content)); content != "" || out == nil; {
		e.Content = wire.Clip(content, maxOutput)
		content = content[len(e.Content):]
		raw, err := e.MarshalJSON()
		if err != nil {
			return nil, &Error{Reason: "not an event: " + err.Error()}
		}
		event := wire.Event{Kind: e.Kind, Source: wire.SourceCLI, Wire: raw}
		if id != "" {
			event = event.With(FieldSession, string(id))
		}
		out = append(out, event)
	}
	return out, nil
}
