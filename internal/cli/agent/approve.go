package agent

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var approveCommand = &cli.Command{
	Name: "approve", Aliases: []string{"confirm", "accept", "allow", "grant"}, ArgsUsage: "ID|NAME [OPTION…]", Usage: "allow what an agent asks for",
	UsageText: "atm approve 9f3a1c\natm approve bob\natm approve bob 2",
	Description: "NAME: that agent's only open question. Without OPTION: the one that allows it once; else\n" +
		"its number, its label or the beginning of that.\n" +
		"Approvers of team.toml may; else people, and the lead for others. Never oneself.",
	Action: command.With(command.OpenTeam, answerQuestion),
}

var rejectCommand = &cli.Command{
	Name: "reject", Aliases: []string{"deny", "refuse"}, ArgsUsage: "ID|NAME [OPTION…]", Usage: "refuse what an agent asks for",
	UsageText:   "atm reject 9f3a1c --reason \"Use the staging host.\"\natm reject bob",
	Description: "The reason goes to the agent as a message, which it gets when it is idle.",
	Flags:       []cli.Flag{&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "`WHY`, and what to do instead"}},
	Action:      command.With(command.OpenTeam, answerQuestion),
}

func answerQuestion(c *cli.Context, s *command.Scope) error {
	a := command.Answer{IsDeny: c.Command.Name == "reject", Option: strings.Join(c.Args().Tail(), " "), Reason: c.String("reason")}
	if c.IsSet("reason") && strings.TrimSpace(a.Reason) == "" {
		return command.Usage("--reason is empty").WithHint("leave it out, or say why")
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	s, err := s.Acting()
	if err != nil {
		return err
	}
	q, err := awaitQuestion(ctx, s, c.Args().First())
	if err != nil {
		e := command.Explain(c, err)
		if _, isUnknown := errors.AsType[*teams.UnknownError](err); isUnknown {
			e.WithHint("atm pending lists what is asked; %s", e.Hint)
		}
		return e
	}
	o, err := s.Decide(ctx, q, a)
	if err != nil {
		return err
	}
	return command.Print(c, result{Name: q.Agent, State: o.Done, Detail: o.Detail, Ended: o.Ended})
}

// awaitQuestion is findQuestion, and waits for the id that a runner gives to what only an event has told yet.
func awaitQuestion(ctx context.Context, s *command.Scope, word string) (policy.Question, error) {
	for end := time.Now().Add(seenWithin); ; {
		q, err := findQuestion(ctx, s, word)
		getsID := err == nil && q.ID == "" && q.Running
		if !getsID || time.Now().After(end) || !sleep(ctx, probeEvery) {
			return q, err
		}
	}
}

func findQuestion(ctx context.Context, s *command.Scope, word string) (policy.Question, error) {
	list, _ := s.Team.Waiting(ctx) // atm pending says what cannot be read
	a, notName := s.Address(word)
	if notName == nil && a.Team == s.Team.Name { // @bob, bob@main or bob@build; an id stays what it is
		word = strings.TrimSuffix(string(a.Agent+"@"+a.Host), "@")
	}
	q, err := policy.Find(list, word)
	if many, ok := errors.AsType[*policy.ManyQuestionsError](err); ok {
		var ids []string
		for _, q := range many.Questions {
			ids = append(ids, cmp.Or(q.Short(), "-"))
		}
		return q, command.Ambiguous("%s", many).WithHint("name one by its id: %s", strings.Join(ids, " ")).WithCandidates(ids...)
	}
	if _, notID := wire.ParseFragment(word); err != nil && notID != nil && a.Host == "" {
		if _, unknown := s.Member(word); unknown != nil {
			return q, unknown
		}
	}
	return q, err
}
