package mail

import (
	"context"
	"errors"
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
	// look looks at everything that is there: is it so now?
	look(ctx context.Context) (bool, error)
	// see takes in something new; look follows.
	see(entry watcher.Entry)

	outcome() met     // what is printed when it is met
	wanted() string   // what did not come: "no answer"
	again() string    // the flags that wait for it again
	standing() string // how things stand; "" where that says nothing
}

// noEvents is after every event there will be.
const noEvents = ^uint64(0) >> 2

// lockTick is how often runners' locks are probed: a kill writes no event.
const lockTick = time.Second

// A waiter waits until conditions are met. It watches from the moment it is made,
// so that nothing between a look and the wait is missed.
type waiter struct {
	conditions []condition
	every      bool   // all of them, not any
	met        []bool // each, as it was looked at last
	timeout    time.Duration
	warn       func(string) // says at once where there is little to hope for; nil: silent
	watcher    *watcher.Watcher
}

func newWaiter(ctx context.Context, conditions []condition, every bool) (*waiter, error) {
	// Messages even where only events count: a dropped file may be either.
	options := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	var boxes []*mailbox.Box
	for _, c := range conditions {
		for box, after := range c.watches() {
			old, known := options.After[box.Address()]
			if !known {
				boxes = append(boxes, box)
				old = after
			}
			options.After[box.Address()] = min(old, after)
		}
	}
	w, err := watcher.Open(ctx, boxes, options)
	return &waiter{conditions: conditions, every: every, met: make([]bool, len(conditions)), watcher: w}, err
}

func (w *waiter) close() { w.watcher.Close() }

// wait returns when any condition, or every one at once, is met. A timeout of 0 is
// for ever.
func (w *waiter) wait(ctx context.Context, timeout time.Duration) error {
	w.timeout = timeout
	if enough, err := w.look(ctx); enough || err != nil {
		return err
	}
	w.warnOnce()
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for limited.Err() == nil {
		turn, cancel := context.WithTimeout(limited, lockTick)
		entry, err := w.watcher.Next(turn)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err == nil {
			for _, c := range w.conditions {
				c.see(entry)
			}
		}
		if enough, err := w.look(ctx); enough || err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return err // a directory that is moved may come back
		}
	}
	return command.Timeout("nothing within %s", timeout)
}

// look looks at every condition, and reports whether enough of them are met.
func (w *waiter) look(ctx context.Context) (bool, error) {
	n := 0
	for i, c := range w.conditions {
		var err error
		if w.met[i], err = c.look(ctx); err != nil {
			return false, err
		}
		if w.met[i] {
			n++
		}
	}
	return n == len(w.conditions) || n > 0 && !w.every, nil
}

func (w *waiter) warnOnce() {
	said := map[string]bool{}
	for i, c := range w.conditions {
		s, ok := c.(*stateCondition)
		if !ok || w.met[i] || w.warn == nil {
			continue
		}
		if text := s.hopeless(); text != "" && !said[text] {
			said[text] = true
			w.warn(text)
		}
	}
}

// mailCondition: there is unread mail for me that options choose.
type mailCondition struct {
	s       *command.Scope
	options mailbox.ReadOptions
	first   *mailbox.Item
}

func (c *mailCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}
func (c *mailCondition) see(watcher.Entry) {}

func (c *mailCondition) look(ctx context.Context) (bool, error) {
	options := c.options
	options.Fits, options.LookAhead, options.Owed, options.Limit = nil, 0, 0, 1
	b, err := c.s.Me.Peek(ctx, options)
	if len(b.Items) > 0 {
		c.first = b.Items[0]
	}
	return len(b.Items) > 0, err
}

func (c *mailCondition) outcome() met   { return messageMet(c.s, "mail", c.first) }
func (*mailCondition) wanted() string   { return "no mail" }
func (*mailCondition) again() string    { return "" }
func (*mailCondition) standing() string { return "" }

// messageMet is the outcome of waiting for a message.
func messageMet(s *command.Scope, kind string, it *mailbox.Item) met {
	out := met{Matched: kind, Agent: s.Me.Agent(), Message: &command.Message{Item: it}}
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

func (c *replyCondition) see(entry watcher.Entry) {
	if it := entry.Message; it != nil && c.found == nil && teams.Answers(it.Message, c.id) {
		c.found = it
	}
}

func (c *replyCondition) look(ctx context.Context) (bool, error) {
	if c.found == nil && !c.looked {
		c.looked = true
		if replies := teams.Replies(ctx, c.s.Me, c.id, wire.Address{}); len(replies) > 0 {
			c.found = replies[0]
		}
	}
	return c.found != nil, nil
}

func (c *replyCondition) outcome() met   { return messageMet(c.s, "reply", c.found) }
func (*replyCondition) wanted() string   { return "no answer" }
func (c *replyCondition) again() string  { return "--reply " + c.id.Short(6) }
func (*replyCondition) standing() string { return "" }

// ackCondition: every recipient has acknowledged a message of mine.
type ackCondition struct {
	s      *command.Scope
	m      *wire.Message
	last   *mailbox.Item
	all    bool
	looked bool // and nothing about the message has come since
}

func (c *ackCondition) watches() map[*mailbox.Box]uint64 {
	return map[*mailbox.Box]uint64{c.s.Me: noEvents}
}

func (c *ackCondition) see(entry watcher.Entry) {
	if it := entry.Message; it != nil && it.InReplyTo == c.m.ID {
		c.looked = false
	}
}

func (c *ackCondition) look(ctx context.Context) (bool, error) {
	if !c.looked {
		c.last, c.all = c.s.Root.AckedBy(ctx, c.m, c.s.Me)
		c.looked = true
	}
	return c.all, nil
}

func (c *ackCondition) outcome() met {
	if c.last == nil {
		return met{Matched: "acked", Agent: c.s.Me.Agent(), ID: c.m.ID, text: c.m.ID.Short(6)}
	}
	return messageMet(c.s, "acked", c.last)
}
func (*ackCondition) wanted() string   { return "no ack" }
func (c *ackCondition) again() string  { return "--acked " + c.m.ID.Short(6) }
func (*ackCondition) standing() string { return "" }

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over.
type stateCondition struct {
	kind string
	word string // as it was named
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
	c := &stateCondition{kind: kind, word: word, box: box}
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

func (c *stateCondition) see(entry watcher.Entry) {
	if entry.Event != nil && entry.Box.Address() == c.box.Address() && entry.Event.Seq > c.fold.Seq {
		c.fold.Apply(reducer.Input{Now: time.Now(), Event: entry.Event})
	}
}

func (c *stateCondition) look(context.Context) (bool, error) {
	var err error
	if c.row, err = c.team.SummaryOf(c.box.Agent(), c.fold, time.Now()); err != nil {
		return false, err
	}
	switch c.kind {
	case "idle":
		return c.row.State == reducer.WordIdle, nil
	case "busy":
		return c.row.State == reducer.WordBusy, nil
	case "blocked":
		return c.row.State == reducer.WordBlocked, nil
	case "exit":
		return c.row.State == reducer.WordOff, nil
	}
	return c.row.State == reducer.WordIdle || c.row.State == reducer.WordOff || c.row.TurnStatus == reducer.TurnTerminal, nil
}

func (c *stateCondition) outcome() met {
	text := string(c.row.Name) + " is " + string(c.row.State)
	if c.row.Detail != "" {
		text += ", " + letter.Escape(c.row.Detail)
	}
	return met{Matched: c.kind, Agent: c.row.Name, State: c.row.State, Detail: c.row.Detail, text: text}
}

func (c *stateCondition) wanted() string { return "not " + c.kind }
func (c *stateCondition) again() string  { return "--" + c.kind + " " + letter.Escape(c.word) }

func (c *stateCondition) standing() string {
	text := string(c.row.Name) + " is " + string(c.row.State) + c.since()
	if about := letter.Escape(c.row.Detail); about != "" {
		text += " (" + about + ")"
	}
	return text
}

func (c *stateCondition) since() string {
	if c.row.Since == nil {
		return ""
	}
	return " since " + letter.Span(time.Since(*c.row.Since))
}

// hopeless says why waiting has little to hope for; "" where it has.
func (c *stateCondition) hopeless() string {
	name := string(c.row.Name)
	switch {
	case c.row.State == reducer.WordOff:
		return name + " is off" + c.since()
	case c.row.State == reducer.WordPerson:
		return name + " is a person: their state is not known"
	case c.row.State == reducer.WordUnknown && !c.row.Running:
		return "the state of " + name + " is unknown: no runner, no hook has said anything (atm install TOOL adds hooks)"
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

func (c *turnCondition) see(entry watcher.Entry) {
	for _, t := range c.turns {
		if e := entry.Event; e != nil && t.box.Address() == entry.Box.Address() && e.Seq > t.turns.Seq() {
			t.turns.Apply(e)
		}
	}
}

func (c *turnCondition) look(context.Context) (bool, error) {
	for _, t := range c.turns {
		if !t.turns.Delivery(c.id).Turn.HasEnded() {
			return false, nil
		}
	}
	return true, nil
}

func (c *turnCondition) outcome() met {
	var parts []string
	for _, t := range c.turns {
		status := "over"
		if turn := t.turns.Delivery(c.id).Turn; turn != nil && turn.Status != "" {
			status = turn.Status
		}
		parts = append(parts, string(t.box.Agent())+": "+status)
	}
	return met{Matched: "turn-done", ID: c.id, text: c.id.Short(6) + " (" + strings.Join(parts, ", ") + ")"}
}
func (*turnCondition) wanted() string   { return "turn not over" }
func (c *turnCondition) again() string  { return "--turn-done " + c.id.Short(6) }
func (*turnCondition) standing() string { return "" }
