package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// A result says what happened to a message at each recipient: send, reply, ack and withdraw print one.
type result struct {
	ID        wire.ID     `json:"id,omitempty"`
	Short     string      `json:"short,omitempty"` // of ID
	Delivered []delivered `json:"delivered"`
	Failed    []failed    `json:"failed"`
	Reply     *message    `json:"reply,omitempty"`
	Acked     []*result   `json:"acked,omitempty"` // each of several acks; ID is then the first's
}

type delivered struct {
	To      string `json:"to"`
	Running bool   `json:"running"`
	State   string `json:"state"`
	Inject  string `json:"inject,omitempty"`      // how its runner hands over mail
	By      string `json:"by,omitempty"`          // the way to its program that its person started: inbox socket, plugin, …
	IsIn    bool   `json:"handed_over,omitempty"` // and that has taken it

	note string // when the recipient will probably see it
}

type failed struct {
	To string `json:"to"`
	*failure.Error
}

func newResult(id wire.ID) *result {
	return &result{ID: id, Short: id.Short(6), Delivered: []delivered{}, Failed: []failed{}}
}

// addDelivered adds a recipient that has the message, and returns it. Without a note it gets the forecast when it will be seen.
func (r *result) addDelivered(s *app.Scope, a wire.Address, sent *teams.Outgoing, note string) teams.Member {
	m, forecast := s.Root.Forecast(a, sent)
	r.Delivered = append(r.Delivered, delivered{a.String(), m.Running, cmp.Or(string(m.State), "unknown"), m.Inject, sent.Pushed[a].By, sent.Pushed[a].IsIn, cmp.Or(note, forecast)})
	return m
}

func (r *result) addFailed(c *cli.Context, to wire.Address, err error) {
	r.Failed = append(r.Failed, failed{to.String(), command.Given(c).Explain(err)})
}

// err is the error for the recipients that do not have the message; nil if all have it. did says what was not done:
// "sent to".
func (r *result) err(did string) error {
	if len(r.Failed) == 0 {
		return nil
	}
	e := *r.Failed[0].Error
	if len(r.Delivered)+len(r.Failed) == 1 {
		return &e
	}
	var not []string
	for _, f := range r.Failed {
		not = append(not, "not "+did+" "+f.To+": "+f.Message)
	}
	if e.Message = strings.Join(not, "; "); len(r.Delivered) > 0 {
		e.Code, e.Exit = "partial", failure.ExitPartial
	}
	e.Done = r
	return &e
}

// text lists the recipients that have the message, with what several in a row have in common said once; "": nobody has
// it.
func (r *result) text(s *app.Scope, did string) string {
	var to []string
	for i, d := range r.Delivered {
		who := command.Renderer(s).Called(d.To)
		if i+1 == len(r.Delivered) || r.Delivered[i+1].note != d.note {
			who += " (" + d.note + ")"
		}
		to = append(to, who)
	}
	if len(to) == 0 {
		return ""
	}
	verb, preposition, _ := strings.Cut(did, " ")
	return verb + " " + r.ID.Short(6) + " " + preposition + " " + strings.Join(to, ", ")
}

// deliver sends a prepared message and, if the flags say so, waits for its ack and answer. With --json all is one
// document at the end.
func deliver(c *cli.Context, s *app.Scope, o *teams.Outgoing) error {
	ctx, stop := c.Context, func() {}
	if isAwaited(c) { // from now on an interrupt is answered with what was sent
		c.Context, stop = app.Interruptible(ctx)
	}
	defer stop()
	r := post(ctx, c, s, o)
	failed, text := r.err("sent to"), r.text(s, "sent to")
	if !isAwaited(c) || text == "" {
		return command.PrintDone(c, r, text, failed)
	}
	if !c.Bool("json") {
		if err := command.PrintAs(c, r, text); err != nil {
			return err
		}
		if failed != nil {
			command.Given(c).Explain(failed).Print()
			failed = failure.Exit(failure.ExitPartial)
		}
	}
	err := s.Await(func(ctx context.Context) error { return r.awaitAnswers(ctx, c, s, o.Message) })
	if err != nil {
		e := command.Given(c).Explain(fmt.Errorf("sent %s, but %w", r.ID.Short(6), err))
		if errors.Is(err, context.Canceled) {
			e = command.InterruptedWait(s, o.Message.ID, awaited(c)...)
		}
		e.Done = r
		return e
	}
	return failed
}

func isAwaited(c *cli.Context) bool { return len(awaited(c)) > 0 }

// awaited returns what the flags say to wait for, as atm wait calls it.
func awaited(c *cli.Context) (kinds []string) {
	for _, flag := range [][2]string{{"wait-read", "read"}, {"wait-ack", "acked"}, {"wait-reply", "reply"}} {
		if c.Bool(flag[0]) {
			kinds = append(kinds, flag[1])
		}
	}
	return kinds
}

// prepare completes a message. It refuses an ack, an answer to a question, which atm approve checks, and session input
// that the session's own commands would refuse.
func prepare(s *app.Scope, o *teams.Outgoing) error {
	switch o.Message.Type {
	case wire.TypeAck:
		return failure.Usage("an ack cannot be sent as a message").WithHint("atm ack ID --text \"…\"")
	case wire.TypeNotice, wire.TypePermissionRequest:
		return failure.Usage("a %s cannot be sent as a message", o.Message.Type).WithHint("leave --type out")
	case wire.TypePermissionReply:
		return failure.Usage("an answer to a question cannot be sent as a message").WithHint("atm pending; atm approve NAME")
	case wire.TypeHumanInput:
		if _, _, err := wire.HumanText(o.Message.Payload); err != nil {
			return failure.Usage("the payload is not human input: %v", err).WithHint("atm help session")
		}
	}
	input, _ := session.InputOf(o.Message)
	for _, to := range o.To {
		isOurs := to.Host == "" && to.Team == s.Team.Name
		var err error
		switch {
		case input.Kind != "abort" && !input.IsVerdict():
		case !isOurs:
			err = failure.Refused("%s is not in your team: only its members may abort a session there, or answer a draft", to)
		case input.Kind == "abort":
			err = s.MayAct("abort", to.Agent)
		default:
			err = s.MayAnswer(policy.Question{Agent: to.Agent, Kind: policy.KindDraft})
		}
		if err != nil {
			return err
		}
	}
	err := s.Root.Prepare(o)
	for _, to := range o.To {
		if err == nil && input.IsVerdict() {
			err = s.Team.CheckVerdict(to.Agent, o.Message)
		}
	}
	return err
}

// post sends a prepared message. What goes wrong is in the result.
func post(ctx context.Context, c *cli.Context, s *app.Scope, o *teams.Outgoing) *result {
	unmarked := s.Root.Deliver(ctx, o)
	r := newResult(o.Message.ID)
	isStored := slices.ContainsFunc(o.Post.Outcomes, func(out mailbox.Outcome) bool { return out.Stored })
	for _, out := range o.Post.Outcomes {
		switch {
		case out.Err != nil:
			r.addFailed(c, out.Box.Address(), out.Err)
			if e := r.Failed[len(r.Failed)-1].Error; out.Stored {
				e.Hint = retryHint(c, o) // not its own, which forbids to send it again: with its id that is safe
			} else if isStored {
				e.Hint += "; " + retryHint(c, o)
			}
		case out.AlreadyStored:
			r.addKnown(c, s, out.Box, o)
		default:
			if m := r.addDelivered(s, out.Box.Address(), o, ""); m.RunsNoMail() {
				command.Warn(c, "%s does not run its mail; with atm run --inject run it does", m.Name)
			}
		}
	}
	for _, f := range o.Failed {
		r.addFailed(c, f.To, f.Err)
	}
	if unmarked != nil {
		command.Warn(c, "%s", teams.DescribeUnmarked(unmarked))
	}
	if err := o.Post.SentIndexErr; err != nil {
		command.Warn(c, "sent, but atm ls --sent shows it only after atm doctor --fix: %v", err)
	}
	return r
}

// retryHint says how to send a message again that a recipient has already.
func retryHint(c *cli.Context, o *teams.Outgoing) string {
	again := c.Command.HelpName + " … --id " + string(o.Message.ID)
	if c.IsSet("once") { // which excludes --id
		again = "the same command"
	}
	return "retry with " + again + ": it stays one message"
}

// addKnown adds a recipient that has a message with this id from an earlier call.
func (r *result) addKnown(c *cli.Context, s *app.Scope, box *mailbox.Box, o *teams.Outgoing) {
	m := o.Message
	note := "already sent"
	if it, err := box.Get(m.ID); err == nil {
		note += ": " + stateAt(it)
		switch {
		case it.Body != m.Body && isAwaited(c):
			r.addFailed(c, box.Address(), command.OtherText(m.ID))
			return
		case it.Body != m.Body:
			command.Warn(c, "%s was already sent to %s with another text; this text was not sent", m.ID.Short(6), box.Agent())
		}
	}
	r.addDelivered(s, box.Address(), o, note)
}

// awaitAnswers waits until the message is read, for the ack and for the answer, as the flags ask, prints them and marks them as read. An ack with
// a text stays unread if a JSON document has no room for it.
func (r *result) awaitAnswers(ctx context.Context, c *cli.Context, s *app.Scope, m *wire.Message) error {
	var wanted []*condition
	var text []byte
	for _, kind := range awaited(c) {
		if kind == "reply" {
			wanted = append(wanted, replyCondition(ctx, c, s, m, wire.Address{}))
			continue
		}
		wanted = append(wanted, stageCondition(ctx, s, kind, m))
		text = fmt.Appendf(text, "%s %s\n", kind, m.ID.Short(6))
	}
	met, err := await(ctx, c, s, wanted, true)
	if err != nil {
		return err
	}
	read, letters := []wire.ID{}, []*mailbox.Item{} // not nil, which would be all
	for _, a := range m.To {
		ack, err := s.Root.AckOf(m, a)
		hasText := err == nil && ack.Body != ""
		if err == nil && !(hasText && c.Bool("json")) {
			read = append(read, ack.ID)
		}
		if hasText {
			letters = append(letters, ack)
		}
	}
	if last := met[len(met)-1]; last.Matched == "reply" {
		r.Reply = last.Message
		read, letters = append(read, r.Reply.ID), append(letters, r.Reply.Item)
	}
	renderer := command.Renderer(s)
	renderer.LimitToPage()
	text = append(text, bytes.Join(command.Letters(renderer, letters, nil), nil)...)
	_, err = s.Me.Read(ctx, mailbox.ReadOptions{IDs: read}, func(b mailbox.Batch) (int, error) {
		n, err := printReceived(ctx, c, s, r, text)
		return n * len(b.Items), err
	})
	return err
}
