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
	cond := &condition{unmet: "no mail", watched: []wire.Address{s.Me.Address()}}
	cond.look = func(entry) (*match, error) {
		unread, err := s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil || len(unread.Items) == 0 {
			return nil, err
		}
		return matchOf(s, "mail", unread.Items[0]), nil
	}
	return cond
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
	return sentCondition(s, "acked", m, func(cond *condition) *match {
		last, missing := s.Root.AckedBy(ctx, m, s.Me)
		if len(missing) > 0 {
			names := make([]string, len(missing))
			for i, a := range missing {
				names[i] = s.Renderer().Who(a)
			}
			cond.agents, cond.unmet = missing, "no ack from "+strings.Join(names, ", ")
			return nil
		}
		if last == nil { // all of them acknowledged without a message
			return &match{Matched: "acked", Agent: s.Me.Agent(), text: m.ID.Short(6)}
		}
		return matchOf(s, "acked", last)
	})
}

// sentCondition calls find at first and after each new message and event. Only the tick notices that mine was withdrawn.
func sentCondition(s *command.Scope, kind string, m *wire.Message, find func(*condition) *match) *condition {
	short, sent := m.ID.Short(6), message{Item: &mailbox.Item{Message: m}}
	cond := &condition{flag: " --" + kind + " " + short, unmet: "no answer", agents: m.To}
	cond.watched = []wire.Address{s.Me.Address()}
	isKept := func(a wire.Address) bool { return sent.copyAt(s, a).State != mailbox.Withdrawn }
	cond.look = func(e entry) (*match, error) {
		if cond.match == nil && e.Err == nil {
			cond.match = find(cond)
		}
		if cond.match == nil && !slices.ContainsFunc(cond.agents, isKept) {
			return nil, withdrawnError(short)
		}
		return cond.match, nil
	}
	return cond
}

// stateCondition is met when an agent has a state or its turn is over. Looking after each event, it misses none.
func stateCondition(s *command.Scope, kind, word string) ([]*condition, error) {
	a, err := s.Address(word)
	if err != nil {
		return nil, err
	}
	team, err := s.Root.Team(a.Team)
	if err != nil {
		return nil, err
	}
	cond := &condition{flag: " --" + kind + " " + s.Renderer().Who(a), unmet: "not " + kind, agents: []wire.Address{a}}
	cond.watched = cond.agents
	var state *reducer.State
	summaryAfter := func(e entry) (m teams.Member, err error) {
		if a.Host != "" {
			return team.Remote(a.Agent, a.Host)
		}
		if state == nil {
			state, err = team.State(a.Agent)
		} else if e.Event != nil && e.Box.Address() == a && e.Event.Seq > state.Seq {
			state.Apply(reducer.Input{Now: time.Now(), Event: e.Event})
		}
		if err != nil {
			return m, err
		}
		return team.SummaryOf(a.Agent, state)
	}
	cond.look = func(e entry) (*match, error) {
		now, err := summaryAfter(e)
		if err != nil || !hasState(now, kind) {
			return nil, err
		}
		text := command.JoinFilled(", ", string(now.Name)+" is "+string(now.State), now.StateDetail())
		return &match{Matched: kind, Agent: now.Name, text: text}, nil
	}
	return []*condition{cond}, nil
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

// turnCondition is met when every recipient has finished the turn into which it was handed a message.
func turnCondition(ctx context.Context, s *command.Scope, word string) ([]*condition, error) {
	it, _, err := s.Find(word)
	if err != nil {
		return nil, err
	}
	turns, sent := map[wire.Address]*teams.Turns{}, message{Item: it}
	cond := &condition{flag: " --turn-done " + it.ID.Short(6), unmet: "turn not over", agents: it.To, watched: it.To}
	cond.look = func(e entry) (*match, error) {
		var ends []string
		for _, a := range it.To {
			if a.Host != "" {
				if trace := s.Root.Trace(ctx, it.Message, a); trace.Reached("turn_done") {
					ends = append(ends, s.Renderer().Who(a)+": over")
				}
				continue
			}
			team, err := s.Root.Team(a.Team)
			if err != nil {
				return nil, err
			}
			if turns[a] == nil {
				turns[a], err = team.Turns(a.Agent, it.SentAt.Add(-24*time.Hour))
			} else if e.Event != nil && e.Box.Address() == a && e.Event.Seq > turns[a].Seq() {
				turns[a].Apply(e.Event)
			}
			if err != nil {
				return nil, err
			}
			d := turns[a].Delivery(it.ID)
			if d.Turn.HasEnded() {
				ends = append(ends, string(a.Agent)+": "+d.Turn.Status)
			} else if team.LostRunner(a.Agent, d) {
				ends = append(ends, string(a.Agent)+": off (runner gone)")
			} else if !d.Read.Exists() && e.Event == nil && sent.copyAt(s, a).State == mailbox.Withdrawn {
				return nil, withdrawnError(it.ID.Short(6))
			}
		}
		if len(ends) < len(it.To) {
			return nil, nil
		}
		slices.Sort(ends)
		var agent wire.Name
		if len(it.To) == 1 {
			agent = it.To[0].Agent
		}
		return &match{Agent: agent, Matched: "turn-done", text: it.ID.Short(6) + " (" + strings.Join(ends, ", ") + ")"}, nil
	}
	return []*condition{cond}, nil
}
