package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

var searchCommand = &cli.Command{
	Name: "search", Aliases: []string{"grep", "find", "query"}, ArgsUsage: "[WORDS…]", Usage: "search every message of the team",
	UsageText: `atm search flaky test from:alice since:7d
atm search in:new to:bob`,
	Description: `Finds messages with all words in subject or body, ignoring case; narrow it with from:, to:,
in:new|cur|done, since:, until:, type:, meta:K[=V] and is:urgent (from: and --from are the same).
Newest first.`,
	Flags: slices.Concat([]cli.Flag{
		limitFlag(), offsetFlag(),
		&cli.BoolFlag{Name: "turns", Usage: "in what agents were asked and answered, instead"},
		&cli.StringFlag{Name: "from", Hidden: true}, &cli.StringFlag{Name: "to", Hidden: true}, &cli.StringFlag{Name: "since", Hidden: true},
		&cli.StringFlag{Name: "until", Hidden: true}, &cli.StringFlag{Name: "in", Hidden: true},
	}, saysFlags),
	Action: command.With(app.OpenMeIfGiven, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		words := c.Args().Slice()
		if c.Bool("turns") {
			return searchTurns(c, s, p)
		}
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

// A foundTurn is a turn in which words were found, and its number: the agent's newest turn has 1.
type foundTurn struct {
	Agent  wire.Name `json:"agent"`
	Number int       `json:"number"`
	history.FullTurn
}

// searchTurns finds the turns of which the prompt and the response have all words, newest first.
func searchTurns(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if c.NArg() == 0 {
		return failure.Usage("atm search --turns needs WORDS").WithHint("`atm search --turns flaky test`")
	}
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains([]string{"turns", "limit", "offset", "from"}, name) {
			return failure.Usage("--%s is for messages, and --turns looks in turns", name).WithHint("leave one out")
		}
	}
	agents, err := s.Team.Agents()
	if err == nil && c.IsSet("from") {
		var box *maildir.Box
		if box, err = s.Member(c.String("from")); err == nil {
			agents = []wire.Name{box.Agent()}
		}
	}
	if err != nil {
		return err
	}
	words, found := strings.Fields(strings.ToLower(strings.Join(c.Args().Slice(), " "))), []foundTurn{}
	var unreadable error
	for _, agent := range agents {
		turns, err := s.Team.Turns(agent, 0)
		unreadable = errors.Join(unreadable, err)
		for i, t := range turns {
			text := strings.ToLower(t.Prompt + "\n" + t.Response)
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
				found = append(found, foundTurn{agent, len(turns) - i, t})
			}
		}
	}
	if err := p.WarnUnreadable(unreadable); err != nil {
		return err
	}
	began := func(t foundTurn) time.Time {
		if t.Began == nil {
			return time.Time{}
		}
		return *t.Began
	}
	slices.SortStableFunc(found, func(a, b foundTurn) int { return began(b).Compare(began(a)) })
	found = found[min(c.Int("offset"), len(found)):]
	shown := found
	if limit := c.Int("limit"); limit > 0 {
		shown = found[:min(limit, len(found))]
	}
	text := ""
	for _, t := range shown {
		text += fmt.Sprintf("%s %s\n", t.Agent, command.Turns(t.Agent, []history.FullTurn{t.FullTurn}, command.TurnsShown{Last: t.Number, IsNumbered: true}))
	}
	more := len(found) - len(shown)
	if err := p.PrintAs(map[string]any{"turns": shown, "more": more}, cmp.Or(text, "no match")); err != nil {
		return err
	}
	warnMore(p, more, c.Int("offset")+len(shown))
	return nil
}
