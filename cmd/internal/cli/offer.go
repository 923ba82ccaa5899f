package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
)

func printOffers(w io.Writer, lists ...[]string) {
	for _, list := range lists {
		for _, word := range list {
			fmt.Fprintln(w, word)
		}
	}
}

// nameAt returns what a command's usage calls its argument behind n others: in [NAME…] it goes on; "": there is none.
func nameAt(c *cli.Command, n int) string {
	names := cmdline.ArgNames(c)
	if strings.HasSuffix(strings.TrimSuffix(c.ArgsUsage, "]"), "…") {
		n = min(n, len(names)-1)
	}
	if n >= len(names) {
		return ""
	}
	return names[n]
}

// offers returns what an argument or a flag's value may be, by what the usage calls it. before are the arguments before
// it; begun is the beginning of a list, "bob,", of which the next one is asked for.
func offers(c *cli.Context, of *cli.Command, name string, before []string, begun string) (out []string) {
	switch name {
	case "SHELL":
		files, _ := scripts.ReadDir("completion")
		for _, f := range files {
			out = append(out, f.Name())
		}
		return out
	case "TOOL":
		return agentconfig.Tools()
	}
	s, err := app.OpenMeIfGiven(command.Given(c))
	if err != nil {
		return nil
	}
	switch name {
	case "TO", "AGENT", "NAME":
		names := app.Strings(s.Names())
		if groups, _ := presence.Groups(s.Team); name == "TO" {
			for _, group := range slices.Sorted(maps.Keys(groups)) {
				names = append(names, "@"+string(group))
			}
		}
		for _, one := range names {
			if !slices.Contains(strings.Split(begun, ","), one) {
				out = append(out, begun+one)
			}
		}
	case "LINK":
		links, _ := s.Root.Links()
		for _, l := range links {
			out = append(out, string(l.Name))
		}
	case "ID|NAME":
		return questionOffers(c, s)
	case "OPTION":
		return optionOffers(c, of, s, before)
	case "ID":
		if s.Me != nil && !strings.Contains(of.HelpName, "session ") {
			ids, _ := s.Me.IDs(maildir.Range{Unread: true, Owed: true, Done: true, Sent: true, Newest: true, Limit: 100})
			return strings.Fields(app.Shorts(ids))
		}
	}
	return out
}

// questionOffers are who waits for an answer, and the ids of what they ask.
func questionOffers(c *cli.Context, s *app.Scope) (out []string) {
	questions, _ := presence.PendingQuestions(c.Context, s.Team)
	for _, q := range questions {
		for _, word := range []string{string(q.Agent), q.Short()} {
			if word != "" && !slices.Contains(out, word) {
				out = append(out, word)
			}
		}
	}
	return out
}

// optionOffers are the options of the question that the first argument means: those that reject for reject, the others for
// approve, all that say neither for both. One whose id has blanks is offered as its number.
func optionOffers(c *cli.Context, of *cli.Command, s *app.Scope, before []string) (out []string) {
	questions, _ := presence.PendingQuestions(c.Context, s.Team)
	q, err := ask.Find(questions, before[0])
	if err != nil || len(before) > 1 {
		return nil
	}
	for i, o := range q.Options {
		if o.Kind != "" && o.Denies() != (of.Name == "reject") {
			continue
		}
		word := o.ID
		if word == "" || strings.ContainsAny(word, " \t\n") {
			word = strconv.Itoa(i + 1)
		}
		out = append(out, word)
	}
	return out
}
