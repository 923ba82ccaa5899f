package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// A Condition is something to wait for: mail, how far a message of mine has come, or the state of an agent. It is for one
// Wait.
type Condition struct {
	Kind string // "mail", or as the flags of atm wait say it: reply, acked, read, idle, finished, busy, turn-done, …

	// EndsWithTurn is for a reply: the end of the agents' turns without one ends the wait. Else that is only said, since a
	// later reply may come.
	EndsWithTurn bool

	about string // what to name behind the flag to wait for it again: 9f3a1c, bob

	// watched are the agents whose mailboxes show that it may be met. Members of other hosts are looked at with each tick.
	watched []wire.Address
	// events are the kinds of events that may change it; nil: none, but for those of the state of an agent.
	events []string

	look func(context.Context, watcher.Entry) finding

	sent     *wire.Message                             // the message that is answered, or comes so far; nil: it is about none
	needsAll bool                                      // all of its recipients must meet it, not one
	noReply  func(context.Context, wire.Address) error // why one of the agents will not reply; nil: not looked for
}

// A finding is what a look has shown.
type finding struct {
	met    *Match            // nil: it is not met
	unmet  string            // what a timeout says of that: "no answer"
	late   []wire.Address    // the agents that could still meet it
	off    []presence.Member // those of them that are off, after a tick
	inVain error             // why it cannot be met any more, after a tick; nil: it can
	err    error             // why nobody can tell
}

// A Match is the evidence that a condition is met.
type Match struct {
	Kind    string
	Agent   wire.Name        // "": several recipients
	Item    *wire.Item       // the mail, the reply or the last ack; nil: something else is the evidence
	Acks    []AckOutcome     // what each recipient's ack said of the work, if one did; of several in the message's order
	Member  *presence.Member // the agent in its state; nil: it is about a message
	Message wire.ID          // of mine that has come so far; "": it is about none
}

// An AckOutcome is what a recipient's ack said of the work.
type AckOutcome struct {
	To      string `json:"to"`
	Outcome string `json:"outcome"`
	Text    string `json:"text,omitempty"`
}

// IsID reports whether a word may be the id of a message.
func IsID(word string) bool {
	_, err := wire.ParseFragment(strings.TrimPrefix(word, "#"))
	return err == nil
}

// Conditions returns the conditions that a flag of atm wait and the words behind it mean. A state of a group is one for
// each member, and so is every reply for each recipient.
func (s *Scope) Conditions(kind, words string, everyReply bool) (out []*Condition, err error) {
	for word := range strings.SplitSeq(words, ",") {
		isAboutMessage := kind == "reply" || kind == "acked" || kind == "read"
		isGroup := false
		if !isAboutMessage {
			if _, isGroup, err = s.group(word); err != nil {
				return nil, err
			}
		}
		var some []*Condition
		switch {
		case isAboutMessage:
			some, err = s.aboutMine(kind, word, everyReply)
		case kind == "turn-done" && IsID(word) && !s.IsMember(word):
			var it *wire.Item
			if it, _, err = s.Find(word); err == nil {
				some = []*Condition{s.WhenReached(kind, it.Message)}
			}
		case isGroup:
			some, err = s.whenAllAre(kind, word)
		default:
			var a wire.Address
			some = make([]*Condition, 1)
			if a, err = s.Team.ParseAddress(word); err == nil {
				some[0], err = s.whenIs(kind, a)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// aboutMine returns the conditions about a message of mine.
func (s *Scope) aboutMine(kind, word string, everyReply bool) (out []*Condition, err error) {
	if !IsID(word) {
		return nil, failure.Usage("--%s needs the id of a message that you sent, not %q", kind, word).
			WithHint("`atm ls --sent` shows the ids; any new mail: `atm read --wait --from NAME`")
	}
	if _, err := s.MemberOrMe(""); err != nil {
		return nil, err
	}
	m, err := s.FindSent(word)
	switch {
	case err != nil:
		return nil, err
	case kind != "reply":
		return []*Condition{s.WhenReached(kind, m)}, nil
	case !everyReply || len(m.To) == 1:
		return []*Condition{s.WhenReplied(m, wire.Address{})}, nil
	}
	for _, a := range m.To {
		out = append(out, s.WhenReplied(m, a))
	}
	return out, nil
}

// WhenMail is met when there is unread mail for me.
func (s *Scope) WhenMail() *Condition {
	c := &Condition{Kind: "mail", watched: []wire.Address{s.Me.Address()}, events: []string{wire.EventUnread}}
	c.look = func(ctx context.Context, _ watcher.Entry) finding {
		unread, err := inbox.Peek(ctx, s.Me, inbox.ReadOptions{Limit: 1})
		if err != nil || len(unread.Items) == 0 {
			return finding{unmet: "no mail", err: err}
		}
		return finding{met: &Match{Kind: c.Kind, Agent: s.Me.Agent(), Item: unread.Items[0]}}
	}
	return c
}

// WhenReplied is met when from, or anybody if that is zero, has answered a message of mine with a reply that counts, or acked it
// as done. Of the others, and of other acks, it warns.
func (s *Scope) WhenReplied(m *wire.Message, from wire.Address) *Condition {
	c := &Condition{Kind: "reply", about: m.ID.Short(6), sent: m, watched: []wire.Address{s.Me.Address()}}
	none := finding{unmet: "no answer", late: m.To}
	if from != (wire.Address{}) {
		none = finding{unmet: "no answer from " + s.Who(from), late: []wire.Address{from}}
	}
	isKnown, isTold := map[wire.ID]bool{}, map[wire.Address]bool{}
	answers := post.AnswersTo(context.Background(), s.Root, m)
	c.look = func(ctx context.Context, _ watcher.Entry) finding {
		answers = answers.Again(ctx, m)
		replies := answers.Replies(m, from)
		if len(replies.Counted) > 0 {
			return finding{met: &Match{Kind: c.Kind, Agent: s.Me.Agent(), Item: replies.Counted[0], Message: m.ID}}
		}
		for _, other := range replies.Others {
			if !isKnown[other.ID] {
				s.warnNoAnswer(other.Item, other.Reason)
			}
			isKnown[other.ID] = true
		}
		for _, a := range none.late {
			ack := answers.At(m, a).Ack()
			if ack == nil {
				continue
			}
			if ack.Outcome() == "done" {
				return finding{met: &Match{Kind: c.Kind, Agent: s.Me.Agent(), Item: ack, Message: m.ID, Acks: []AckOutcome{{a.String(), "done", ack.Body}}}}
			}
			if !isKnown[ack.ID] && ack.Outcome() == "" {
				s.Given.Warn("%s", post.SaidOf(m, ack))
			}
			isKnown[ack.ID] = true
		}
		return none
	}
	c.noReply = func(ctx context.Context, a wire.Address) error {
		if err := post.CheckDeclined(m, answers.At(m, a).Ack()); err != nil {
			return err
		}
		if isTold[a] || !answers.Trace(m, a).IsTurnOver() { // as Ask sees it: then it has said its answer there
			return nil
		}
		where, ended := "atm history "+string(a.Agent), fmt.Sprintf("the turn of %s ended without a reply", s.Who(a))
		if a.Host != "" {
			where = "atm trace " + m.ID.Short(6)
		}
		if c.EndsWithTurn {
			return failure.Timeout("%s", ended).WithHint("%s shows what it said; wait on: `atm wait%s`", where, c.flag())
		}
		isTold[a] = true
		s.Given.Warn("%s: %s", ended, where)
		return nil
	}
	return c
}

// WhenReached is met when every recipient of a message has read it, has acknowledged it (acked, of a message of mine), or
// has finished the turn into which it was handed (turn-done).
func (s *Scope) WhenReached(kind string, m *wire.Message) *Condition {
	c := &Condition{Kind: kind, about: m.ID.Short(6), sent: m, needsAll: true, watched: m.To}
	if kind == "acked" {
		c.watched = []wire.Address{s.Me.Address()}
	}
	c.events = []string{
		wire.TurnCompleted, wire.TurnIdle, wire.Exited, wire.EventStage, wire.EventRead, wire.EventInjected, wire.EventAcked,
	}
	answers := post.AnswersTo(context.Background(), s.Root, m)
	c.look = func(ctx context.Context, _ watcher.Entry) finding {
		answers = answers.Again(ctx, m)
		late := slices.DeleteFunc(slices.Clone(m.To), func(a wire.Address) bool {
			p := answers.Trace(m, a)
			if kind == "turn-done" {
				return p.IsTurnOver()
			}
			return p.Reached(kind)
		})
		if len(late) == 0 {
			return finding{met: s.reached(ctx, kind, m)}
		}
		names := make([]string, len(late))
		for i, a := range late {
			names[i] = s.Who(a)
		}
		by := strings.Join(names, ", ")
		unmet := map[string]string{"acked": "no ack from " + by, "read": "not read by " + by, "turn-done": "turn not over"}[kind]
		return finding{unmet: unmet, late: late}
	}
	return c
}

// reached returns the match of a message that has come so far: of an ack, that or the reply that counts as one.
func (s *Scope) reached(ctx context.Context, kind string, m *wire.Message) *Match {
	met := &Match{Kind: kind, Message: m.ID}
	if len(m.To) == 1 {
		met.Agent = m.To[0].Agent
	}
	answers := post.AnswersTo(ctx, s.Root, m)
	for _, a := range m.To {
		if kind != "acked" {
			break
		}
		if ack := answers.At(m, a).Ack(); ack != nil {
			met.Agent, met.Item = s.Me.Agent(), ack
			if outcome := ack.Outcome(); outcome != "" {
				met.Acks = append(met.Acks, AckOutcome{a.String(), outcome, ack.Body})
			}
		} else if replies := answers.Replies(m, a).Counted; len(replies) > 0 {
			met.Agent, met.Item = s.Me.Agent(), replies[0]
		}
	}
	return met
}

// whenIs is met when an agent has a state: idle, finished, busy, blocked, turn-done or exit.
func (s *Scope) whenIs(kind string, a wire.Address) (*Condition, error) {
	team, err := s.Root.TeamOf(a)
	if err != nil {
		return nil, err
	}
	name, isRemote := a.Agent, s.Root.IsRemote(a)
	if isRemote {
		name = team.NameOf(a)
	}
	agents := []wire.Address{a}
	c := &Condition{Kind: kind, about: s.Who(a), watched: agents}
	unmet := cmp.Or(map[string]string{"exit": "not off", "turn-done": "turn not over"}[kind], "not "+kind)
	var state *reducer.State
	c.look = func(ctx context.Context, e watcher.Entry) finding {
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		var err error
		if state == nil && !isRemote {
			state, err = team.State(a.Agent)
		} else if e.Event != nil && state != nil && e.Event.Seq > state.Seq {
			state.Apply(e.Event) // each one, so that no short state is missed
		}
		var now presence.Member
		if err == nil {
			now = presence.Look(ctx, team, presence.Query{State: state}, name)[0]
			now.Name, err = team.NameOf(a), now.Err
		}
		if err == nil && hasState(now, kind) {
			return finding{met: &Match{Kind: kind, Agent: now.Name, Member: &now}}
		}
		f := finding{unmet: unmet, late: agents, err: err}
		if now.State == reducer.WordOff {
			f.off = []presence.Member{now}
		}
		return f
	}
	return c, nil
}

// whenAllAre returns whenIs for each agent of a group but me; all are those of this machine.
func (s *Scope) whenAllAre(kind, group string) (out []*Condition, err error) {
	members, _, err := s.group(group)
	if err != nil {
		return nil, err
	}
	for _, a := range members {
		isElsewhere := a.Host != "" && strings.TrimPrefix(group, "@") == "all"
		if post.IsPerson(s.Root, a) || isElsewhere {
			continue
		}
		c, err := s.whenIs(kind, a)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		err = failure.Usage("there is no other agent in %s", group).WithHint("`atm team add NAME`")
	}
	return out, err
}

func hasState(m presence.Member, kind string) bool {
	switch kind {
	case "exit":
		hasNeverRun := m.Host == "" && m.State == reducer.WordUnknown && !m.Running && m.Session == ""
		isGivenUp := m.State == reducer.WordError && m.Presence == reducer.Offline
		return m.State == reducer.WordOff || isGivenUp || hasNeverRun
	case "blocked": // State may be that of another of its sessions
		return m.State == reducer.WordBlocked || m.WaitingOn != nil
	case "turn-done":
		return m.State == reducer.WordOff || m.State == reducer.WordIdle || m.TurnStatus == reducer.TurnTerminal
	case "finished":
		return m.State == reducer.WordIdle && (m.LastTurn == nil || m.LastTurn.Background == 0)
	}
	return string(m.State) == kind
}

// flag is how to wait for the condition again: " --reply 9f3a1c".
func (c *Condition) flag() string {
	if c.about == "" {
		return ""
	}
	return " --" + c.Kind + " " + c.about
}

// mayChange reports whether what is new in a mailbox may change the condition.
func (c *Condition) mayChange(e watcher.Entry) bool {
	isAboutMessage := c.sent != nil || c.Kind == "mail"
	if e.Event != nil && isAboutMessage && !slices.Contains(c.events, e.Event.Kind) {
		return false
	}
	return slices.Contains(c.watched, e.Address)
}

// examine looks after an entry; after a tick also for what no entry reports.
func (c *Condition) examine(ctx context.Context, s *Scope, e watcher.Entry, isTick bool) finding {
	f := c.look(ctx, e)
	if errors.Is(f.err, mailbox.ErrNoMailbox) {
		f.inVain, f.err = cmp.Or(c.impossible(ctx, s, nil), f.err), nil
		return f
	}
	if f.err != nil || f.met != nil || !isTick {
		return f
	}
	if why := c.impossible(ctx, s, f.late); why != nil {
		if f = c.look(ctx, watcher.Entry{}); f.met == nil { // it may have been met just before
			f.inVain = why
		}
		return f
	}
	if c.sent == nil { // it is about a state, which the look itself has seen
		return f
	}
	for _, a := range f.late {
		if now, err := s.summary(ctx, a); err == nil && now.State == reducer.WordOff {
			f.off = append(f.off, now)
		}
	}
	return f
}

// askWithin is how long a look asks a runner, so that one that hangs holds up little else.
const askWithin = 200 * time.Millisecond

// summary returns a member as far as it is known at once.
func (s *Scope) summary(ctx context.Context, a wire.Address) (presence.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m := presence.At(ctx, s.Root, a)[a]
	return m, m.Err
}

// impossible says why the condition cannot be met any more: an agent whose mailbox shows it is retired, the message was
// withdrawn, its recipient retired, or its turn is over.
func (c *Condition) impossible(ctx context.Context, s *Scope, late []wire.Address) (why error) {
	for _, a := range c.watched {
		if why := s.retired(a); why != nil {
			return why
		}
	}
	if c.sent == nil {
		return nil
	}
	for _, a := range late {
		var gone error
		if post.AnswersTo(ctx, s.Root, c.sent).At(c.sent, a).State == wire.Withdrawn {
			gone = withdrawnError(c.sent.ID)
		} else if gone = s.retired(a); gone == nil && c.noReply != nil {
			gone = c.noReply(ctx, a)
		}
		if gone == nil && !c.needsAll {
			return nil
		} else if gone != nil && c.needsAll {
			return gone
		}
		why = gone
	}
	return why
}

// retired is the error about a member of this machine that is not there any more; nil: it is there.
func (s *Scope) retired(a wire.Address) error {
	if s.Root.IsRemote(a) {
		return nil
	}
	if _, err := s.Root.Mailbox(a); errors.Is(err, mailbox.ErrNoMailbox) {
		return err
	}
	return nil
}

// withdrawnError says that a message was withdrawn.
func withdrawnError(id wire.ID) error {
	return failure.Refused("message %s %w", id.Short(6), maildir.ErrWithdrawn).WithHint("`atm show %s` still shows it", id.Short(6))
}
