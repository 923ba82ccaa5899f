package mail

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// A result says what happened to a message at each recipient: send, reply, ack and withdraw print one.
type result struct {
	ID        wire.ID     `json:"id,omitempty"`
	Delivered []delivered `json:"delivered"`
	Failed    []failed    `json:"failed"`
	Reply     *message    `json:"reply,omitempty"`

	Error *failure.Error `json:"error,omitempty"` // if some recipients have the message, and others do not
}

type delivered struct {
	To      string `json:"to"`
	Running bool   `json:"running"`
	State   string `json:"state"`
	Differs bool   `json:"differs,omitempty"` // an earlier call sent it with another text

	note string // when the recipient will probably see it
}

type failed struct {
	To string `json:"to"`
	*failure.Error
}

func newResult(id wire.ID) *result {
	return &result{ID: id, Delivered: []delivered{}, Failed: []failed{}}
}

// addDelivered adds a recipient that has the message. Without a note it gets the forecast when it will be seen.
func (r *result) addDelivered(s *command.Scope, box *mailbox.Box, sent *wire.Message, note string) *delivered {
	a := box.Address()
	m, forecast := s.Root.Forecast(a, sent)
	r.Delivered = append(r.Delivered, delivered{To: a.String(), Running: m.Running, State: cmp.Or(string(m.State), "unknown"), note: cmp.Or(note, forecast)})
	return &r.Delivered[len(r.Delivered)-1]
}

// addKnown adds a recipient that has the message from an earlier call. With another text nothing answers this one.
func (r *result) addKnown(c *cli.Context, s *command.Scope, box *mailbox.Box, m *wire.Message) {
	note, differs := "before", false
	it, err := box.Get(m.ID)
	if err == nil {
		note, differs = "before: "+stateAt(it), it.Body != m.Body
	}
	short := m.ID.Short(6)
	if differs && isAwaited(c) {
		r.addFailed(c, box.Address(), failure.Refused("%s was already sent with another text", short).
			WithHint("use another --once NAME or --id; atm wait --reply %s waits for an answer to the earlier text", short))
		return
	}
	if differs {
		command.Warn(c, "%s was already sent to %s with another text; this text was not sent", short, box.Agent())
	}
	d := r.addDelivered(s, box, m, note)
	d.Differs = differs
	if err == nil && it.State == mailbox.Withdrawn {
		d.State = string(mailbox.Withdrawn)
	}
}

func (r *result) addFailed(c *cli.Context, to wire.Address, err error) *failed {
	r.Failed = append(r.Failed, failed{to.String(), command.Explain(c, err)})
	return &r.Failed[len(r.Failed)-1]
}

// report prints the recipients that have the message ("sent", "to"), unless --json waits for the answer, and returns an
// error for the others.
func (r *result) report(c *cli.Context, s *command.Scope, verb, preposition string) error {
	not, isJSON, isPartial := "not "+verb+" "+preposition, c.Bool("json"), len(r.Delivered) > 0 && len(r.Failed) > 0
	if isPartial {
		r.Error = r.partly(not)
	}
	if len(r.Delivered) > 0 && !(isJSON && isAwaited(c)) {
		did := verb + " " + r.ID.Short(6)
		if err := command.PrintAs(c, r, did+" "+preposition+" "+r.recipients(s)); err != nil {
			return fmt.Errorf("%s, but the result could not be printed: %w", did, err) // it must not be sent again
		}
	}
	if len(r.Failed) == 0 {
		return nil
	}
	first := *r.Failed[0].Error
	switch {
	case isPartial:
		first.Exit = r.Error.Exit
	case len(r.Failed) == 1:
		return &first
	case isJSON:
		first.Message, first.Done = not+" anybody: "+first.Message, r
		return &first
	}
	if !isJSON || command.CallingProgram(c) != "" {
		for _, f := range r.Failed {
			(&failure.Error{Message: not + " " + f.To + ": " + f.Message, Hint: f.Hint}).Print()
		}
	}
	return failure.Exit(first.Exit)
}

// partly is the error of a message that only some recipients have.
func (r *result) partly(not string) *failure.Error {
	e := *r.Failed[0].Error
	var to []string
	for _, f := range r.Failed {
		to = append(to, f.To)
	}
	e.Code, e.Exit, e.Message = "partial", failure.ExitPartial, not+" "+strings.Join(to, ", ")
	return &e
}

// recipients lists those that have the message, with what several in a row have in common said once.
func (r *result) recipients(s *command.Scope) string {
	var to []string
	for i, d := range r.Delivered {
		who := s.Renderer().Called(d.To)
		if i+1 == len(r.Delivered) || r.Delivered[i+1].note != d.note {
			who += " (" + d.note + ")"
		}
		to = append(to, who)
	}
	return strings.Join(to, ", ")
}
