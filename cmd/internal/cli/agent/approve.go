package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

var approveCommand = &cli.Command{
	Name: "approve", Category: "! confirm accept allow grant permit yes", ArgsUsage: "[ID|NAME] [OPTION…]", Usage: "allow what an agent asks for",
	UsageText: `atm approve 9f3a1c
atm approve bob
atm approve bob 2`,
	Description: `NAME stands for that agent's only open question. OPTION is its number, its label or the beginning
of its label; default: the option that allows it once. The approvers in team.toml may answer;
without them people, and the lead for other agents. Nobody may answer for themselves.`,
	Flags: []cli.Flag{
		artifactFlag,
	},
	Action: command.With(app.OpenTeam, answerQuestion),
}

var artifactFlag = &cli.StringFlag{Name: "artifact", Usage: "answer only the part of a draft with this `URI`"}

var rejectCommand = &cli.Command{
	Name: "reject", Category: "! deny refuse no", ArgsUsage: "[ID|NAME] [OPTION…]", Usage: "refuse what an agent asks for",
	UsageText: `atm reject 9f3a1c --reason "Use the staging host."
atm reject bob`,
	Description: "The reason goes to the agent as a message, which it gets when it is idle.",
	Flags:       []cli.Flag{&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Category: "message", Usage: "say `WHY`, and what to do instead"}, artifactFlag},
	Action:      command.With(app.OpenTeam, answerQuestion),
}

func answerQuestion(c *cli.Context, s *app.Scope, p *command.Printer) error {
	a := ask.Answer{Deny: c.Command.Name == "reject", Option: strings.Join(c.Args().Tail(), " "), Reason: c.String("reason"), Artifact: c.String("artifact")}
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
	q, err := findQuestion(ctx, s, c.Args().First())
	if err != nil {
		return err
	}
	o, err := s.Decide(ctx, q, a)
	r := resultOf(q.Agent, o)
	return p.Confirming().PrintUnlessError(err, r, r.String())
}

// whichQuestion is the error for an answer to no question. It names the open ones, and takes not even the only one: it
// may not be the one that the user has seen.
func whichQuestion(ctx context.Context, c *cli.Context, s *app.Scope) error {
	e := failure.Usage("%s needs ID|NAME", s.Given.Verb).WithHint("`atm pending` lists the open questions")
	list, err := presence.PendingQuestions(ctx, s.Team)
	for _, q := range list {
		e.WithCandidates(cmp.Or(q.Short(), string(q.Agent)))
	}
	if err == nil && len(list) == 1 {
		e.Message += fmt.Sprintf("; one question is open: %s %s", list[0].Agent, subject(list[0]))
		e.WithHint("%s", cmdline.LineOf(c).Completed(e.Candidates[0]))
	}
	return e
}

// findQuestion finds the open question that a word means. If only an event reports it so far, it waits for the runner
// to give it an id.
func findQuestion(ctx context.Context, s *app.Scope, word string) (q ask.Question, err error) {
	a, notName := s.Team.ParseAddress(word)
	if notName == nil && a.Team == s.Team.Name { // @bob, bob@main or bob@build; an id stays what it is
		word = strings.TrimSuffix(string(a.Agent+"@"+a.Host), "@")
	}
	for end := time.Now().Add(seenWithin); ; {
		list, _ := presence.PendingQuestions(ctx, s.Team) // atm pending warns of what cannot be read
		q, err = ask.Find(list, word)
		lacksID := err == nil && q.Running && q.ID == "" && !q.OnChannel
		if !lacksID || time.Now().After(end) || !app.Sleep(ctx, pollEvery) {
			break
		}
	}
	if many, ok := errors.AsType[*ask.ManyQuestionsError](err); ok {
		var ids []string
		for _, q := range many.Questions {
			ids = append(ids, q.Short())
		}
		return q, failure.Ambiguous("%s", many).WithHint("name one by its id: %s", strings.Join(ids, " ")).WithCandidates(ids...)
	}
	if _, notID := wire.ParseFragment(word); err != nil && notID != nil && !s.Root.IsRemote(a) {
		if _, unknown := s.Member(word); unknown != nil {
			e := s.Given.Explain(unknown)
			return q, e.WithHint("`atm pending` lists the open questions; %s", e.Hint)
		}
	}
	return q, err
}
