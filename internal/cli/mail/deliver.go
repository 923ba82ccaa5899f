package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
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
	m, forecast := s.Root.Forecast(a, sent.Urgent())
	note = cmp.Or(note, m.TypingWarning(sent.Body), forecast)
	r.Delivered = append(r.Delivered, delivered{To: a.String(), Running: m.Running, State: cmp.Or(string(m.State), "unknown"), note: note})
	return &r.Delivered[len(r.Delivered)-1]
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
			return failure.Failed("%s, but the result could not be printed: %w", did, err) // it must not be sent again
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

// deliver sends a prepared message and, if the flags say so, waits for its ack and answer. With --json all is one
// document at the end.
func deliver(c *cli.Context, s *command.Scope, o *teams.Outgoing) error {
	if !isAwaited(c) {
		return post(c.Context, c, s, o).report(c, s, "sent", "to")
	}
	var r *result
	var failed error
	err := s.Await(func(ctx context.Context) error {
		r = post(ctx, c, s, o)
		if failed = r.report(c, s, "sent", "to"); failed != nil && r.Error == nil { // nobody has it, or nobody reads this
			return failed
		}
		return r.awaitAnswers(ctx, c, s, o.Message)
	})
	if err == nil || len(r.Delivered) == 0 || !c.Bool("json") { // without --json stdout says that it was sent
		return cmp.Or(err, failed)
	}
	if errors.Is(err, context.Canceled) {
		flag := "--acked"
		if c.Bool("wait-reply") {
			flag = "--reply"
		}
		err = s.Interrupted(flag, r.ID)
	}
	e := command.Explain(c, err)
	e.Done = r
	return e
}

// prepare completes a message. It refuses an ack, an answer to a question, which atm approve checks, and session input
// that the session's own commands would refuse.
func prepare(s *command.Scope, o *teams.Outgoing) error {
	_, _, notInput := wire.HumanText(o.Message.Payload)
	switch {
	case o.Message.Type == wire.TypeAck:
		return failure.Usage("an ack cannot be sent as a message").WithHint("atm ack ID --text \"…\"")
	case o.Message.Type == wire.TypePermissionReply:
		return failure.Usage("an answer to a question cannot be sent as a message").WithHint("atm pending; atm approve NAME")
	case o.Message.Type == wire.TypeHumanInput && notInput != nil:
		return failure.Usage("the payload is not human input: %v", notInput).WithHint("atm help session")
	}
	input, _ := session.InputOf(o.Message)
	for _, to := range o.To {
		var err error
		switch input.Kind {
		case "abort":
			err = s.MayAct("abort", to.Agent)
		case "approve", "reject":
			err = s.MayAnswer(policy.Question{Agent: to.Agent, Kind: policy.KindDraft})
		}
		if err != nil {
			return err
		}
	}
	return s.Root.Prepare(o)
}

// post sends a prepared message. Everything that goes wrong is in the result, or a warning.
func post(ctx context.Context, c *cli.Context, s *command.Scope, o *teams.Outgoing) *result {
	unmarked := s.Root.Deliver(ctx, o)
	r, retry := newResult(o.Message.ID), retryHint(c, o)
	for _, out := range o.Post.Outcomes {
		switch {
		case out.Err != nil:
			e := r.addFailed(c, out.Box.Address(), out.Err)
			if out.Stored {
				e.Hint = "" // it says not to send it again; with its id that is safe
			}
			e.Hint = command.JoinFilled("; ", e.Hint, retry)
		case out.AlreadyStored:
			r.addKnown(c, s, out.Box, o.Message)
		default:
			r.addDelivered(s, out.Box, o.Message, "")
		}
	}
	for _, f := range o.Failed {
		r.addFailed(c, f.To, f.Err)
	}
	warnUnmarked(c, s, o.Parent, unmarked)
	if err := o.Post.SentIndexErr; err != nil {
		command.Warn(c, "sent, but atm ls --sent shows it only after atm doctor --fix: %v", err)
	}
	return r
}

// retryHint says how to send a message again that a recipient has already; "": nobody has it.
func retryHint(c *cli.Context, o *teams.Outgoing) string {
	if !slices.ContainsFunc(o.Post.Outcomes, func(out mailbox.Outcome) bool { return out.Stored }) {
		return ""
	}
	again := c.Command.HelpName + " … --id " + string(o.Message.ID)
	if c.IsSet("once") { // which excludes --id
		again = "the same command"
	}
	return "retry with " + again + ": it stays one message"
}

// warnUnmarked warns of why the message that was answered is not marked, if it is not.
func warnUnmarked(c *cli.Context, s *command.Scope, answered *wire.Message, why error) {
	why = warnUnlogged(c, why)
	_, isLeased := errors.AsType[*mailbox.LeasedError](why)
	switch {
	case why == nil:
	case isLeased || errors.Is(why, mailbox.ErrNotHeld):
		command.Warn(c, "%v", teams.DescribeUnmarked(why))
	default:
		hint := "your reply was sent, do not send it again: atm ack %s%s"
		failure.Failed("%s", teams.DescribeUnmarked(why)).WithHint(hint, answered.ID.Short(6), s.Flags()).Print()
	}
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

func isAwaited(c *cli.Context) bool { return c.Bool("wait-ack") || c.Bool("wait-reply") }

// awaitAnswers waits for the ack and the answer that the flags ask for, prints them and marks them as read.
func (r *result) awaitAnswers(ctx context.Context, c *cli.Context, s *command.Scope, m *wire.Message) error {
	var wanted []*condition
	if c.Bool("wait-ack") {
		wanted = append(wanted, ackCondition(ctx, s, m))
	}
	reply := replyCondition(ctx, s, m, wire.Address{})
	if c.Bool("wait-reply") {
		wanted = append(wanted, reply)
	}
	w := waiting{conditions: wanted, wantsEvery: true} // each agent's state was printed when it was sent
	err := w.await(ctx, c, s)
	if e, ok := errors.AsType[*failure.Error](err); ok {
		e.Message = "sent " + r.ID.Short(6) + ", but " + e.Message
	}
	if err != nil {
		return err
	}
	read, letters := acksOf(c, s, m)
	var text []byte
	if c.Bool("wait-ack") {
		text = fmt.Appendf(text, "acked %s\n", m.ID.Short(6))
	}
	if c.Bool("wait-reply") {
		if len(m.To) > 1 {
			command.Warn(c, "the first answer; atm wait --reply %s --every waits for all", m.ID.Short(6))
		}
		r.Reply = reply.match.Message
		read, letters = append(read, r.Reply.ID), append(letters, r.Reply.Item)
	}
	renderer := s.Renderer()
	renderer.LimitToPage()
	text = append(text, bytes.Join(command.Letters(renderer, letters, nil), nil)...)
	_, err = s.Me.Read(ctx, mailbox.ReadOptions{IDs: read}, func(b mailbox.Batch) (int, error) {
		n, err := printToMark(ctx, c, s, r, text)
		return n * len(b.Items), err
	})
	return err
}

// acksOf returns the acks of a message that are to be marked as read, and those of them with a text, which is to be
// shown. With --json the document has no room for a text: such an ack stays unread.
func acksOf(c *cli.Context, s *command.Scope, m *wire.Message) (read []wire.ID, letters []*mailbox.Item) {
	read = []wire.ID{} // not nil, which would be all
	for _, a := range m.To {
		ack, err := s.Me.Get(wire.AckID(m.ID, a))
		if err != nil || ack.Body != "" && c.Bool("json") {
			continue
		}
		read = append(read, ack.ID)
		if ack.Body != "" {
			letters = append(letters, ack)
		}
	}
	return read, letters
}

const batchExample = `echo '{"to":"bob","body":"…","requires_ack":true}' | atm send --batch`

type batchResult struct {
	Line int `json:"line"`
	*result
}

func sendBatch(c *cli.Context, s *command.Scope) error {
	if c.NumFlags() > 1 || c.Args().Present() || !command.HasText(os.Stdin) {
		return failure.Usage("--batch reads messages from a pipe or a file on stdin, and takes no other flag").WithHint(batchExample)
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	isAnyBad := false
	var printErr error // the lines that follow are sent all the same
	err := command.EachLine(os.Stdin, func(n int, text []byte, err error) error {
		r, o := newResult(""), (*teams.Outgoing)(nil)
		if err == nil {
			o, err = batchMessage(s, text)
		}
		if err != nil {
			r.Error = command.Explain(c, err)
		} else {
			r = post(ctx, c, s, o)
		}
		isAnyBad = isAnyBad || r.Error != nil || len(r.Failed) > 0
		printErr = cmp.Or(printErr, command.PrintJSON(batchResult{n, r}))
		return ctx.Err()
	})
	if printErr != nil {
		printErr = failure.Failed("not all results could be printed: %v", printErr).
			WithHint("atm ls --sent%s", s.Flags())
	}
	if err = cmp.Or(err, printErr); err == nil && isAnyBad {
		return failure.Exit(failure.ExitFailed)
	}
	return err
}

func batchMessage(s *command.Scope, line []byte) (*teams.Outgoing, error) {
	m, to, err := wire.DecodeOutgoing(line, s.Team.Name)
	if err != nil {
		return nil, failure.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(batchExample)
	}
	if strings.TrimSpace(m.Body) == "" && m.Payload == nil {
		return nil, failure.Usage("\"body\" is missing or blank").WithHint(batchExample)
	}
	me, old := s.Me.Address(), teams.OwnMessage(s.Me, m.Supersedes)
	isForged := m.From != (wire.Address{}) && m.From != me || m.HasOurMeta()
	if isForged || m.Supersedes != "" && (old == nil || old.From != me) {
		return nil, failure.Refused("\"from\", \"supersedes\" or \"meta.atm\" is not yours to set").WithHint("leave it out")
	}
	m.Hop, m.Origin, m.SentAt = 0, s.Origin(), time.Time{}
	once, err := onceOf(m)
	if err != nil {
		return nil, err
	}
	o := &teams.Outgoing{From: s.Me, Message: m, All: s.HasAll(to)}
	if o.To, err = s.Addresses(to); err != nil {
		return nil, err
	}
	if m.InReplyTo != "" {
		o.Parent = teams.OwnMessage(s.Me, m.InReplyTo)
	}
	if err = prepare(s, o); err == nil && once != "" {
		err = o.SetIdempotencyKey(once)
	}
	return o, err
}

// onceOf moves "once", which is no field of a message, out of a batch line.
func onceOf(m *wire.Message) (string, error) {
	extra, _ := wire.ReadObject(m.Extra)
	if !extra.Has("once") {
		return "", nil
	}
	once := extra.Text("once")
	if err := mailbox.CheckKeyName(once); err != nil || m.ID != "" {
		return "", failure.Usage("\"once\" must be one line of 1 to 200 bytes, without \"id\"").WithHint(batchExample)
	}
	m.Extra = slices.DeleteFunc(extra, func(f wire.Member) bool { return f.Name == "once" }).Encode()
	return once, nil
}
