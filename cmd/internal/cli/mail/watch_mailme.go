package mail

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
)

// mailMe sets, ends or lists what I get mail about.
func mailMe(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmdline.Only(c, "mail-me"); err != nil {
		return err
	}
	words := strings.Join(c.Args().Slice(), " ")
	if words != "" {
		wants, err := subscriptions(s, words)
		if err == nil {
			err = notices.Subscribe(c.Context, s.Team, s.Me.Agent(), wants)
		}
		if err != nil {
			return err
		}
	}
	wants, err := notices.Subscriptions(s.Team, s.Me.Agent())
	if err != nil {
		return err
	}
	lines := make([]string, len(wants)) // in JSON none is [], not null
	for i, w := range wants {
		lines[i] = w.String()
	}
	text := "you get mail when: " + letter.Escape(strings.Join(lines, ", "))
	if len(wants) == 0 {
		text = "you get no mail about others"
	}
	return p.PrintAs(map[string][]string{"mail_me": lines}, text)
}

// subscriptions parses "idle bob, error *". "none" is nothing.
func subscriptions(s *app.Scope, text string) (all []notices.Subscription, err error) {
	if text == "none" {
		return nil, nil
	}
	known := notices.SubscriptionEvents()
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) != 2 {
			return nil, failure.Usage("%q is not a state and a member", strings.TrimSpace(part)).
				WithHint("in quotes, because of the *: `atm watch --mail-me 'idle bob, error *'`")
		}
		w := notices.Subscription{Event: words[0], Agent: words[1]}
		if !slices.Contains(known, w.Event) {
			return nil, failure.Usage("%q is not a state that mail can be about", w.Event).
				WithHint("there are: %s", strings.Join(known, ", ")).WithNearest(w.Event, known)
		}
		if w.Agent == "all" {
			w.Agent = notices.Everybody
		}
		if w.Agent != notices.Everybody {
			if w.Agent, err = watchable(s, w.Agent); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all, nil
}

// watchable returns the name of a member whose state events tell.
func watchable(s *app.Scope, word string) (string, error) {
	box, err := s.Member(word)
	if err != nil {
		return "", err
	}
	a := box.Address()
	switch {
	case a.Team != s.Team.Name:
		return "", failure.Usage("%s is of another team", a).WithHint("`atm watch --mail-me --team %s`", a.Team)
	case a.Agent == s.Me.Agent():
		return "", failure.Usage("you are %s yourself", a.Agent).WithHint("`atm status %s`", a.Agent)
	case post.IsPerson(s.Root, a):
		return "", failure.Usage("%s is a person, whose state nobody knows", a.Agent).WithHint("`atm team`")
	}
	return string(a.Agent), nil
}
