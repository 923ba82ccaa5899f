package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var pendingCommand = &cli.Command{
	Name: "pending", Aliases: []string{"requests", "questions", "approvals", "permissions"}, Usage: "show what waits for a person: permissions, questions, drafts, late answers",
	UsageText: `atm pending
atm pending --watch
atm approve 9f3a1c`,
	Description: "Each id is that of the message to the lead; atm screen NAME shows the dialog.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w", "follow", "f"}, Usage: "keep watching and ring for each new one; q quits"},
		cmdline.NoFlag("list ls", "leave it out: atm pending"),
		cmdline.NoFlag("agent from name", "atm pending lists all open questions; atm approve NAME answers that agent's"),
		cmdline.DurationFlag("timeout", 0, "stop after `D`"),
	},
	Action: command.With(app.OpenTeam, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		if c.Bool("watch") {
			return watchPending(c, s)
		}
		return p.Print(lookPending(c.Context, c, s))
	}),
}

type pendingList struct {
	Pending []policy.Question     `json:"pending"`
	Overdue []teams.OverdueAnswer `json:"overdue,omitempty"`
	Held    []heldMail            `json:"held,omitempty"`

	c *cli.Context // completes the commands
}

// heldMail is mail that is not typed into an idle agent until a person acts at its terminal.
type heldMail struct {
	Agent  wire.Name `json:"agent"`
	Unread int       `json:"unread"`
	Reason string    `json:"reason"`
}

// lookPending lists everything that waits for a person. It warns of what it cannot read.
func lookPending(ctx context.Context, c *cli.Context, s *app.Scope) pendingList {
	members, err := s.Team.Members(ctx)
	waiting, waitingErr := s.Team.Pending(ctx, members)
	overdue, overdueErr := s.Team.OverdueAnswers(ctx)
	if err := command.PrinterOf(c).WarnUnreadable(cmp.Or(err, waitingErr, overdueErr)); err != nil && ctx.Err() == nil {
		command.PrinterOf(c).Warn("%v", err)
	}
	l := pendingList{Pending: append([]policy.Question{}, waiting...), Overdue: overdue, c: c}
	for _, m := range members {
		if m.Held != "" && m.Host == "" && m.Inject != "off" {
			l.Held = append(l.Held, heldMail{m.Name, m.Unread, m.Held})
		}
	}
	return l
}

// watchPending rings when something new waits. A terminal gets the whole list again and again, a pipe each item once.
func watchPending(c *cli.Context, s *app.Scope) error {
	known := map[string]bool{}
	isKnown := func(key ...any) bool {
		before := len(known)
		known[fmt.Sprint(key...)] = true
		return len(known) == before
	}
	return command.PrinterOf(c).Watch(s, command.GivenTimeout(c), func(ctx context.Context) (lines []string, err error) {
		l := lookPending(ctx, c, s)
		lines = strings.Split(l.String(), "\n")
		// By the time it began: the same dialog may get an id and further details later.
		l.Pending = slices.DeleteFunc(l.Pending, func(q policy.Question) bool { return isKnown(q.Agent, q.Kind, q.Since.UnixNano()) })
		l.Overdue = slices.DeleteFunc(l.Overdue, func(o teams.OverdueAnswer) bool { return isKnown(o.Agent, o.ID) })
		l.Held = slices.DeleteFunc(l.Held, func(h heldMail) bool { return isKnown(h.Agent, h.Reason) })
		if len(l.Pending)+len(l.Overdue)+len(l.Held) == 0 {
			return lines, nil
		}
		if !command.PrinterOf(c).Repaints() {
			err = command.PrinterOf(c).Print(l)
		}
		command.PrinterOf(c).Notify("atm", "something is waiting for you")
		return lines, err
	})
}

// String is a table of id, agent, kind, age and subject, with the commands that help below each row.
func (l pendingList) String() string {
	var rows [][]string
	var below [][]string // the lines below each row
	add := func(lines []string, cells ...string) { rows, below = append(rows, cells), append(below, lines) }
	age := func(since time.Time) string { return letter.Span(time.Since(since)) }
	for _, q := range l.Pending {
		since := age(q.Since)
		if q.SeenAt != nil {
			since += " (seen " + letter.Ago(time.Now(), *q.SeenAt) + ")"
		}
		below := answers(q)
		if q.Host == "" { // else they are typed there
			for i := range below {
				below[i] = command.Given(l.c).CompleteHint(below[i])
			}
		}
		add(below, cmp.Or(letter.Name(q.Short(), 40), "-"), string(q.Agent), letter.Name(q.Kind, 40), since, subject(q))
	}
	for _, o := range l.Overdue {
		about := "from " + o.From
		if !o.Read {
			about += ", not read yet"
		}
		about += ": " + letter.OneLine(o.Subject, 100)
		add([]string{command.Given(l.c).CompleteHint("atm trace " + o.ID.Short(6))}, o.ID.Short(6), string(o.Agent), "overdue", age(o.DueAt), about)
	}
	for _, h := range l.Held {
		about := fmt.Sprintf("%d unread: %s", h.Unread, letter.Escape(h.Reason))
		add([]string{command.Given(l.c).CompleteHint("atm attach " + string(h.Agent))}, "-", string(h.Agent), "mail", "", about)
	}
	var lines []string
	if command.PrinterOf(l.c).IsTerminal() {
		for i, cells := range rows { // who answers has to see all of it
			if about := cells[4]; letter.Columns(about) > command.PrinterOf(l.c).Width()/2 {
				cells[4], below[i] = "", slices.Insert(below[i], 0, about)
			}
		}
		lines = command.PrinterOf(l.c).Columns(rows, "36", "1", "33", "2", "")
	}
	for i, cells := range rows {
		if !command.PrinterOf(l.c).IsTerminal() {
			lines = append(lines, app.JoinFilled("  ", cells...))
		}
		for _, text := range below[i] { // a command that is cut is of no use
			lines[i] += "\n" + letter.Wrap("    "+text, max(command.PrinterOf(l.c).Width()-1, 0))
		}
	}
	return cmp.Or(strings.Join(lines, "\n"), "nothing is waiting for you")
}

// answers lists a question's options and the commands that answer it.
func answers(q policy.Question) (lines []string) {
	var options []string
	for _, o := range q.Options {
		option := letter.Name(o.ID, 40) + " " + letter.Name(o.Label, 40)
		if o.About != "" {
			option += " (" + letter.Name(o.About, 40) + ")"
		}
		options = append(options, option)
	}
	if len(options) > 0 {
		lines = append(lines, strings.Join(options, " | "))
	}
	if q.Kind == policy.KindDraft {
		lines = append(lines, fmt.Sprintf("atm approve %s, or atm reject %[1]s --reason \"…\"", q.Short()))
	} else if why, hint := app.AnsweredElsewhere(&q); why != "" {
		lines = append(lines, fmt.Sprintf("%s %s: %s", q.Agent, why, hint))
	}
	return lines
}

func subject(q policy.Question) string {
	text := app.JoinFilled(": ", q.Input, q.Prompt)
	if q.Kind != reducer.Question && q.Tool != "" && q.Input != "" {
		text = q.Input // the prompt on the screen only repeats it
	}
	return letter.OneLine(app.JoinFilled(": ", q.Tool, strings.TrimPrefix(text, "Run: ")), 300)
}

var approveCommand = &cli.Command{
	Name: "approve", Aliases: []string{"confirm", "accept", "allow", "grant", "permit"}, ArgsUsage: "[ID|NAME] [OPTION…]", Usage: "allow what an agent asks for",
	UsageText: `atm approve 9f3a1c
atm approve bob
atm approve bob 2`,
	Description: `NAME stands for that agent's only open question. OPTION is its number, its label or the beginning
of its label; default: the option that allows it once. The approvers in team.toml may answer;
without them people, and the lead for other agents. Nobody may answer for themselves.`,
	Flags: []cli.Flag{
		artifactFlag,
		cmdline.NoFlag("all", "atm pending lists the open questions; atm approve NAME, one at a time"),
		cmdline.NoFlag("once", "atm approve NAME answers this one question only"),
		cmdline.NoFlag("always session remember", "atm pending lists the options; atm approve NAME 2 takes the second"),
		cmdline.NoFlag("reason message m text comment body", "only a rejection has a reason: atm reject NAME --reason R"),
		cmdline.NoFlag("list ls id", "atm pending lists the open questions; atm approve ID"),
	},
	Action: command.With(app.OpenTeam, answerQuestion),
}

var artifactFlag = &cli.StringFlag{Name: "artifact", Usage: "answer only the part of a draft with this `URI`"}

var rejectCommand = &cli.Command{
	Name: "reject", Aliases: []string{"deny", "refuse"}, ArgsUsage: "[ID|NAME] [OPTION…]", Usage: "refuse what an agent asks for",
	UsageText: `atm reject 9f3a1c --reason "Use the staging host."
atm reject bob`,
	Description: "The reason goes to the agent as a message, which it gets when it is idle.",
	Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Aliases: []string{"r", "m", "message"}, Usage: "say `WHY`, and what to do instead"}, artifactFlag,
		cmdline.NoFlag("all", "atm pending lists the open questions; atm reject NAME, one at a time")},
	Action: command.With(app.OpenTeam, answerQuestion),
}

func answerQuestion(c *cli.Context, s *app.Scope, p *command.Printer) error {
	a := app.Answer{IsDeny: c.Command.Name == "reject", Option: strings.Join(c.Args().Tail(), " "), Reason: c.String("reason"), Artifact: c.String("artifact")}
	if c.NArg() > 1 && strings.TrimSpace(a.Option) == "" || c.IsSet("artifact") && a.Artifact == "" {
		return failure.Usage("the option or the artifact is empty").WithHint("leave it out to answer as usual, or the whole draft")
	}
	if text := a.Reason + a.Artifact; !utf8.ValidString(text) {
		return app.CheckText(text)
	}
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	if c.NArg() == 0 {
		return whichQuestion(ctx, c, s)
	}
	s, err := s.Acting()
	if err != nil {
		return err
	}
	q, err := findQuestion(ctx, c, s)
	if err != nil {
		return err
	}
	o, err := s.Decide(ctx, q, a)
	r := resultOf(q.Agent, o)
	return p.PrintUnlessError(err, r, r.String())
}

// whichQuestion is the error for an answer to no question. It names the open ones, and takes not even the only one: it
// may not be the one that the user has seen.
func whichQuestion(ctx context.Context, c *cli.Context, s *app.Scope) error {
	e := failure.Usage("%s needs ID|NAME", c.Command.HelpName).WithHint("atm pending lists the open questions")
	list, err := s.Team.PendingQuestions(ctx)
	for _, q := range list {
		e.WithCandidates(cmp.Or(q.Short(), string(q.Agent)))
	}
	if err == nil && len(list) == 1 {
		e.Message += fmt.Sprintf("; one question is open: %s: %s", list[0].Agent, subject(list[0]))
		e.WithHint("%s %s", c.Command.HelpName, e.Candidates[0])
	}
	return e
}

// findQuestion finds the open question that the first argument means. If only an event reports it so far, it waits
// for the runner to give it an id.
func findQuestion(ctx context.Context, c *cli.Context, s *app.Scope) (q policy.Question, err error) {
	word := c.Args().First()
	a, notName := s.Address(word)
	if notName == nil && a.Team == s.Team.Name { // @bob, bob@main or bob@build; an id stays what it is
		word = strings.TrimSuffix(string(a.Agent+"@"+a.Host), "@")
	}
	for end := time.Now().Add(seenWithin); ; {
		list, _ := s.Team.PendingQuestions(ctx) // atm pending warns of what cannot be read
		q, err = policy.Find(list, word)
		lacksID := err == nil && !q.IsWhole(time.Now())
		if !lacksID || time.Now().After(end) || !app.Sleep(ctx, pollEvery) {
			break
		}
	}
	if many, ok := errors.AsType[*policy.ManyQuestionsError](err); ok {
		var ids []string
		for _, q := range many.Questions {
			ids = append(ids, q.Short())
		}
		return q, failure.Ambiguous("%s", many).WithHint("name one by its id: %s", strings.Join(ids, " ")).WithCandidates(ids...)
	}
	if _, notID := wire.ParseFragment(word); err != nil && notID != nil && a.Host == "" {
		if _, unknown := s.Member(word); unknown != nil {
			e := command.Given(c).Explain(unknown)
			hint := "atm pending lists the open questions; " + e.Hint
			return q, e.WithHint("%s", cmp.Or(cmdline.Meant(c.App, c.Command, word), hint)) // approve all
		}
	}
	return q, err
}
