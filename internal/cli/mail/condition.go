package mail

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// A condition is one thing that is waited for.
type condition interface {
	// watches are the mailboxes to watch, and after which event.
	watches() map[*mailbox.Box]uint64
	// see takes in something new; the entry is empty where only time has passed.
	see(entry watcher.Entry)
	// look is what came of it as things are now; nil: it is not met.
	look(ctx context.Context) (*met, error)
	// missing is what did not come, and the flag that waits for it again.
	missing() (what, flag string)
}

// met is what came of a condition.
type met struct {
	Agent   wire.Name        `json:"agent,omitempty"`
	Matched string           `json:"matched"`
	Message *command.Message `json:"message,omitempty"`

	text string
}

func (m met) String() string { return m.Matched + ": " + m.text }

// metByMessage is the outcome of waiting for a message.
func metByMessage(s *command.Scope, kind string, it *mailbox.Item) *met {
	text := s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return &met{s.Me.Agent(), kind, &command.Message{Item: it}, text}
}

// noEvents is after every event there will be.
const noEvents = ^uint64(0) >> 2

// mailCondition: there is unread mail for me that options choose.
type mailCondition struct {
	s       *command.Scope
	options mailbox.ReadOptions
}

func (c *mailCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}
func (c *mailCondition) see(watcher.Entry)            {}
func (c *mailCondition) missing() (what, flag string) { return "no mail", "" }

func (c *mailCondition) look(ctx context.Context) (*met, error) {
	b, err := c.s.Me.Peek(ctx, mailbox.ReadOptions{IDs: c.options.IDs, Match: c.options.Match, Limit: 1})
	if err != nil || len(b.Items) == 0 {
		return nil, err
	}
	return metByMessage(c.s, "mail", b.Items[0]), nil
}

// replyCondition: somebody has answered a message of mine.
type replyCondition struct {
	s      *command.Scope
	id     wire.ID
	looked bool          // what was there has been searched; what comes is seen
	found  *mailbox.Item // the answer
}

func (c *replyCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}

func (c *replyCondition) missing() (what, flag string) {
	return "no answer", " --reply " + c.id.Short(6)
}

func (c *replyCondition) see(entry watcher.Entry) {
	if entry.Message != nil && c.found == nil && teams.Answers(entry.Message.Message, c.id) {
		c.found = entry.Message
	}
}

func (c *replyCondition) look(ctx context.Context) (*met, error) {
	if !c.looked && c.found == nil {
		if replies := teams.Replies(ctx, c.s.Me, c.id, wire.Address{}); len(replies) > 0 {
			c.found = replies[0]
		}
		c.looked = true
	}
	if c.found == nil {
		return nil, nil
	}
	return metByMessage(c.s, "reply", c.found), nil
}

// ackCondition: every recipient has acknowledged a message of mine.
type ackCondition struct {
	s       *command.Scope
	message *wire.Message
	looked  bool // and nothing about the message has come since
	acked   *met
}

func (c *ackCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}

func (c *ackCondition) missing() (what, flag string) {
	return "no ack", " --acked " + c.message.ID.Short(6)
}

func (c *ackCondition) see(entry watcher.Entry) {
	if entry.Message != nil && entry.Message.InReplyTo == c.message.ID {
		c.looked = false
	}
}

func (c *ackCondition) look(ctx context.Context) (*met, error) {
	if c.looked {
		return c.acked, nil
	}
	c.looked = true
	last, all := c.s.Root.AckedBy(ctx, c.message, c.s.Me)
	if all && last != nil {
		c.acked = metByMessage(c.s, "acked", last)
	} else if all {
		c.acked = &met{Matched: "acked", Agent: c.s.Me.Agent(), text: c.message.ID.Short(6)}
	}
	return c.acked, nil
}

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over.
type stateCondition struct {
	kind  string
	box   *mailbox.Box
	team  *teams.Team
	state *reducer.State
	now   teams.Member // as it was looked at last
}

func newStateCondition(ctx context.Context, s *command.Scope, kind, word string) (*stateCondition, error) {
	box, err := s.Member(word)
	if err != nil {
		return nil, err
	}
	c := &stateCondition{kind: kind, box: box}
	if c.team, err = s.Root.Team(box.Address().Team); err != nil {
		return nil, err
	}
	box.TakeIn(ctx)
	if c.state, err = c.team.State(box.Agent()); err != nil {
		return nil, err
	}
	_, err = c.look(ctx)
	return c, err
}

func (c *stateCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.box: c.state.Seq}
}

func (c *stateCondition) missing() (what, flag string) {
	return "not " + c.kind, " --" + c.kind + " " + string(c.box.Agent())
}

func (c *stateCondition) see(entry watcher.Entry) {
	if entry.Event != nil && entry.Box.Address() == c.box.Address() && entry.Event.Seq > c.state.Seq {
		c.state.Apply(reducer.Input{Now: time.Now(), Event: entry.Event})
	}
}

func (c *stateCondition) look(context.Context) (_ *met, err error) {
	if c.now, err = c.team.SummaryOf(c.box.Agent(), c.state, time.Now()); err != nil {
		return nil, err
	}
	word := c.now.State
	is := map[string]bool{
		"idle":      word == reducer.WordIdle,
		"busy":      word == reducer.WordBusy,
		"blocked":   word == reducer.WordBlocked,
		"exit":      word == reducer.WordOff,
		"turn-done": word == reducer.WordIdle || word == reducer.WordOff || c.now.TurnStatus == reducer.TurnTerminal,
	}
	if !is[c.kind] {
		return nil, nil
	}
	text := string(c.now.Name) + " is " + string(word)
	if c.now.Detail != "" {
		text += ", " + letter.Escape(c.now.Detail)
	}
	return &met{Matched: c.kind, Agent: c.now.Name, text: text}, nil
}

func (c *stateCondition) isOff() bool { return c.now.State == reducer.WordOff }

// standing is how things are with the agent.
func (c *stateCondition) standing() string {
	text := string(c.now.Name) + " is " + string(c.now.State)
	if c.now.Since != nil {
		text += " since " + letter.Span(time.Since(*c.now.Since))
	}
	if c.now.Detail != "" {
		text += " (" + letter.Escape(c.now.Detail) + ")"
	}
	return text
}

// turnCondition: the turns that a message was handed into are over, at every recipient.
type turnCondition struct {
	id    wire.ID
	turns map[*mailbox.Box]*teams.Turns
}

func newTurnCondition(ctx context.Context, s *command.Scope, word string) (*turnCondition, error) {
	it, _, err := s.Find(ctx, word, false)
	if err != nil {
		return nil, err
	}
	c := &turnCondition{it.ID, map[*mailbox.Box]*teams.Turns{}}
	for _, a := range it.To {
		box, err := s.Root.Mailbox(a)
		if err != nil {
			return nil, err
		}
		team, err := s.Root.Team(a.Team)
		if err != nil {
			return nil, err
		}
		if c.turns[box], err = team.Turns(box.Agent(), it.SentAt.Add(-24*time.Hour)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *turnCondition) watches() map[*mailbox.Box]uint64 {
	out := map[*mailbox.Box]uint64{}
	for box, turns := range c.turns {
		out[box] = turns.Seq()
	}
	return out
}

func (c *turnCondition) missing() (what, flag string) {
	return "turn not over", " --turn-done " + c.id.Short(6)
}

func (c *turnCondition) see(entry watcher.Entry) {
	for box, turns := range c.turns {
		if entry.Event != nil && box.Address() == entry.Box.Address() && entry.Event.Seq > turns.Seq() {
			turns.Apply(entry.Event)
		}
	}
}

func (c *turnCondition) look(context.Context) (*met, error) {
	var parts []string
	for box, turns := range c.turns {
		turn := turns.Delivery(c.id).Turn
		if !turn.HasEnded() {
			return nil, nil
		}
		parts = append(parts, string(box.Agent())+": "+string(turn.Status))
	}
	slices.Sort(parts)
	return &met{Matched: "turn-done", text: c.id.Short(6) + " (" + strings.Join(parts, ", ") + ")"}, nil
}
