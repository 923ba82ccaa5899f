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

// A condition is what is waited for.
type condition struct {
	flag    string                    // of atm wait, to wait for it again: " --reply 9f3a1c"
	vain    string                    // what is said when it is not met in time: "no answer"
	of      []wire.Address            // who is to meet it: which of them are off is said at once
	watched []wire.Address            // in whose mailboxes it shows
	look    func(entry) (*met, error) // whether it is met now that an entry has come; nil: not yet

	met   *met   // as it was looked at last
	state string // and how things were with the agent
}

// met is the evidence that a condition is met.
type met struct {
	Agent   wire.Name `json:"agent,omitempty"`
	Matched string    `json:"matched"`
	Message *message  `json:"message"`
	And     []*met    `json:"and,omitempty"` // what else was so

	text string
}

// An entry is something new in a mailbox. The first look gets the empty one; the tick has an Err alone.
type entry = watcher.Entry

func metBy(s *command.Scope, kind string, it *mailbox.Item) *met {
	text := s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return &met{Agent: s.Me.Agent(), Matched: kind, Message: &message{Item: it}, text: text}
}

func unreadCondition(ctx context.Context, s *command.Scope) *condition {
	one := &condition{vain: "no mail", watched: []wire.Address{s.Me.Address()}}
	one.look = func(entry) (*met, error) {
		unread, err := s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil || len(unread.Items) == 0 {
			return nil, err
		}
		return metBy(s, "mail", unread.Items[0]), nil
	}
	return one
}

// replyCondition: a recipient has answered a message of mine, or anybody has.
func replyCondition(ctx context.Context, s *command.Scope, m *wire.Message, from wire.Address) *condition {
	one := sentCondition(s, "reply", m, func(*condition) *met {
		replies := teams.Replies(ctx, s.Me, m.ID, from)
		if len(replies) == 0 {
			return nil
		}
		return metBy(s, "reply", replies[0])
	})
	if from != (wire.Address{}) {
		one.vain, one.of = "no answer from "+s.Renderer().Who(from), []wire.Address{from}
	}
	return one
}

// ackCondition: every recipient of a message of mine has acknowledged it.
func ackCondition(ctx context.Context, s *command.Scope, m *wire.Message) *condition {
	return sentCondition(s, "acked", m, func(one *condition) *met {
		last, missing := s.Root.AckedBy(ctx, m, s.Me)
		if len(missing) > 0 {
			names := make([]string, len(missing))
			for i, a := range missing {
				names[i] = s.Renderer().Who(a)
			}
			one.of, one.vain = missing, "no ack from "+strings.Join(names, ", ")
			return nil
		}
		if last == nil { // by those that cannot send an ack
			return &met{Matched: "acked", Agent: s.Me.Agent(), text: m.ID.Short(6)}
		}
		return metBy(s, "acked", last)
	})
}

// sentCondition is about a message of mine: find looks at first, and again whenever a message has come. Of a
// withdrawal only the tick tells.
func sentCondition(s *command.Scope, kind string, m *wire.Message, find func(*condition) *met) *condition {
	short, sent := m.ID.Short(6), message{Item: &mailbox.Item{Message: m}}
	one := &condition{flag: " --" + kind + " " + short, vain: "no answer", of: m.To}
	one.watched = []wire.Address{s.Me.Address()}
	isThere := func(a wire.Address) bool { return sent.copyAt(s, a).State != mailbox.Withdrawn }
	one.look = func(e entry) (*met, error) {
		if one.met == nil && e.Event == nil && e.Err == nil {
			one.met = find(one)
		}
		if one.met == nil && !slices.ContainsFunc(one.of, isThere) {
			return nil, command.Refused("message %s %w", short, mailbox.ErrWithdrawn).WithHint("atm show %s shows it again", short)
		}
		return one.met, nil
	}
	return one
}

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over. It is looked at after each of its
// events: no state is too short to be seen.
func stateCondition(s *command.Scope, kind, word string) ([]*condition, error) {
	a, err := s.Address(word)
	if err != nil {
		return nil, err
	}
	team, err := s.Root.Team(a.Team)
	if err != nil {
		return nil, err
	}
	one := &condition{flag: " --" + kind + " " + s.Renderer().Who(a), vain: "not " + kind, of: []wire.Address{a}}
	one.watched = one.of
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
	one.look = func(e entry) (*met, error) {
		now, err := summaryAfter(e)
		if err != nil || !isIn(now, kind) {
			one.state = ": " + describe(now)
			return nil, err
		}
		text := string(now.Name) + " is " + string(now.State) + strings.TrimSuffix(", "+now.About(), ", ")
		return &met{Matched: kind, Agent: now.Name, text: text}, nil
	}
	return []*condition{one}, nil
}

func isIn(m teams.Member, state string) bool {
	switch state {
	case "exit":
		hasNeverRun := m.Host == "" && m.State == reducer.WordUnknown && !m.Running && m.Started.IsZero() && m.Session == ""
		isGivenUp := m.State == reducer.WordError && m.Presence == reducer.Offline
		return m.State == reducer.WordOff || isGivenUp || hasNeverRun
	case "blocked": // another of its sessions may be shown
		return m.State == reducer.WordBlocked || m.WaitingOn != nil
	case "turn-done":
		return m.State == reducer.WordOff || m.State == reducer.WordIdle || m.TurnStatus == reducer.TurnTerminal
	}
	return string(m.State) == state
}

func describe(m teams.Member) string {
	text := string(m.Name) + " is " + string(m.State)
	if m.Since != nil {
		text += " since " + letter.Span(time.Since(*m.Since))
	}
	if m.Detail != "" {
		text += " (" + letter.Escape(m.Detail) + ")"
	}
	if m.Host != "" {
		text += ", " + m.Seen(time.Now())
	}
	return text
}

// turnCondition: the turns that a message was handed into are over, at every recipient.
func turnCondition(ctx context.Context, s *command.Scope, word string) ([]*condition, error) {
	it, _, err := s.Find(word)
	if err != nil {
		return nil, err
	}
	turns := map[wire.Address]*teams.Turns{}
	one := &condition{flag: " --turn-done " + it.ID.Short(6), vain: "turn not over", of: it.To, watched: it.To}
	one.look = func(e entry) (*met, error) {
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
			}
		}
		if len(ends) < len(it.To) {
			return nil, nil
		}
		slices.Sort(ends)
		return &met{Matched: "turn-done", text: it.ID.Short(6) + " (" + strings.Join(ends, ", ") + ")"}, nil
	}
	return []*condition{one}, nil
}
