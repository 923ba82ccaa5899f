package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

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

// Opened is my team as package teams has it, with what has to be known of this process.
func (s *Scope) Opened() *teams.Team {
	team := s.Team
	if s.Me != nil && s.Me.Address().Team != team.Name { // see EnterTeamOf
		team, _ = s.Root.Team(s.Me.Address().Team) // which was found before
	}
	return (*teams.Team)(team.Handle(&front{s, sync.OnceValue(s.Origin)})) // which looks at this process's parents
}

// A front is this process, as far as it has to be known when it sends.
type front struct {
	*Scope
	origin func() *wire.Origin
}

func (f *front) Origin() *wire.Origin {
	by := *f.origin()
	return &by
}

func (f *front) IsPerson() bool { return f.Given.isPerson() }

// MaySend refuses input to a session that the session's own verbs would refuse, and a message that would wait for ever.
func (f *front) MaySend(m *wire.Message, to []wire.Address) error {
	if err := f.checkNeeds(m, to); err != nil {
		return err
	}
	input, _ := session.InputOf(m)
	for _, a := range to {
		isOurs, err := a.Host == "" && a.Team == f.Team.Name, error(nil)
		switch {
		case input.Kind != foreign.HumanAbort && !input.IsVerdict():
		case !isOurs:
			err = failure.Refused("%s is not in your team: only its members may abort a session there, or answer a draft", a)
		case input.Kind == foreign.HumanAbort:
			err = f.MayAct(policy.Abort, a.Agent)
		default:
			err = f.MayAnswer(ask.Question{Agent: a.Agent, Kind: ask.KindDraft})
			if err == nil {
				err = f.Team.CheckInput(a.Agent, m)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Send sends a message as Me, gives it to the programs of its recipients, marks the message that it answers, and says
// what became of it at each recipient. With an error nothing was sent.
func (s *Scope) Send(ctx context.Context, m *teams.Message) (*Outcome, error) {
	sent := s.SendAll(ctx, []*teams.Message{m})[0]
	return sent.Outcome, sent.Err
}

// OutcomeOrErr is what became of one of several messages.
type OutcomeOrErr struct {
	*Outcome
	Did string // of an ack: what was done
	Err error
}

// SendAll is Send for several messages, as teams.SendAll sends them.
func (s *Scope) SendAll(ctx context.Context, all []*teams.Message) []OutcomeOrErr {
	for _, m := range all {
		m.From = s.Me.Agent()
	}
	outcomes, sent := make([]OutcomeOrErr, len(all)), make([]*post.Sent, len(all))
	var reached []wire.Address
	for i, one := range s.Opened().SendAll(ctx, all...) {
		sent[i] = (*post.Result[*post.Sent])(one).Is()
		for _, to := range sent[i].To {
			if to.Err == nil {
				reached = append(reached, to.Address)
			}
		}
	}
	look := lookOnce(s.Root, presence.At(ctx, s.Root, reached...))
	for i, m := range all {
		if len(sent[i].To) == 0 {
			outcomes[i].Err = sent[i].Err
			continue
		}
		outcomes[i].Outcome = s.outcomeOf(m, sent[i], look)
		if err := s.endSessions(ctx, m.Content, sent[i].To); err != nil {
			outcomes[i].warn("sent, but %v", err)
		}
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

// outcomeOf says what became of a message. look returns what is known of a recipient.
func (s *Scope) outcomeOf(m *teams.Message, sent *post.Sent, look func(wire.Address) presence.Member) *Outcome {
	out := s.NewOutcome(m.Content.ID)
	out.look, out.Warnings = look, s.doubtsOf(m)
	isStored := slices.ContainsFunc(sent.To, func(to post.Recipient) bool { return to.IsStored })
	for _, to := range sent.To {
		switch {
		case to.Err != nil:
			out.addFailed(s, to.Address, to.Err)
			if isStored && to.ID != "" && !errors.Is(to.Err, mailbox.ErrIDTaken) {
				out.Failed[len(out.Failed)-1].addRetry(s, m.Once != "", to)
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

// doubtsOf says why an answer does not count as one.
func (s *Scope) doubtsOf(m *teams.Message) (why []failure.Hint) {
	p := m.Answers
	if p == nil {
		return nil
	}
	if p.Type == wire.TypePermissionRequest {
		why = append(why, "a reply is mail, and answers no question: `atm pending`")
	}
	if p.From == s.Me.Address() || len(p.To) == 0 {
		return why
	}
	if err := post.CheckAnswer(s.Root, p, m.Content); err != nil {
		why = append(why, failure.Say("this is mail, and does not count as the answer: %v", err))
	}
	return why
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

// Attach opens files that go with a message, by their paths. The message is sent before they are closed.
func (s *Scope) Attach(m *teams.Message, paths ...string) (closeFiles func(), err error) {
	var open []*os.File
	closeFiles = func() {
		for _, f := range open {
			f.Close()
		}
	}
	for _, path := range paths {
		f, err := s.Given.OpenRegular("--attach", path)
		if errors.Is(err, durable.ErrNotRegular) { // a FIFO or a device may never end
			err = failure.Usage("--attach: %s is not a regular file", path).WithHint("cat or tar it into one")
		}
		if err != nil {
			return closeFiles, err
		}
		open, m.Files = append(open, f), append(m.Files, teams.File{Name: filepath.Base(path), Content: f})
	}
	return closeFiles, nil
}

// AckAll acknowledges messages of mine, also of a shared inbox that I took them from, with one of wire.Outcomes or "".
func (s *Scope) AckAll(ctx context.Context, ids []wire.ID, outcome, text string) []OutcomeOrErr {
	did, acks := make([]OutcomeOrErr, len(ids)), make([]teams.Ack, len(ids))
	for i, id := range ids {
		acks[i] = teams.Ack{ID: id, Outcome: outcome, Text: text}
	}
	for i, acked := range s.Opened().AckAll(ctx, s.Me.Agent(), acks...) {
		if did[i].Err = repeatable(acked.Err()); did[i].Err == nil {
			a := (*post.Result[post.Acked])(acked).Is()
			did[i].Outcome, did[i].Did = s.describeAck(a, ids[i], outcome)
		}
	}
	return did
}

func (s *Scope) describeAck(a post.Acked, of wire.ID, outcome string) (out *Outcome, did string) {
	if out = s.NewOutcome(""); a.Message != nil {
		out = s.NewOutcome(a.Message.ID)
	}
	if a.Unsent != "" {
		out.warn("%s: `atm reply %s \"…\"`", a.Unsent, of.Short(6))
	}
	for _, note := range a.Notes {
		out.warn("%s", note)
	}
	if a.To.ID != "" {
		out.addDelivered(s, a.To, a.Message, "")
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
func (s *Scope) Withdraw(ctx context.Context, m *wire.Message) (*Outcome, error) {
	out := s.NewOutcome(m.ID)
	all, err := s.Opened().Withdraw(ctx, s.Me.Agent(), m.ID)
	for _, one := range all {
		to, state, err := one.To, one.State, one.Err
		d := Delivered{To: to.String(), State: "withdrawn", Note: "it was not read"}
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
			d.Note = "already withdrawn"
		case state == post.Taken:
			d.Note = "who had taken it gets a notice"
		case state != wire.Unread && state != wire.Withdrawn:
			d.State, d.Note = "notified", "a notice was sent"
		}
		if err != nil {
			out.addFailed(s, to, repeatable(err))
		} else {
			out.Delivered = append(out.Delivered, d)
		}
	}
	return out, err
}
