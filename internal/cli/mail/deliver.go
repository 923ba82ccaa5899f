package mail

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// sent is the JSON of send, reply and ack.
type sent struct {
	ID        wire.ID          `json:"id,omitempty"`
	Delivered []delivered      `json:"delivered"`
	Failed    []failed         `json:"failed"`
	Reply     *command.Message `json:"reply,omitempty"`

	team wire.Name
}

// delivered is a recipient that a message reached.
type delivered struct {
	To      string `json:"to"`
	Running bool   `json:"running"`
	State   string `json:"state"`
	Known   bool   `json:"known,omitempty"`   // it was there before, and was not sent again
	Differs bool   `json:"differs,omitempty"` // and has another text

	when string // what is known of when it will be seen
}

// failed is a recipient that a message did not reach.
type failed struct {
	To      string `json:"to"`
	Code    string `json:"code"`
	Message string `json:"message"`

	err *command.Error
}

func newSent(id wire.ID) sent { return sent{ID: id, Delivered: []delivered{}, Failed: []failed{}} }

// String is the line that says what became of a message, "" where it reached nobody.
func (s sent) String() string {
	var to []string
	for _, d := range s.Delivered {
		to = append(to, strings.TrimSuffix(d.To, "@"+string(s.team))+" ("+d.when+")")
	}
	if len(to) == 0 {
		return ""
	}
	return "sent " + s.ID.Short(6) + " to " + strings.Join(to, ", ")
}

// deliver sends a message, says what became of it, and waits if that was asked for.
func deliver(c *cli.Context, s *command.Scope, o *teams.Outgoing) error {
	if err := mayAbort(s, o); err != nil {
		return err
	}
	if err := checkAttachments(c); err != nil {
		return err
	}
	if err := s.Root.Prepare(o); err != nil {
		return err
	}
	if len(o.Post.To) == 0 && len(o.Failed) == 1 {
		return o.Failed[0].Err
	}
	if err := attach(c, o); err != nil {
		return err
	}
	if c.IsSet("once") {
		if _, err := o.Once(c.String("once")); err != nil {
			return err
		}
	}
	if !c.Bool("wait-ack") && !c.Bool("wait-reply") {
		result, err := post(c.Context, c, s, o)
		if err != nil {
			return err
		}
		return finish(c, result)
	}
	return s.Await(func(ctx context.Context) error { return deliverAndWait(ctx, c, s, o) })
}

// mayAbort refuses a message that would end another agent, as an abort of its
// session does, to whom that agent may not be ended by a command.
func mayAbort(s *command.Scope, o *teams.Outgoing) error {
	input, ok := session.InputOf(o.Message)
	if !ok || input.Kind != "abort" {
		return nil
	}
	for _, to := range o.To {
		if err := s.MayAct("abort", to.Agent); err != nil {
			return err
		}
	}
	return nil
}

// post delivers a message and tells what became of it.
func post(ctx context.Context, c *cli.Context, s *command.Scope, o *teams.Outgoing) (sent, error) {
	mailbox.Deliver(ctx, o.Post)
	markAnswered(ctx, c, s, o)
	result := resultOf(ctx, c, s, o)
	if len(result.Delivered) == 0 && len(result.Failed) == 1 {
		return result, result.Failed[0].err
	}
	return result, nil
}

// markAnswered marks what a message answered, once it has reached its sender.
func markAnswered(ctx context.Context, c *cli.Context, s *command.Scope, o *teams.Outgoing) {
	reachedSender := o.Parent != nil && slices.ContainsFunc(o.Post.Outcomes, func(out mailbox.Outcome) bool {
		return out.Err == nil && out.Box.Address() == o.Parent.From
	})
	if !reachedSender {
		return
	}
	if err := teams.MarkAnswered(ctx, s.Me, o.Parent); err != nil {
		command.Warn(c, "sent; the message answered: %v", err)
	}
}

func resultOf(ctx context.Context, c *cli.Context, s *command.Scope, o *teams.Outgoing) sent {
	result := newSent(o.Message.ID)
	result.team = s.Team.Name
	for _, out := range o.Post.Outcomes {
		if out.Err != nil {
			result.fail(c, out.Box.Address(), out.Err)
			continue
		}
		d := reached(s, out.Box, o.Message.Urgent())
		if out.Known {
			knownBefore(ctx, c, s, out.Box, o.Message, &d)
		}
		result.Delivered = append(result.Delivered, d)
	}
	for _, f := range o.Failed {
		result.fail(c, f.To, f.Err)
	}
	return result
}

func (s *sent) fail(c *cli.Context, to wire.Address, err error) {
	e := command.Explain(c, err)
	s.Failed = append(s.Failed, failed{To: to.String(), Code: e.Code, Message: e.Message, err: e})
}

// reached is a recipient that a message reached, and what is known of it.
func reached(s *command.Scope, box *mailbox.Box, urgent bool) delivered {
	a := box.Address()
	d := delivered{To: a.String(), State: string(reducer.WordUnknown), when: "unknown"}
	t, err := s.Root.Team(a.Team)
	if err != nil {
		return d
	}
	m, err := t.Summary(a.Agent)
	if err != nil {
		return d
	}
	d.Running, d.State, d.when = m.Running, string(m.State), m.Forecast(time.Now(), urgent)
	return d
}

// knownBefore says what came of a message that was sent before under the same id
// or name.
func knownBefore(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, m *wire.Message, d *delivered) {
	d.Known = true
	it, err := box.Get(m.ID)
	if err == nil && it.Body != m.Body {
		d.Differs = true
		command.Warn(c, "%s was there before with another text, and stays as it is; another message needs another id or name", m.ID.Short(6))
	}
	switch {
	case len(teams.Replies(ctx, s.Me, m.ID, box.Address())) > 0:
		d.when = "before: answered"
	case err != nil:
		d.when = "before: no longer there"
	case it.State == mailbox.Unread:
		d.when = "before: unread; " + d.when
	case it.State == mailbox.Withdrawn:
		d.when = "before: withdrawn"
	default:
		d.when = "before: read"
	}
}

// finish prints the result of a send that waits for nothing more.
func finish(c *cli.Context, result sent) error {
	if c.Bool("json") || len(result.Delivered) > 0 {
		if err := command.Print(c, result); err != nil {
			return notSaid(result, err)
		}
	}
	return result.exit(c)
}

func notSaid(result sent, err error) error {
	return command.Failed("sent %s, but it could not be said: %w", result.ID.Short(6), err)
}

// exit names the recipients that a message did not reach, and is the exit code.
func (s sent) exit(c *cli.Context) error {
	if len(s.Failed) == 0 {
		return nil
	}
	for _, f := range s.Failed {
		if c.Bool("json") {
			break
		}
		command.Warn(c, "not sent to %s: %s", f.To, f.Message)
		if f.err.Hint != "" {
			command.Warn(c, "hint: %s", f.err.Hint)
		}
	}
	if len(s.Delivered) > 0 {
		return command.Exit(command.ExitPartial)
	}
	return command.Exit(s.Failed[0].err.Exit)
}

// deliverAndWait is deliver for --wait-ack and --wait-reply. Watching begins before
// the message is sent: no answer is missed.
func deliverAndWait(ctx context.Context, c *cli.Context, s *command.Scope, o *teams.Outgoing) error {
	reply := &replyCondition{s: s, id: o.Message.ID}
	var wanted []condition
	if c.Bool("wait-ack") {
		wanted = append(wanted, &ackCondition{s: s, m: o.Message})
	}
	if c.Bool("wait-reply") {
		wanted = append(wanted, reply)
	}
	w, err := newWaiter(ctx, wanted, true)
	if err != nil {
		return err
	}
	defer w.close()
	result, err := post(ctx, c, s, o)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(result.Delivered, func(d delivered) bool { return d.Differs }) {
		short := result.ID.Short(6)
		return command.Refused("%s was sent before with another text: what answers it answers that", short).
			WithHint("another --once NAME or --id for this one; atm wait --reply %s%s waits for that answer", short, s.Flags())
	}
	if len(result.Delivered) == 0 {
		return finish(c, result)
	}
	if !c.Bool("json") {
		if err := command.Print(c, result); err != nil {
			return notSaid(result, err)
		}
	}
	stop := s.WarnHindered(ctx, o.Post.To...)
	err = w.wait(ctx, command.Duration(c, "timeout"))
	stop()
	if err != nil {
		return unanswered(s, result, err)
	}
	if reply.found != nil {
		err = showReply(ctx, c, s, result, reply.found)
	} else if c.Bool("json") {
		err = command.Print(c, result)
	} else {
		err = showAcks(ctx, s, o.Message)
	}
	if err != nil {
		return err
	}
	return result.exit(c)
}

// unanswered says that the message was sent, and what did not come.
func unanswered(s *command.Scope, result sent, err error) error {
	var e *command.Error
	if !errors.As(err, &e) || e.Code != "timeout" {
		return err
	}
	e.Hint += s.Flags()
	e.Message = "sent " + result.ID.Short(6) + ", but " + e.Message
	e.Extra["id"], e.Extra["delivered"] = result.ID, result.Delivered
	return e
}

// showReply prints the answer, which is read with that.
func showReply(ctx context.Context, c *cli.Context, s *command.Scope, result sent, reply *mailbox.Item) error {
	r := s.Renderer()
	r.LimitToPage()
	text := r.Render(reply.Message, command.HeaderFlags([]*mailbox.Item{reply}, nil)[0])
	if c.Bool("json") {
		result.Reply = &command.Message{Item: reply}
		var err error
		if text, err = command.JSON(result); err != nil {
			return err
		}
	}
	_, err := s.Me.Read(ctx, mailbox.ReadOptions{IDs: []wire.ID{reply.ID}}, func(mailbox.Batch) (int, error) {
		return showPieces(ctx, [][]byte{text})
	})
	return err
}

// showAcks prints who acknowledged a message and with which words; the acks are
// read with that.
func showAcks(ctx context.Context, s *command.Scope, m *wire.Message) error {
	line := "acked " + m.ID.Short(6)
	ids := []wire.ID{} // not nil, which would be everything
	for _, a := range m.To {
		ack, err := s.Me.Get(teams.AckID(m.ID, a))
		if err != nil {
			continue
		}
		ids = append(ids, ack.ID)
		if ack.Body != "" {
			line += " (" + string(a.Agent) + ": " + quoted(ack.Body) + ")"
		}
	}
	_, err := s.Me.Read(ctx, mailbox.ReadOptions{IDs: ids}, func(b mailbox.Batch) (int, error) {
		n, err := showPieces(ctx, [][]byte{[]byte(line + "\n")})
		return n * len(b.Items), err
	})
	return err
}
