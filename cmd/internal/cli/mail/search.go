package mail

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir/search"
)

var searchCommand = &cli.Command{
	Name: "search", Category: "grep find query", ArgsUsage: "[WORDS…]", Usage: "search every message of the team",
	UsageText: `atm search flaky test from:alice since:7d
atm search in:new to:bob`,
	Description: `Finds messages with all words in subject or body, ignoring case; narrow it with from:, to:,
in:new|cur|done, since:, until:, type:, meta:K[=V] and is:urgent (from: and --from are the same).
Newest first.`,
	Flags: slices.Concat([]cli.Flag{
		limitFlag(), offsetFlag(),
		&cli.StringFlag{Name: "from", Hidden: true}, &cli.StringFlag{Name: "to", Hidden: true}, &cli.StringFlag{Name: "since", Category: "after", Hidden: true},
		&cli.StringFlag{Name: "until", Category: "before", Hidden: true}, &cli.StringFlag{Name: "in", Hidden: true},
	}, saysFlags),
	Action: command.With(app.OpenMeIfGiven, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		words := c.Args().Slice()
		q := search.Query{From: c.String("from"), To: c.String("to"), In: c.String("in")}
		var err error
		if q.Since, err = sinceFlag(c, "since"); err == nil {
			q.Until, err = sinceFlag(c, "until")
		}
		if err == nil {
			q.Says, err = saysOf(c, s)
		}
		if err != nil {
			return err
		}
		isNarrowed := q.From+q.To+q.In != "" || !q.Since.IsZero() || !q.Until.IsZero() || !q.IsAll()
		if strings.TrimSpace(strings.Join(words, "")) == "" && !isNarrowed {
			return failure.Usage("atm search needs WORDS").WithHint("%s", cmdline.LineOf(c).Completed("WORDS", "from:NAME", "to:NAME"))
		}
		return Search(c.Context, s, p, q, words, c.Int("offset"), c.Int("limit"))
	}),
}

// Search prints the messages that a query and words select, filters such as from: among them: those behind the first ones, up
// to a limit; 0: all.
func Search(ctx context.Context, s *app.Scope, p *command.Printer, q search.Query, words []string, offset, limit int) error {
	ifEmpty := "no match"
	if strings.Contains(strings.Join(words, " "), ":") {
		ifEmpty += "; the filters are from:, to:, in:, since:, until:, type:, meta: and is:urgent"
	}
	s.Team.Progress = p.Progress("searching: %d messages")
	items, err := command.Search(ctx, s, q, words)
	if err != nil && len(items) == 0 { // what could not be read may match
		return err
	} else if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	r := p.Renderer(s)
	r.Whole = true
	return newListing(p, items, s.Me).printLines(p, r, offset, limit, ifEmpty)
}
