package app

import (
	"context"
	"time"

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

	wasSo bool // before this call
}

// SendLater is Send for a message that is delivered when it is due.
func (s *Scope) SendLater(ctx context.Context, m *Submission, at time.Time) (*Outcome, error) {
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

// addLater says when a message is due that was to be sent later, at this call or an earlier one.
func (o *Outcome) addLater(s *Scope, m *Submission, sent *post.Sent) {
	o.Later = &SentLater{At: sent.Later.At, State: sent.Later.State, wasSo: sent.WasLater}
	for _, to := range sent.To {
		o.Later.To = append(o.Later.To, to.Address.String())
	}
	if before, err := post.LaterMessage(s.Team, *sent.Later); err == nil && sent.WasLater && before.Body != m.Content.Body {
		o.warn("%s was to be sent before, with another text; this text was not sent", o.Short)
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
		return "sent later: " + about + ", " + letter.When(time.Now(), l.At) + " (already so)"
	default:
		return "sent later: " + about + ", " + letter.When(time.Now(), l.At)
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
