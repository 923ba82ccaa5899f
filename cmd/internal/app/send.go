package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// A Submission is a message to send, with recipients and files as people name them. A verb fills it from its flags. Send
// makes a teamdir.Outgoing of it, which has mailboxes and opened files.
type Submission struct {
	Content *wire.Message // Send sets its sender, recipients, origin and, where it has none, its id
	To      []string      // names as people type them: bob, bob@web, @reviewers, all; none: whom an answer to Parent goes to
	Parent  *wire.Message // the message that it answers; nil: none
	ToAll   bool          // an answer goes to all recipients of Parent as well
	Files   []string      // paths of files that go with it
	Opened  []post.File   // files that go with it, and are open
	After   []string      // ids of messages, as people type them, that are to be done before it is shown
	Once    string        // an idempotency key; "": none
}

// A Draft is what a message of mine says, before it has recipients.
type Draft struct {
	Text, Subject    string
	Thread           wire.ID       // "": a new one, or that of what it answers
	Urgent, Ack, FYI bool          // FYI: no answer is wanted
	Choices          []string      // the answers that it offers
	Due              time.Duration // within which an answer is expected; 0: nobody says
	NotBefore        time.Time     // when it is shown; zero: at once
}

// Message makes the message.
func (d Draft) Message() (*wire.Message, error) {
	if d.FYI && (d.Ack || d.Due != 0 || len(d.Choices) > 0) {
		return nil, failure.Usage("fyi wants no answer, and ack, due and choice want one: they contradict each other").WithHint("leave one out")
	}
	m := &wire.Message{
		SentAt: time.Now().UTC(), NotBefore: d.NotBefore.UTC().Truncate(time.Millisecond),
		Subject: d.Subject, Body: d.Text, Thread: d.Thread, RequiresAck: d.Ack,
	}
	if d.Urgent {
		m.Priority = "urgent"
	}
	if d.FYI {
		m.ReplyWanted = "no"
	}
	if d.Due != 0 {
		m.DueAt = d.Start(m.SentAt).Add(d.Due)
	}
	return m, SetChoices(m, d.Choices)
}

// Start is when the time begins in which a message that is sent now is to be answered or read.
func (d Draft) Start(now time.Time) time.Time {
	if d.NotBefore.After(now) {
		return d.NotBefore.UTC()
	}
	return now
}

// SetChoices makes a message offer answers. It wants an ack then, so that it stays with who is asked until it is answered.
func SetChoices(m *wire.Message, choices []string) error {
	if m.Choices = choices; len(choices) == 0 {
		return nil
	}
	m.RequiresAck, m.ReplyWanted = true, "yes"
	if err := m.CheckChoices(); err != nil {
		return failure.Usage("--choice: %v", err).WithHint("a question needs two: --choice red --choice green")
	}
	return nil
}

// Send sends a message as Me, gives it to the programs of its recipients, marks the message that it answers, and says
// what became of it at each recipient. With an error nothing was sent.
func (s *Scope) Send(ctx context.Context, m *Submission) (*Outcome, error) {
	sent := s.SendAll(ctx, []*Submission{m})[0]
	return sent.Outcome, sent.Err
}

// OutcomeOrErr is what Send returns for one message of several.
type OutcomeOrErr struct {
	*Outcome
	Err error
}

// SendAll is Send for several messages, as post.SendAll sends them.
func (s *Scope) SendAll(ctx context.Context, all []*Submission) []OutcomeOrErr {
	outcomes := make([]OutcomeOrErr, len(all))
	outgoing, doubts := make([]*post.Outgoing, len(all)), make([][]failure.Hint, len(all))
	isPerson, origin := s.Given.isPerson(), s.Origin() // which looks at this process's parents
	var ready []*post.Outgoing
	for i, m := range all {
		by := *origin
		o, closeFiles, err := s.open(ctx, m, isPerson, &by)
		defer closeFiles()
		if outcomes[i].Err = err; err == nil {
			doubts[i], outgoing[i] = s.doubtsOf(o), o
			ready = append(ready, o)
		}
	}
	sent := post.SendAll(ctx, s.Root, ready)
	look := lookOnce(s.Root, presence.At(ctx, s.Root, reached(sent)...))
	for i, m := range all {
		if outgoing[i] == nil {
			continue
		}
		if sent[0].Sent == nil {
			outcomes[i].Err = sent[0].Err
		} else {
			outcomes[i].Outcome = s.outcomeOf(m, sent[0].Sent, look)
			outcomes[i].Warnings = append(doubts[i], outcomes[i].Warnings...)
			if err := s.endSessions(ctx, m.Content, sent[0].Sent.To); err != nil {
				outcomes[i].warn("sent, but %v", err)
			}
		}
		sent = sent[1:]
	}
	return outcomes
}

// endSessions ends the sessions that an abort is for, once it is sent: a runner would, and there may be none.
func (s *Scope) endSessions(ctx context.Context, m *wire.Message, to []post.Recipient) (err error) {
	for _, to := range to {
		in, counts := s.Team.Sessions().InputOf(to.Address.Agent, m)
		if counts && in.Kind == foreign.HumanAbort && to.IsStored {
			err = errors.Join(err, s.Team.Sessions().Abort(ctx, to.Address.Agent, in))
		}
	}
	return err
}

// reached lists the recipients that have a message now.
func reached(all []post.SentOrErr) (addresses []wire.Address) {
	for _, s := range all {
		if s.Sent == nil {
			continue
		}
		for _, to := range s.Sent.To {
			if to.Err == nil {
				addresses = append(addresses, to.Address)
			}
		}
	}
	return addresses
}

// open is outgoing with the files that go with the message, which are to be closed.
func (s *Scope) open(ctx context.Context, m *Submission, isPerson bool, origin *wire.Origin) (o *post.Outgoing, closeFiles func(), err error) {
	var files []*os.File
	closeFiles = func() {
		for _, f := range files {
			f.Close()
		}
	}
	if o, err = s.outgoing(ctx, m, isPerson, origin); err == nil {
		o.Files = m.Opened
	}
	for i := 0; i < len(m.Files) && err == nil; i++ {
		var f *os.File
		if f, err = s.openAttached(m.Files[i]); err == nil {
			files = append(files, f)
			o.Files = append(o.Files, post.File{Name: filepath.Base(m.Files[i]), Content: f})
		}
	}
	return o, closeFiles, err
}

// outcomeOf says what became of a message. look returns what is known of a recipient.
func (s *Scope) outcomeOf(m *Submission, sent *post.Sent, look func(wire.Address) presence.Member) *Outcome {
	out := s.NewOutcome(m.Content.ID)
	out.look = look
	isStored := slices.ContainsFunc(sent.To, func(to post.Recipient) bool { return to.IsStored })
	for _, to := range sent.To {
		switch {
		case to.Err != nil:
			out.addFailed(s, to.Address, to.Err)
			if isStored && to.ID != "" && !errors.Is(to.Err, mailbox.ErrIDTaken) {
				out.Failed[len(out.Failed)-1].addRetry(s, m, to)
			}
		case to.WasDelivered:
			out.addKnown(s, to, m.Content)
		default:
			if member, seen := out.addDelivered(s, to, m.Content, ""); seen.When == outlook.Never {
				out.warn("%s: %s", member.Name, seen.Help)
			}
		}
	}
	if sent.Unmarked != nil {
		out.warn("sent, but %v", sent.Unmarked)
	}
	if sent.Unlisted != nil {
		out.warn("sent, but `atm ls --sent` shows it only after `atm doctor --fix`: %v", sent.Unlisted)
	}
	return out
}

// outgoing finds the recipients. It refuses what other verbs send (an ack, an answer to a question), and input to a
// session that the session's own verbs would refuse.
func (s *Scope) outgoing(ctx context.Context, m *Submission, isPerson bool, origin *wire.Origin) (o *post.Outgoing, err error) {
	o = &post.Outgoing{From: s.Me, Message: m.Content, Parent: m.Parent, Person: isPerson, Once: m.Once}
	if m.Parent != nil && len(m.To) == 0 {
		o.To = post.ReplyTo(ctx, s.Root, m.Parent, s.Me, m.ToAll)
	} else if o.To, o.Named, err = presence.Recipients(s.Team, s.Me.Address(), m.To...); err != nil {
		return nil, err
	}
	if err := s.setNeeds(m, o.To); err != nil {
		return nil, err
	}
	o.Message.From, o.Message.Origin = s.Me.Address(), origin
	if err := checkType(o.Message); err != nil {
		return nil, err
	}
	input, _ := session.InputOf(o.Message)
	for _, to := range o.To {
		isOurs := to.Host == "" && to.Team == s.Team.Name
		switch {
		case input.Kind != foreign.HumanAbort && !input.IsVerdict():
		case !isOurs:
			err = failure.Refused("%s is not in your team: only its members may abort a session there, or answer a draft", to)
		case input.Kind == foreign.HumanAbort:
			err = s.MayAct(policy.Abort, to.Agent)
		default:
			err = s.MayAnswer(ask.Question{Agent: to.Agent, Kind: ask.KindDraft})
			if err == nil {
				err = s.Team.CheckInput(to.Agent, o.Message)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

// doubtsOf says why an answer will not count as one.
func (s *Scope) doubtsOf(o *post.Outgoing) (why []failure.Hint) {
	p := o.Parent
	if p == nil {
		return nil
	}
	if p.Type == wire.TypePermissionRequest {
		why = append(why, "a reply is mail, and answers no question: `atm pending`")
	}
	if p.From == s.Me.Address() || len(p.To) == 0 {
		return why
	}
	if err := post.CheckAnswer(s.Root, p, o.Message); err != nil {
		why = append(why, failure.Say("this is mail, and does not count as the answer: %v", err))
	}
	return why
}

func checkType(m *wire.Message) error {
	switch m.Type {
	case wire.TypeAck:
		return failure.Usage("an ack cannot be sent as a message").WithHint("`atm ack ID --text \"…\"`")
	case wire.TypeNotice, wire.TypePermissionRequest:
		return failure.Usage("a %s cannot be sent as a message", m.Type).WithHint(`leave "type" out`)
	case wire.TypePermissionReply:
		return failure.Usage("an answer to a question cannot be sent as a message").WithHint("`atm pending`; `atm approve NAME`")
	case wire.TypeHumanInput:
		body, _, err := foreign.HumanText(m.Payload)
		m.Body = cmp.Or(m.Body, body)
		if err != nil {
			return failure.Usage("the payload is not human input: %v", err).WithHint("`atm help session`")
		}
	}
	return nil
}

// MaxText is how many bytes the text of a message may have.
const MaxText = 1 << 20

// CheckText refuses a text that no message can have.
func CheckText(s string) error {
	fault := ""
	switch {
	case strings.TrimSpace(s) == "":
		return failure.Usage("the text is empty").WithHint("a blank text is never sent: say something")
	case len(s) > MaxText:
		fault = "is over 1 MiB"
	case !utf8.ValidString(s):
		fault = "is not UTF-8"
	case strings.Contains(s, "\x00"):
		fault = "has a NUL byte"
	default:
		return nil
	}
	return failure.Usage("the text %s", fault).WithHint("send it as a file: --attach FILE")
}

func (s *Scope) openAttached(name string) (*os.File, error) {
	f, err := s.Given.OpenRegular("--attach", name)
	if errors.Is(err, durable.ErrNotRegular) { // a FIFO or a device may never end
		err = failure.Usage("--attach: %s is not a regular file", name).WithHint("cat or tar it into one")
	}
	return f, err
}

// Ack acknowledges a message, which lies in my mailbox or in the shared one that I took it from, with one of
// wire.Outcomes or "". did says what was done.
func (s *Scope) Ack(ctx context.Context, box *maildir.Box, it *wire.Item, outcome, text string) (out *Outcome, did string, err error) {
	done := s.AckAll(ctx, []Held{{Item: it, Box: box}}, outcome, text)[0]
	return done.Out, done.Did, done.Err
}

// Held is a message of mine: in my mailbox, or in the shared one from which I took it.
type Held struct {
	*wire.Item
	Box      *maildir.Box
	IsLeased bool
}

// DidAck is the result of Ack.
type DidAck struct {
	Out *Outcome
	Did string
	Err error
}

// AckAll is Ack for several messages at once.
func (s *Scope) AckAll(ctx context.Context, all []Held, outcome, text string) []DidAck {
	did, origin := make([]DidAck, len(all)), s.Origin()
	var at []int
	var acks []post.ToAck
	for i, m := range all {
		if m.State == wire.Withdrawn {
			did[i].Err = withdrawnError(m.ID)
			continue
		}
		ack := &wire.Message{Type: wire.TypeAck, Body: text, Origin: origin}
		if outcome != "" {
			ack.SetOutcome(outcome)
		}
		at, acks = append(at, i), append(acks, post.ToAck{Box: m.Box, Message: m.Message, Ack: ack})
	}
	acked := post.AckAll(ctx, s.Root, s.Me, acks...)
	for i, a := range acked {
		if did[at[i]].Err = repeatable(a.Err); a.Err == nil {
			did[at[i]].Out, did[at[i]].Did = s.describeAck(a.Acked, all[at[i]].ID, acks[i].Ack, outcome)
		}
	}
	return did
}

func (s *Scope) describeAck(a post.Acked, of wire.ID, ack *wire.Message, outcome string) (out *Outcome, did string) {
	out = s.NewOutcome(a.ID)
	if a.Unsent != "" {
		out.warn("%s: `atm reply %s \"…\"`", a.Unsent, of.Short(6))
	}
	for _, note := range a.Notes {
		out.warn("%s", note)
	}
	if a.To.ID != "" {
		out.addDelivered(s, a.To, ack, "")
	}
	if did = "acked " + of.Short(6); outcome != "" {
		did += " as " + outcome
	}
	if a.IsPassedOn {
		did = of.Short(6) + " declined: the next one who serves its inbox gets it"
	}
	if a.WasAcked {
		did += " before"
	}
	return out, did
}

// repeatable gives an error its hint where the message that may not be durable has a derived id: again, it is the same.
func repeatable(err error) error {
	if _, ok := errors.AsType[*maildir.NotDurableError](err); ok {
		err = failure.Failed("%w", err).WithHint("retry with the same command: it stays one message")
	}
	return err
}

// Withdraw withdraws a message of mine from all its recipients.
func (s *Scope) Withdraw(ctx context.Context, m *wire.Message) *Outcome {
	out := s.NewOutcome(m.ID)
	for _, to := range m.To {
		d := Delivered{To: to.String(), State: "withdrawn", note: "it was not read"}
		state, err := post.Withdraw(ctx, s.Root, s.Me, m, to, s.Origin())
		if unlogged, ok := errors.AsType[*maildir.UnloggedError](err); ok { // only an event is missing
			out.warn("%v", unlogged)
			err = nil
		}
		switch {
		case err != nil:
		case state == "":
			err = failure.Refused("message %s is acknowledged", m.ID.Short(6)).
				WithHint("`atm reply %s \"…\"`", m.ID.Short(6))
		case state == wire.Withdrawn && to.Host == "": // the members of a host share an outbox
			d.note = "already withdrawn"
		case state == post.Taken:
			d.note = "who had taken it gets a notice"
		case state != wire.Unread && state != wire.Withdrawn:
			d.State, d.note = "notified", "a notice was sent"
		}
		if err != nil {
			out.addFailed(s, to, repeatable(err))
		} else {
			out.Delivered = append(out.Delivered, d)
		}
	}
	return out
}
