package mail

import (
	"context"
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
	// see takes in something new.
	see(entry watcher.Entry)
	// look is what came of it as things are now; nil: it is not met.
	look(ctx context.Context) (*met, error)
	// missing is what did not come, and the flag that waits for it again.
	missing() (what, again string)
}

// met is what came of a condition.
type met struct {
	Agent   wire.Name        `json:"agent,omitempty"`
	Matched string           `json:"matched"`
	Message *command.Message `json:"message,omitempty"`
	ID      wire.ID          `json:"id,omitempty"`
	State   reducer.Word     `json:"state,omitempty"`
	Detail  string           `json:"detail,omitempty"`

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
func (c *mailCondition) see(watcher.Entry)             {}
func (c *mailCondition) missing() (what, again string) { return "no mail", "" }

func (c *mailCondition) look(ctx context.Context) (*met, error) {
	b, err := c.s.Me.Peek(ctx, mailbox.ReadOptions{IDs: c.options.IDs, Match: c.options.Match, Limit: 1})
	if err != nil || len(b.Items) == 0 {
		return nil, err
	}
	return metByMessage(c.s, "mail", b.Items[0]), nil
}

// metByMessage is the outcome of waiting for a message.
func metByMessage(s *command.Scope, kind string, it *mailbox.Item) *met {
	out := &met{Matched: kind, Agent: s.Me.Agent(), Message: &command.Message{Item: it}}
	out.text = s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		out.text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return out
}

// replyCondition: somebody has answered a message of mine.
type replyCondition struct {
	s      *command.Scope
	id     wire.ID
	found  *mailbox.Item
	looked bool // what was there has been searched; what comes is seen
}

func (c *replyCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}

func (c *replyCondition) missing() (what, again string) {
	return "no answer", "--reply " + c.id.Short(6)
}

func (c *replyCondition) see(entry watcher.Entry) {
	if it := entry.Message; it != nil && c.found == nil && teams.Answers(it.Message, c.id) {
		c.found = it
	}
}

func (c *replyCondition) look(ctx context.Context) (*met, error) {
	if c.found == nil && !c.looked {
		c.looked = true
		if replies := teams.Replies(ctx, c.s.Me, c.id, wire.Address{}); len(replies) > 0 {
			c.found = replies[0]
		}
	}
	if c.found == nil {
		return nil, nil
	}
	return metByMessage(c.s, "reply", c.found), nil
}

// ackCondition: every recipient has acknowledged a message of mine.
type ackCondition struct {
	s     *command.Scope
	m     *wire.Message
	acked *met
	known bool // and nothing about the message has come since
}

func (c *ackCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}

func (c *ackCondition) missing() (what, again string) {
	return "no ack", "--acked " + c.m.ID.Short(6)
}

func (c *ackCondition) see(entry watcher.Entry) {
	if it := entry.Message; it != nil && it.InReplyTo == c.m.ID {
		c.known = false
	}
}

func (c *ackCondition) look(ctx context.Context) (*met, error) {
	if c.known || c.acked != nil {
		return c.acked, nil
	}
	c.known = true
	last, all := c.s.Root.AckedBy(ctx, c.m, c.s.Me)
	if all && last != nil {
		c.acked = metByMessage(c.s, "acked", last)
	} else if all {
		c.acked = &met{Matched: "acked", Agent: c.s.Me.Agent(), ID: c.m.ID, text: c.m.ID.Short(6)}
	}
	return c.acked, nil
}

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over.
type stateCondition struct {
	kind string
	box  *mailbox.Box
	team *teams.Team
	fold *reducer.State
	row  teams.Member
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
	c.fold, err = c.team.State(box.Agent())
	return c, err
}

func (c *stateCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.box: c.fold.Seq}
}

func (c *stateCondition) missing() (what, again string) {
	return "not " + c.kind, "--" + c.kind + " " + string(c.box.Agent())
}

func (c *stateCondition) see(entry watcher.Entry) {
	if entry.Event != nil && entry.Box.Address() == c.box.Address() && entry.Event.Seq > c.fold.Seq {
		c.fold.Apply(reducer.Input{Now: time.Now(), Event: entry.Event})
	}
}

func (c *stateCondition) look(context.Context) (*met, error) {
	var err error
	if c.row, err = c.team.SummaryOf(c.box.Agent(), c.fold, time.Now()); err != nil {
		return nil, err
	}
	is := map[string]bool{
		"idle":      c.row.State == reducer.WordIdle,
		"busy":      c.row.State == reducer.WordBusy,
		"blocked":   c.row.State == reducer.WordBlocked,
		"exit":      c.row.State == reducer.WordOff,
		"turn-done": c.row.State == reducer.WordIdle || c.row.State == reducer.WordOff || c.row.TurnStatus == reducer.TurnTerminal,
	}
	if !is[c.kind] {
		return nil, nil
	}
	out := &met{Matched: c.kind, Agent: c.row.Name, State: c.row.State, Detail: c.row.Detail}
	out.text = string(c.row.Name) + " is " + string(c.row.State)
	if c.row.Detail != "" {
		out.text += ", " + letter.Escape(c.row.Detail)
	}
	return out, nil
}

// standing is how things are with the agent.
func (c *stateCondition) standing() string {
	text := string(c.row.Name) + " is " + string(c.row.State)
	if c.row.Since != nil {
		text += " since " + letter.Span(time.Since(*c.row.Since))
	}
	if about := letter.Escape(c.row.Detail); about != "" {
		text += " (" + about + ")"
	}
	return text
}

// hopeless says why waiting has little to hope for; "" where it has.
func (c *stateCondition) hopeless() string {
	switch {
	case c.row.State == reducer.WordOff:
		return c.standing()
	case c.row.State == reducer.WordPerson:
		return string(c.row.Name) + " is a person: their state is not known"
	case c.row.State == reducer.WordUnknown && !c.row.Running:
		return "the state of " + string(c.row.Name) + " is unknown: no runner, no hook has said anything (atm install TOOL adds hooks)"
	}
	return ""
}

// turnCondition: the turns that a message was handed into are over, at every
// recipient.
type turnCondition struct {
	id    wire.ID
	turns []*handedTurn
}

// handedTurn is a message's turn at one recipient.
type handedTurn struct {
	box   *mailbox.Box
	turns *teams.Turns
}

func newTurnCondition(ctx context.Context, s *command.Scope, word string) (*turnCondition, error) {
	it, _, err := s.Find(ctx, word, false)
	if err != nil {
		return nil, err
	}
	c := &turnCondition{id: it.ID}
	for _, a := range it.To {
		box, err := s.Root.Mailbox(a)
		if err != nil {
			return nil, err
		}
		team, err := s.Root.Team(a.Team)
		if err != nil {
			return nil, err
		}
		turns, err := team.Turns(box.Agent(), it.SentAt.Add(-24*time.Hour))
		if err != nil {
			return nil, err
		}
		c.turns = append(c.turns, &handedTurn{box, turns})
	}
	return c, nil
}

func (c *turnCondition) watches() map[*mailbox.Box]uint64 {
	out := map[*mailbox.Box]uint64{}
	for _, t := range c.turns {
		out[t.box] = t.turns.Seq()
	}
	return out
}

func (c *turnCondition) missing() (what, again string) {
	return "turn not over", "--turn-done " + c.id.Short(6)
}

func (c *turnCondition) see(entry watcher.Entry) {
	for _, t := range c.turns {
		if e := entry.Event; e != nil && t.box.Address() == entry.Box.Address() && e.Seq > t.turns.Seq() {
			t.turns.Apply(e)
		}
	}
}

func (c *turnCondition) look(context.Context) (*met, error) {
	var parts []string
	for _, t := range c.turns {
		turn := t.turns.Delivery(c.id).Turn
		if !turn.HasEnded() {
			return nil, nil
		}
		status := string(turn.Status)
		if status == "" {
			status = "over"
		}
		parts = append(parts, string(t.box.Agent())+": "+status)
	}
	return &met{Matched: "turn-done", ID: c.id, text: c.id.Short(6) + " (" + strings.Join(parts, ", ") + ")"}, nil
}
