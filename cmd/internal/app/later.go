package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// SentLater says of a message of an Outcome that nobody has it yet, and when it is due.
type SentLater struct {
	At    time.Time     `json:"at"`
	To    []string      `json:"to"`
	State maildir.State `json:"state"` // later, withdrawn, undelivered

	wasSo bool   // before this call
	when  string // it goes out
}

// SendLater is Send for a message that is delivered when it is due, and what it is to be after is done. The zero time is
// now.
func (s *Scope) SendLater(ctx context.Context, m *Submission, at time.Time) (*Outcome, error) {
	isDone, err := s.setAfter(m)
	if err != nil {
		return nil, err
	}
	if at.IsZero() && isDone {
		return s.Send(ctx, m)
	} else if at.IsZero() {
		at = time.Now()
	}
	o, closeFiles, err := s.open(ctx, m, s.Given.isPerson(), s.Origin())
	defer closeFiles()
	if err != nil {
		return nil, err
	}
	sent, err := post.SendLater(ctx, s.Root, o, at)
	if err != nil {
		return nil, err
	}
	out := s.outcomeOf(m, sent, lookOnce(s.Root, map[wire.Address]presence.Member{}))
	if s.Root.CheckAccepted(ctx) != nil {
		out.warn("nothing is sent later until this root is accepted: `atm init` shows what is there")
	}
	return out, nil
}

// setAfter finds the messages that one is to be sent after, and reports whether all are done.
func (s *Scope) setAfter(m *Submission) (isDone bool, err error) {
	var ids []wire.ID
	isDone = true
	for _, word := range m.After {
		it, _, err := s.Find(word)
		if err != nil {
			return false, err
		}
		id := it.ID.Short(6)
		need := post.NeedFor(s.Team, it.Message)
		switch {
		case it.From.Host != "" || it.From.Team != s.Team.Name:
			return false, failure.Refused("message %s is from %s, and its acks go there: only what a member of team %s sent can be waited for", id, it.From, s.Team.Name).
				WithHint("send a message of your own, and wait for that")
		case !post.IsReply(it.Message):
			return false, failure.Refused("message %s is of type %s, which nobody does", id, it.Kind()).WithHint("--after takes the id of the work: `atm ls --sent`")
		case need.Outcome == post.OutcomeWithdrawn:
			return false, failure.Refused("message %s was withdrawn, so it will never be done", id).WithHint("leave --after %s out", id)
		}
		isDone = isDone && need.Outcome == "done"
		if !slices.Contains(ids, it.ID) {
			ids = append(ids, it.ID)
		}
	}
	if len(ids) > maxAfter {
		return false, failure.Usage("--after: %d messages, and at most %d", len(ids), maxAfter).WithHint("wait for one that waits for the others")
	}
	if len(ids) > 0 {
		post.SetAfter(m.Content, ids)
	}
	return isDone, nil
}

// maxAfter is for how many messages one may wait.
const maxAfter = 100

// WhenSent says when a message goes out that nobody has yet: "today 14:00", "after 9f3a1c (taken), 8b2c1d (blocked)".
func (s *Scope) WhenSent(m *wire.Message) string {
	now := time.Now()
	when, words := letter.When(now, m.SentAt), []string{}
	needs, isDone, err := post.Needs(s.Team, m)
	if isDone || err != nil {
		return when
	}
	for _, n := range needs {
		words = append(words, n.ID.Short(6)+" ("+s.NeedState(n)+")")
	}
	after := "after " + Join(words)
	if m.SentAt.After(now) {
		return when + ", " + after
	}
	return after
}

// NeedState says in a word how far a message is that another one waits for.
func (s *Scope) NeedState(n post.Need) string {
	state := n.Outcome
	for i := 0; state == "" && i < len(n.To); i++ {
		if state = StateAt(s.CopyAt(n.Message, n.To[i])); n.Ack != nil {
			state = "acked"
		}
	}
	return cmp.Or(state, "not sent")
}

// addLater says when a message is due that was to be sent later, at this call or an earlier one.
func (o *Outcome) addLater(s *Scope, m *Submission, sent *post.Sent) {
	o.Later = &SentLater{At: sent.Later.At, State: sent.Later.State, wasSo: sent.WasLater}
	for _, to := range sent.To {
		o.Later.To = append(o.Later.To, to.Address.String())
	}
	o.Later.when = s.WhenSent(m.Content)
	if !sent.WasLater {
		return
	}
	o.Later.when = letter.When(time.Now(), sent.Later.At)
	if before, err := post.LaterMessage(s.Team, *sent.Later); err == nil {
		o.Later.when = s.WhenSent(before)
	}
}

// laterText says in a line when the message is due.
func (o *Outcome) laterText() string {
	var to []string
	for _, name := range o.Later.To {
		to = append(to, o.Called(name))
	}
	about := o.Short + " to " + Join(to)
	switch l := o.Later; {
	case l.State == maildir.Withdrawn:
		return about + " was withdrawn"
	case l.State == post.Undelivered:
		return about + " was not delivered: atm retry " + o.Short
	case l.wasSo:
		return "sent later: " + about + ", " + l.when + " (already so)"
	default:
		return "sent later: " + about + ", " + l.when
	}
}

// DeliverLater delivers what members of the team wanted to be sent later and is due, and notices that a runner was killed.
// What cannot be delivered is shown by ls --sent and doctor: it is not what this command is about.
func (s *Scope) DeliverLater(ctx context.Context) {
	if s.Team != nil {
		notices.TellKilled(ctx, s.Team)
		post.DeliverLater(ctx, s.Team)
	}
}

// DeliverSome is DeliverLater for a hook, which an agent waits for.
func (s *Scope) DeliverSome(ctx context.Context) {
	if s.Team != nil {
		notices.TellKilled(ctx, s.Team)
		post.DeliverSome(ctx, s.Team)
	}
}
