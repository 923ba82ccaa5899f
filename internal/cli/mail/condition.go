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
	// look takes in something new, and is what came of the condition then; nil: it is not
	// met. The entry is empty where only time has passed.
	look(ctx context.Context, entry watcher.Entry) (*met, error)
	// flag waits for it again: " --reply 9f3a1c".
	flag() string
}

// met is what came of a condition.
type met struct {
	Agent   wire.Name        `json:"agent,omitempty"`
	Matched string           `json:"matched"`
	Message *command.Message `json:"message,omitempty"`

	text string
}

func (m met) String() string { return m.Matched + ": " + m.text }

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
func (c *mailCondition) flag() string { return "" }

func (c *mailCondition) look(ctx context.Context, _ watcher.Entry) (*met, error) {
	b, err := c.s.Me.Peek(ctx, mailbox.ReadOptions{IDs: c.options.IDs, Match: c.options.Match, Limit: 1})
	if err != nil || len(b.Items) == 0 {
		return nil, err
	}
	return metBy(c.s, "mail", b.Items[0]), nil
}

func metBy(s *command.Scope, kind string, it *mailbox.Item) *met {
	text := s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return &met{s.Me.Agent(), kind, &command.Message{Item: it}, text}
}

// answerCondition: somebody has answered a message of mine (reply), or every recipient
// has acknowledged it (acked).
type answerCondition struct {
	s       *command.Scope
	kind    string
	message *wire.Message
	looked  bool // and no message has come since
	met     *met
}

func (c *answerCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}
func (c *answerCondition) flag() string { return " --" + c.kind + " " + c.message.ID.Short(6) }

func (c *answerCondition) look(ctx context.Context, entry watcher.Entry) (*met, error) {
	if c.met != nil || c.looked && entry.Message == nil {
		return c.met, nil
	}
	c.looked = true
	if c.kind == "reply" {
		if replies := teams.Replies(ctx, c.s.Me, c.message.ID, wire.Address{}); len(replies) > 0 {
			c.met = metBy(c.s, c.kind, replies[0])
		}
		return c.met, nil
	}
	last, all := c.s.Root.AckedBy(ctx, c.message, c.s.Me)
	if all && last != nil {
		c.met = metBy(c.s, c.kind, last)
	} else if all {
		c.met = &met{Matched: c.kind, Agent: c.s.Me.Agent(), text: c.message.ID.Short(6)}
	}
	return c.met, nil
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
	_, err = c.look(ctx, watcher.Entry{})
	return c, err
}

func (c *stateCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.box: c.state.Seq}
}
func (c *stateCondition) flag() string { return " --" + c.kind + " " + string(c.box.Agent()) }

func (c *stateCondition) look(_ context.Context, entry watcher.Entry) (_ *met, err error) {
	if entry.Event != nil && entry.Box.Address() == c.box.Address() && entry.Event.Seq > c.state.Seq {
		c.state.Apply(reducer.Input{Now: time.Now(), Event: entry.Event})
	}
	if c.now, err = c.team.SummaryOf(c.box.Agent(), c.state, time.Now()); err != nil {
		return nil, err
	}
	word := c.now.State
	over := word == reducer.WordIdle || word == reducer.WordOff || c.now.TurnStatus == reducer.TurnTerminal
	if string(word) == c.kind || c.kind == "exit" && word == reducer.WordOff || c.kind == "turn-done" && over {
		text := string(c.now.Name) + " is " + string(word)
		if c.now.Detail != "" {
			text += ", " + letter.Escape(c.now.Detail)
		}
		return &met{Matched: c.kind, Agent: c.now.Name, text: text}, nil
	}
	return nil, nil
}

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
func (c *turnCondition) flag() string { return " --turn-done " + c.id.Short(6) }

func (c *turnCondition) look(_ context.Context, entry watcher.Entry) (*met, error) {
	var parts []string
	for box, turns := range c.turns {
		if entry.Event != nil && box.Address() == entry.Box.Address() && entry.Event.Seq > turns.Seq() {
			turns.Apply(entry.Event)
		}
		if turn := turns.Delivery(c.id).Turn; turn.HasEnded() {
			parts = append(parts, string(box.Agent())+": "+string(turn.Status))
		}
	}
	if len(parts) < len(c.turns) {
		return nil, nil
	}
	slices.Sort(parts)
	return &met{Matched: "turn-done", text: c.id.Short(6) + " (" + strings.Join(parts, ", ") + ")"}, nil
}
