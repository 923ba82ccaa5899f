package mail

import (
	"cmp"
	"context"
	"errors"
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

// A condition is one of the things that a command waits for.
type condition struct {
	flag    string                      // of atm wait, to wait for it again: " --reply 9f3a1c"
	unmet   string                      // what a timeout says of it: "no answer"
	agents  []wire.Address              // who can meet it; those that are off are named at once
	watched []wire.Address              // whose mailboxes show it
	look    func(entry) (*match, error) // looks again after an entry; nil: not met yet

	match *match // what look returned last
}

// A match is the evidence that a condition is met.
type match struct {
	Agent   wire.Name `json:"agent"` // "": several recipients
	Matched string    `json:"matched"`
	Message *message  `json:"message"`
	And     []*match  `json:"and,omitempty"` // further conditions that are met

	text string
}

// An entry is what is new in a mailbox. The first look gets an empty one, a tick has an Err alone.
type entry = watcher.Entry

func matchOf(s *command.Scope, kind string, it *mailbox.Item) *match {
	text := s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return &match{Agent: s.Me.Agent(), Matched: kind, Message: &message{Item: it}, text: text}
}

func unreadCondition(ctx context.Context, s *command.Scope) *condition {
	return &condition{unmet: "no mail", watched: []wire.Address{s.Me.Address()}, look: func(entry) (*match, error) {
		unread, err := s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil || len(unread.Items) == 0 {
			return nil, err
		}
		return matchOf(s, "mail", unread.Items[0]), nil
	}}
}

// replyCondition is met when from, or anybody if that is zero, has answered a message of mine.
func replyCondition(ctx context.Context, s *command.Scope, m *wire.Message, from wire.Address) *condition {
	cond := sentCondition(s, "reply", m, func(*condition) *match {
		replies := teams.Replies(ctx, s.Me, m.ID, from)
		if len(replies) == 0 {
			return nil
		}
		return matchOf(s, "reply", replies[0])
	})
	if from != (wire.Address{}) {
		cond.unmet, cond.agents = "no answer from "+s.Renderer().Who(from), []wire.Address{from}
	}
	return cond
}

// ackCondition is met when every recipient of a message of mine has acknowledged it.
func ackCondition(ctx context.Context, s *command.Scope, m *wire.Message) *condition {
	cond := sentCondition(s, "acked", m, func(cond *condition) *match {
		last, missing := ackedBy(ctx, s, m)
		if len(missing) > 0 {
			cond.agents, cond.unmet = missing, "no ack from "+who(s.Renderer(), missing)
			return nil
		}
		if last == nil { // all of them acknowledged without a message
			return &match{Matched: "acked", Agent: s.Me.Agent(), text: m.ID.Short(6)}
		}
		return matchOf(s, "acked", last)
	})
	for _, a := range m.To { // in a shared inbox the holder's reply is the ack, once the message is done
		if box, err := s.Root.Mailbox(a); err == nil {
			if shared, _ := box.Shared(); shared {
				cond.watched = append(cond.watched, a)
			}
		}
	}
	return cond
}

// ackedBy returns the last ack of a message of mine, or answer to it, and the recipients that have not acknowledged it.
func ackedBy(ctx context.Context, s *command.Scope, m *wire.Message) (last *mailbox.Item, missing []wire.Address) {
	for _, a := range m.To {
		if ack, err := teams.AckOf(s.Me, m.ID, a); err == nil {
			last = ack
		} else if stateAt(copyAt(s, m, a)) == "acked" {
			continue // only an ack or an answer moves such a message to done
		} else if replies := teams.Replies(ctx, s.Me, m.ID, a); len(replies) > 0 {
			last = replies[0]
		} else {
			missing = append(missing, a)
		}
	}
	return last, missing
}

// sentCondition calls find at first and after each new message and event. Only the tick notices that mine was withdrawn
// or that everybody who could answer is retired.
func sentCondition(s *command.Scope, kind string, m *wire.Message, find func(*condition) *match) *condition {
	short, me := m.ID.Short(6), []wire.Address{s.Me.Address()}
	cond := &condition{flag: " --" + kind + " " + short, unmet: "no answer", agents: m.To, watched: me}
	isKept := func(a wire.Address) bool { return copyAt(s, m, a).State != mailbox.Withdrawn }
	cond.look = func(e entry) (*match, error) {
		if cond.match == nil && e.Err == nil {
			cond.match = find(cond)
		}
		if cond.match == nil && !slices.ContainsFunc(cond.agents, isKept) {
			return nil, withdrawnError(short)
		}
		var gone error
		isMember := func(a wire.Address) bool {
			_, gone = s.Root.Mailbox(a)
			return !errors.Is(gone, mailbox.ErrNoAgent)
		}
		if cond.match == nil && !slices.ContainsFunc(cond.agents, isMember) {
			return nil, gone
		}
		return cond.match, nil
	}
	return cond
}

// stateCondition is met when an agent has a state or its turn is over.
func stateCondition(s *command.Scope, kind, word string) ([]*condition, error) {
	a, err := s.Address(word)
	if err != nil {
		return nil, err
	}
	team, err := s.Root.Team(a.Team)
	if err != nil {
		return nil, err
	}
	agents := []wire.Address{a}
	unmet := cmp.Or(map[string]string{"exit": "not off", "turn-done": "turn not over"}[kind], "not "+kind)
	cond := &condition{flag: " --" + kind + " " + s.Renderer().Who(a), unmet: unmet, agents: agents, watched: agents}
	var state *reducer.State
	cond.look = func(e entry) (*match, error) {
		var now teams.Member
		var err error
		switch {
		case a.Host != "":
			now, err = team.Remote(a.Agent, a.Host)
		case state == nil:
			state, err = team.State(a.Agent)
		case isEventOf(e, a, state.Seq): // after each event, so that no short state is missed
			state.Apply(reducer.Input{Now: time.Now(), Event: e.Event})
		}
		if err == nil && a.Host == "" {
			now, err = team.SummaryOf(a.Agent, state)
		}
		if err != nil || !hasState(now, kind) {
			return nil, err
		}
		text := command.JoinFilled(", ", string(now.Name)+" is "+string(now.State), now.StateDetail())
		return &match{Matched: kind, Agent: now.Name, text: text}, nil
	}
	return []*condition{cond}, nil
}

func isEventOf(e entry, a wire.Address, after uint64) bool {
	return e.Event != nil && e.Box.Address() == a && e.Event.Seq > after
}

func hasState(m teams.Member, state string) bool {
	switch state {
	case "exit":
		hasNeverRun := m.Host == "" && m.State == reducer.WordUnknown && !m.Running && m.Session == ""
		isGivenUp := m.State == reducer.WordError && m.Presence == reducer.Offline
		return m.State == reducer.WordOff || isGivenUp || hasNeverRun
	case "blocked": // State may be that of another of its sessions
		return m.State == reducer.WordBlocked || m.WaitingOn != nil
	case "turn-done":
		return m.State == reducer.WordOff || m.State == reducer.WordIdle || m.TurnStatus == reducer.TurnTerminal
	}
	return string(m.State) == state
}

// turnCondition is met when every recipient has finished the turn into which it was handed a message.
func turnCondition(ctx context.Context, s *command.Scope, word string) ([]*condition, error) {
	it, _, err := s.Find(word)
	if err != nil {
		return nil, err
	}
	short, turns := it.ID.Short(6), turnsOfMessage{s: s, message: it.Message, seen: map[wire.Address]*teams.Turns{}}
	cond := &condition{flag: " --turn-done " + short, unmet: "turn not over", agents: it.To, watched: it.To}
	cond.look = func(e entry) (*match, error) {
		var ends []string
		for _, a := range it.To {
			end, err := turns.end(ctx, a, e)
			if err != nil {
				return nil, err
			}
			if end != "" {
				ends = append(ends, end)
			}
		}
		if len(ends) < len(it.To) {
			return nil, nil
		}
		slices.Sort(ends)
		met := &match{Matched: "turn-done", text: short + " (" + strings.Join(ends, ", ") + ")"}
		if len(it.To) == 1 {
			met.Agent = it.To[0].Agent
		}
		return met, nil
	}
	return []*condition{cond}, nil
}

// turnsOfMessage follows the turns into which the recipients of a message are handed it.
type turnsOfMessage struct {
	s       *command.Scope
	message *wire.Message
	seen    map[wire.Address]*teams.Turns
}

// end says how a recipient's turn ended; "": it has not.
func (t *turnsOfMessage) end(ctx context.Context, a wire.Address, e entry) (string, error) {
	if a.Host != "" {
		if trace := t.s.Root.Trace(ctx, t.message, a); trace.Reached("turn_done") {
			return t.s.Renderer().Who(a) + ": over", nil
		}
		return "", nil
	}
	team, err := t.s.Root.Team(a.Team)
	if err == nil && t.seen[a] == nil {
		t.seen[a], err = team.Turns(a.Agent, t.message.SentAt.Add(-24*time.Hour))
	} else if err == nil && isEventOf(e, a, t.seen[a].Seq()) {
		t.seen[a].Apply(e.Event)
	}
	if err != nil {
		return "", err
	}
	d := t.seen[a].Delivery(t.message.ID)
	mayBeWithdrawn := !d.Read.Exists() && e.Event == nil
	switch {
	case d.Turn.HasEnded():
		return string(a.Agent) + ": " + d.Turn.Status, nil
	case team.LostRunner(a.Agent, d):
		return string(a.Agent) + ": off (runner gone)", nil
	case mayBeWithdrawn && copyAt(t.s, t.message, a).State == mailbox.Withdrawn:
		return "", withdrawnError(t.message.ID.Short(6))
	}
	return "", nil
}

func describe(m teams.Member) string {
	text := string(m.Name) + " is " + string(m.State)
	if m.Since != nil {
		text = string(m.Name) + " has been " + string(m.State) + " for " + letter.Span(time.Since(*m.Since))
	}
	if m.Detail != "" {
		text += " (" + letter.Escape(m.Detail) + ")"
	}
	if m.Host != "" {
		text += ", " + m.EvidenceAge(time.Now())
	}
	return text
}

func who(r *letter.Renderer, all []wire.Address) string {
	var names []string
	for _, a := range all {
		names = append(names, r.Who(a))
	}
	return strings.Join(names, ", ")
}
