package agent

import (
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
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var pendingCommand = &cli.Command{
	Name: "pending", Aliases: []string{"requests", "questions"}, Usage: "what waits for a person: permissions, questions, drafts, late answers",
	UsageText:   "atm pending\natm pending --watch\natm approve 9f3a1c",
	Description: "The id is that of the message to the lead; atm screen NAME shows the dialog itself.",
	Flags:       []cli.Flag{&cli.BoolFlag{Name: "watch", Aliases: []string{"follow", "w", "f"}, Usage: "stay, and ring when more comes; q leaves"}},
	Action:      pending,
}

// pendingList is what pending prints, with --watch only what is new.
type pendingList struct {
	Pending []policy.Question     `json:"pending"`
	Overdue []teams.OverdueAnswer `json:"overdue,omitempty"`
	Held    []heldMail            `json:"held,omitempty"`
}

// heldMail is mail that is not typed into an idle agent until a person does something at its terminal.
type heldMail struct {
	Agent  wire.Name `json:"agent"`
	Unread int       `json:"unread"`
	Reason string    `json:"reason"`
}

func pending(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	if c.Bool("watch") {
		return s.Follow(func(ctx context.Context) error { return watchPending(ctx, c, s) })
	}
	return command.Print(c, lookPending(c.Context, c, s))
}

// lookPending finds what waits. What cannot be read is said, and hides nothing else.
func lookPending(ctx context.Context, c *cli.Context, s *command.Scope) pendingList {
	waiting, err1 := s.Team.Waiting(ctx)
	overdue, err2 := s.Team.OverdueAnswers(ctx)
	members, _, err3 := s.Team.Members(ctx)
	if err := errors.Join(err1, err2, err3); err != nil && ctx.Err() == nil {
		command.Warn(c, "%v", err)
	}
	l := pendingList{Pending: append([]policy.Question{}, waiting...), Overdue: overdue}
	for _, m := range members {
		if m.Held != "" && m.Inject != "off" {
			l.Held = append(l.Held, heldMail{m.Name, m.Unread, m.Held})
		}
	}
	return l
}

// watchPending rings when more comes to be waiting: on a terminal it repaints all that waits until q,
// else it prints each once.
func watchPending(ctx context.Context, c *cli.Context, s *command.Scope) error {
	var screen *command.Repaint
	if command.Terminal() && !c.Bool("json") && os.Getenv("TERM") != "dumb" {
		screen, ctx = command.StartRepaint(ctx)
		defer screen.Close()
	}
	known := map[string]bool{}
	isKnown := func(key ...any) bool {
		n := len(known)
		known[fmt.Sprint(key...)] = true
		return len(known) == n
	}
	for ; ctx.Err() == nil; sleep(ctx, 500*time.Millisecond) {
		l := lookPending(ctx, c, s)
		if screen != nil {
			if err := screen.Paint(strings.Split(l.String(), "\n")); err != nil {
				return err
			}
		}
		// More may become known of the same dialog, also its id.
		l.Pending = slices.DeleteFunc(l.Pending, func(q policy.Question) bool { return isKnown(q.Agent, q.Kind, q.Since.UnixNano()) })
		l.Overdue = slices.DeleteFunc(l.Overdue, func(o teams.OverdueAnswer) bool { return isKnown(o.Agent, o.ID) })
		l.Held = slices.DeleteFunc(l.Held, func(h heldMail) bool { return isKnown(h.Agent, h.Reason) })
		if len(l.Pending)+len(l.Overdue)+len(l.Held) == 0 {
			continue
		}
		if screen == nil {
			if err := command.Print(c, l); err != nil {
				return err
			}
		}
		command.Notify("atm", "something waits for you")
	}
	if errors.Is(context.Cause(ctx), command.ErrQuit) {
		return nil
	}
	return ctx.Err()
}

func (l pendingList) String() string {
	age := func(since time.Time) string { return letter.Span(max(0, time.Since(since))) }
	var lines []string
	for _, q := range l.Pending {
		lines = append(lines, fmt.Sprintf("%s  %s  %s  %s  %s", letter.Escape(shortID(q)), q.Agent, q.Kind, age(q.Since), subject(q)))
		var options []string
		for _, o := range q.Options {
			options = append(options, oneLine(o.ID+" "+o.Label, 40))
		}
		if len(options) > 0 {
			lines = append(lines, "    "+strings.Join(options, " | "))
		}
		if q.Kind == policy.KindDraft {
			lines = append(lines, fmt.Sprintf("    atm approve %s, or atm reject %[1]s --reason \"…\"", shortID(q)))
		} else if why, hint := onlyAtTerminal(q); why != "" {
			lines = append(lines, fmt.Sprintf("    %s %s: %s", q.Agent, why, hint))
		}
	}
	for _, o := range l.Overdue {
		line := fmt.Sprintf("%s  %s  overdue  %s  from %s: %s", o.ID.Short(6), o.Agent, age(o.DueAt), o.From, oneLine(o.Subject, 100))
		if !o.Read {
			line += "; not read yet"
		}
		lines = append(lines, line, "    atm trace "+o.ID.Short(6))
	}
	for _, h := range l.Held {
		lines = append(lines, fmt.Sprintf("-  %s  mail  %d unread: %s\n    atm attach %s", h.Agent, h.Unread, h.Reason, h.Agent))
	}
	return cmp.Or(strings.Join(lines, "\n"), "nothing is waiting for you")
}

// onlyAtTerminal says why nobody can answer a question from here, and what to do about it; "": it can be
// answered.
func onlyAtTerminal(q policy.Question) (why, hint string) {
	if !q.Running {
		return "runs under no runner, only its own terminal can answer", "next time atm run " + string(q.Agent)
	}
	if q.ID == "" || q.Dialog == policy.DialogTrust {
		return "asks what only a person at its terminal can answer", "atm attach " + string(q.Agent)
	}
	return "", ""
}

// shortID is a question's id as it can be typed; a draft's id is its agent's own.
func shortID(q policy.Question) string {
	if q.Kind == policy.KindDraft {
		return wire.ID(q.ID).Short(6)
	}
	return cmp.Or(q.Short(), "-")
}

// subject is what a question is about: the tool and what it is to do, or what is asked.
func subject(q policy.Question) string {
	said := strings.TrimPrefix(q.Input+": "+q.Prompt, ": ")
	if q.Kind == reducer.Permission && q.Tool != "" && q.Input != "" {
		said = q.Input // the screen says the same in words of its own
	}
	return oneLine(strings.TrimPrefix(q.Tool+": "+said, ": "), 160)
}

var approveCommand = &cli.Command{
	Name: "approve", Aliases: []string{"confirm", "accept"}, ArgsUsage: "ID|NAME [OPTION…]", Usage: "allow what an agent asks for",
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
	reason string
}

func answerQuestion(c *cli.Context, isDeny bool) error {
	d := &decision{call: &call{c: c}, isDeny: isDeny, reason: c.String("reason")}
	if c.IsSet("reason") && strings.TrimSpace(d.reason) == "" {
		return command.Usage("--reason is empty").WithHint("leave it out, or say why")
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	if err := d.open(ctx); err != nil {
		return err
	}
	answer := d.answerDialog
	if d.q.Kind == policy.KindDraft {
		answer = d.answerDraft
	}
	r, err := answer(ctx)
	if err != nil {
		return err
	}
	return command.Print(c, r)
}

// open finds the question, and refuses whoever may not answer it: from within an agent's environment that
// agent counts, whatever --as says, and the rules are those that the asker's runner was started with, as
// team.toml lies where agents write.
func (d *decision) open(ctx context.Context) (err error) {
	if d.s, err = command.OpenTeam(d.c); err != nil {
		return err
	}
	who, isInAgent := d.s.Actor()
	if who == "" {
		_, err := command.OpenMe(d.c)
		over := command.Refused("this process belongs to a run that is over, or of another team: it answers for nobody")
		return cmp.Or[error](err, over.WithHint("ask a person"))
	}
	if d.s.Me, err = d.s.Team.Member(who); err != nil {
		return err
	}
	if err := d.s.MayWrite(); err != nil {
		return err
	}
	if d.q, err = findQuestion(ctx, d.s, d.c.Args().First()); err != nil {
		return err
	}
	d.box = d.s.Team.Box(d.q.Agent)
	if !d.s.Root.Accepted {
		return command.Refused("nothing is answered in %s: nobody here made or accepted it", d.s.Root.Path).
			WithHint("if it is yours: atm init")
	}
	p, err := d.s.Team.PolicyFor(d.q.Agent)
	if err != nil {
		return err
	}
	return p.MayAnswer(d.q.Agent, who, isInAgent)
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

// answerDialog answers what an agent's screen asks, through its runner. Without an option it is the one
// that says so, once.
func (d *decision) answerDialog(ctx context.Context) (r result, err error) {
	if why, hint := onlyAtTerminal(d.q); why != "" {
		return r, command.Refused("%s %s", d.q.Agent, why).WithHint("%s", hint)
	}
	option := strings.Join(d.c.Args().Tail(), " ")
	if option != "" {
		if option, err = d.q.Choose(option); err != nil {
			return r, command.Usage("%s", letter.Escape(err.Error())).WithHint("atm pending lists the options")
		}
	}
	a := control.AnswerRequest{ID: d.q.ID, Option: option, Deny: d.isDeny, By: string(d.s.Me.Agent()), Reason: d.reason}
	r, err = request(ctx, d.call, func(client *control.Client) (result, error) { return d.result(client.Answer(ctx, a)) })
	if err == nil && d.reason != "" {
		err = d.sendReason(ctx)
	}
	return r, d.explain(err)
}

// sendReason tells the agent why it was refused.
func (d *decision) sendReason(ctx context.Context) error {
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Origin: d.s.Origin(), Body: d.reason,
		Subject: "rejected: " + oneLine(cmp.Or(d.q.Tool, d.q.Prompt), 80),
		Payload: []byte(fmt.Sprintf(`{"decision":"reject","question":%s}`, wire.Quote(d.q.ID))),
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
	if d.c.Args().Len() > 1 {
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
