package app

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// An Outcome says what became of a message at each of its recipients. As JSON it is what send, reply, ack and withdraw
// print.
type Outcome struct {
	ID        wire.ID     `json:"id,omitempty"`
	Short     string      `json:"short,omitempty"` // of ID
	Delivered []Delivered `json:"delivered"`
	Failed    []Failed    `json:"failed"`

	Reply json.Marshaler `json:"reply,omitempty"` // for whoever waits for it
	Acked []*Outcome     `json:"acked,omitempty"` // each of several acks; ID is then the first's

	Warnings []failure.Hint `json:"-"`

	team wire.Name // whose members need no team behind their names
	look func(wire.Address) presence.Member
}

// Delivered is a recipient that has the message.
type Delivered struct {
	To       string       `json:"to"`
	Running  bool         `json:"running"`
	State    string       `json:"state"`
	Inject   string       `json:"inject,omitempty"`      // how its runner hands over mail
	When     outlook.When `json:"when,omitempty"`        // it will probably be seen
	By       string       `json:"by,omitempty"`          // the way to its program that its person started: inbox socket, plugin, …
	IsIn     bool         `json:"handed_over,omitempty"` // and that was given it
	IsUnsure bool         `json:"unconfirmed,omitempty"` // but may not have taken it
	Outcome  string       `json:"outcome,omitempty"`     // what its ack said of the work, for whoever waits for it
	Text     string       `json:"text,omitempty"`        // of that ack

	Note string `json:"-"` // when the recipient will probably see it, or what it did
}

// Failed is a recipient that does not have the message, as far as is known.
type Failed struct {
	To string `json:"to"`
	*failure.Error
}

// NewOutcome is the outcome of a message that nobody has yet.
func (s *Scope) NewOutcome(id wire.ID) *Outcome {
	return &Outcome{ID: id, Short: id.Short(6), Delivered: []Delivered{}, Failed: []Failed{}, team: s.Team.Name, look: lookOnce(s.Root, map[wire.Address]presence.Member{})}
}

// lookOnce returns a function that looks at a member at its first call, unless that is known. What it cannot read has no
// State.
func lookOnce(r *teamdir.Root, known map[wire.Address]presence.Member) func(wire.Address) presence.Member {
	return func(a wire.Address) presence.Member {
		m, isKnown := known[a]
		if !isKnown {
			m = presence.At(context.Background(), r, a)[a]
			known[a] = m
		}
		return m
	}
}

func (o *Outcome) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, failure.Say(format, args...))
}

// addDelivered adds a recipient that has the message, and returns it, and when it will see it. A note takes the place of that.
func (o *Outcome) addDelivered(s *Scope, to post.Recipient, m *wire.Message, note string) (presence.Member, outlook.Outlook) {
	member, seen := o.look(to.Address), outlook.Outlook{Text: note}
	if note == "" {
		seen = outlook.Sent(s.Root, &member, to, m)
	}
	o.Delivered = append(o.Delivered, Delivered{
		To: to.Address.String(), Running: member.Running, State: cmp.Or(string(member.State), "unknown"), Inject: member.Inject,
		When: seen.When, By: to.Push.By, IsIn: to.Push.IsIn, IsUnsure: to.Push.IsUnsure, Note: seen.Text,
	})
	return member, seen
}

func (o *Outcome) addFailed(s *Scope, to wire.Address, err error) {
	o.Failed = append(o.Failed, Failed{to.String(), s.Given.Explain(err)})
}

// addRetry says how to go on where a message is stored at some of its recipients, maybe at this one.
func (f *Failed) addRetry(s *Scope, isOnce bool, to post.Recipient) {
	again := failure.Say("send it again to %s alone", s.Who(to.Address))
	switch {
	case isOnce:
		again = "retry with the same command: it stays one message"
	case to.IsStored:
		return // its own hint forbids to send it again
	}
	if f.Hint != "" && !to.IsStored {
		again = f.Hint + "; " + again
	}
	f.Hint = again
}

// addKnown adds a recipient that has a message with this id from an earlier call.
func (o *Outcome) addKnown(s *Scope, to post.Recipient, m *wire.Message) {
	o.addDelivered(s, to, m, s.alreadySent(to, m))
}

// alreadySent says of a message that was sent again what its recipient has done with it.
func (s *Scope) alreadySent(to post.Recipient, m *wire.Message) string {
	return "already sent: " + post.AnswersTo(context.Background(), s.Root, m).At(m, to.Address).Word()
}

// Err is the error for the recipients that do not have the message; nil if all have it. did says what was not done:
// "sent to".
func (o *Outcome) Err(did string) error {
	if len(o.Failed) == 0 {
		return nil
	}
	e := *o.Failed[0].Error
	if len(o.Delivered)+len(o.Failed) == 1 {
		return &e
	}
	var not []string
	for _, f := range o.Failed {
		not = append(not, "not "+did+" "+f.To+": "+f.Message)
	}
	if e.Message = strings.Join(not, "; "); len(o.Delivered) > 0 {
		e.Code, e.Exit = "partial", failure.ExitPartial
	}
	e.Done = o
	return &e
}

// Text lists the recipients that have the message, with what several in a row have in common said once; "": nobody has
// it.
func (o *Outcome) Text(did string) string {
	var to []string
	for i, d := range o.Delivered {
		who := o.Called(d.To)
		if i+1 == len(o.Delivered) || o.Delivered[i+1].Note != d.Note {
			who += " (" + d.Note + ")"
		}
		to = append(to, who)
	}
	if len(to) == 0 {
		return ""
	}
	verb, preposition, _ := strings.Cut(did, " ")
	return verb + " " + o.Short + " " + preposition + " " + strings.Join(to, ", ")
}

// Called shows a recipient as people of this team write it.
func (o *Outcome) Called(to string) string { return (&letter.Renderer{Team: o.team}).Called(to) }
