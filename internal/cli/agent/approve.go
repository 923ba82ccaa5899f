package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var approveCommand = &cli.Command{
	Name: "approve", Aliases: []string{"confirm", "accept", "allow"}, ArgsUsage: "ID|NAME [OPTION…]", Usage: "allow what an agent asks for",
	UsageText: "atm approve 9f3a1c\natm approve bob\natm approve bob 2",
	Description: "NAME: that agent's only open question. Without OPTION: the one that allows it once; else\n" +
		"its number, its label or the beginning of that.\n" +
		"Approvers of team.toml may; else people, and the lead for others. Never oneself.",
	Action: func(c *cli.Context) error { return answerQuestion(c, false) },
}

var rejectCommand = &cli.Command{
	Name: "reject", Aliases: []string{"deny", "refuse"}, ArgsUsage: "ID|NAME [OPTION…]", Usage: "refuse what an agent asks for",
	UsageText:   "atm reject 9f3a1c --reason \"Use the staging host.\"\natm reject bob",
	Description: "The reason goes to the agent as a message, which it gets when it is idle.",
	Flags:       []cli.Flag{&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "`WHY`, and what to do instead"}},
	Action:      func(c *cli.Context) error { return answerQuestion(c, true) },
}

// A decision is a person's, or the lead's, answer to what an agent asks.
type decision struct {
	*call
	q      policy.Question
	isDeny bool
	option string
	reason string
}

func answerQuestion(c *cli.Context, isDeny bool) error {
	d := &decision{call: &call{c: c}, isDeny: isDeny, option: strings.Join(c.Args().Tail(), " "), reason: c.String("reason")}
	if c.IsSet("reason") && strings.TrimSpace(d.reason) == "" {
		return command.Usage("--reason is empty").WithHint("leave it out, or say why")
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	if err := d.open(ctx); err != nil {
		return err
	}
	do := d.answerDialog
	if d.q.Kind == policy.KindDraft {
		do = d.answerDraft
	}
	r, err := do(ctx)
	if err != nil {
		return err
	}
	return command.Print(c, r)
}

// open finds the question, and refuses whoever may not answer it: from within an agent's environment that
// agent counts, whatever --as says.
func (d *decision) open(ctx context.Context) (err error) {
	if d.s, err = command.OpenTeam(d.c); err != nil {
		return err
	}
	who, _ := d.s.Actor()
	if who == "" {
		_, err := command.OpenMe(d.c)
		return cmp.Or(err, d.s.MayAnswer(d.q))
	}
	if d.s.Me, err = d.s.Team.Member(who); err != nil {
		return err
	}
	if err := d.s.MayWrite(); err != nil {
		return err
	}
	if d.q, err = findQuestion(ctx, d.s, d.c.Args().First()); err != nil {
		e := command.Explain(d.c, err)
		if _, isUnknown := errors.AsType[*teams.UnknownError](err); isUnknown {
			e.WithHint("atm pending lists what is asked; %s", e.Hint)
		}
		return e
	}
	d.box = d.s.Team.Box(d.q.Agent)
	return d.s.MayAnswer(d.q)
}

// findQuestion is the open question that a word means.
func findQuestion(ctx context.Context, s *command.Scope, word string) (policy.Question, error) {
	list, _ := s.Team.Waiting(ctx) // atm pending says what cannot be read
	q, err := policy.Find(list, word)
	if many, ok := errors.AsType[*policy.ManyQuestionsError](err); ok {
		var ids []string
		for _, q := range many.Questions {
			ids = append(ids, shortID(q))
		}
		return q, command.Ambiguous("%s", many).WithHint("name one by its id: %s", strings.Join(ids, " ")).WithCandidates(ids...)
	}
	if _, bad := wire.ParseFragment(word); err != nil && bad != nil {
		if _, unknown := s.Member(word); unknown != nil {
			return q, unknown
		}
	}
	return q, err
}

// answerDialog answers what an agent asks. Without an option it is the one that says so, once.
func (d *decision) answerDialog(ctx context.Context) (r result, err error) {
	if d.option != "" {
		if d.option, err = d.q.Choose(d.option); err != nil {
			return r, command.Usage("%s", letter.Escape(err.Error())).
				WithHint("atm pending lists the options; a reason: atm reject %s --reason \"…\"", d.q.Agent)
		}
	}
	r, err = d.result(d.s.Answer(ctx, d.q, command.Answer{Option: d.option, IsDeny: d.isDeny, Reason: d.reason}))
	if err == nil && d.reason != "" && !d.q.ByWire {
		err = d.sendReason(ctx)
	}
	return r, err
}

// sendReason tells the agent why it was refused.
func (d *decision) sendReason(ctx context.Context) error {
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Origin: d.s.Origin(), Body: d.reason,
		Subject: "rejected: " + oneLine(cmp.Or(d.q.Tool, d.q.Prompt), 80),
		Payload: fmt.Appendf(nil, `{"decision":"reject","question":%s}`, wire.Quote(d.q.ID)),
	}
	if id, ok := d.q.MessageID(); ok {
		m.InReplyTo = id
	}
	o, err := outgoing(d.s, d.box.Address(), m)
	if err != nil {
		return err
	}
	mailbox.Deliver(ctx, o.Post)
	return o.Post.Outcomes[0].Err
}

// answerDraft says yes or no to a draft, as human input to the agent that made it.
func (d *decision) answerDraft(ctx context.Context) (r result, err error) {
	if d.option != "" {
		return r, command.Usage("a draft has no options").WithHint("atm approve %s, or atm reject %[1]s --reason \"…\"", shortID(d.q))
	}
	r = result{Name: d.q.Agent, State: "approved draft " + d.q.ID}
	in := wire.HumanInput{Kind: "approve", DraftID: wire.UUID(d.q.ID)}
	if d.isDeny {
		r.State, in.Kind, in.Reason = "rejected draft "+d.q.ID, "reject", d.reason
	}
	from := teams.SessionInput{From: d.s.Me, Input: in, Origin: d.s.Origin(), Person: command.Person()}
	out, err := d.s.Team.AnswerDraft(ctx, d.q, from)
	_, isOver := errors.AsType[*wire.SessionError](err)
	if isOver || errors.Is(err, teams.ErrForbidden) {
		return r, command.Refused("%w", err).WithHint("atm session show %s", d.q.Agent)
	}
	if err == nil {
		r.Detail = "sent " + out.Message.ID.Short(6)
	}
	return r, err
}
