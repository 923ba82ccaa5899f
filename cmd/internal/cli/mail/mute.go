package mail

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var muteCommand = &cli.Command{
	Name: "mute", ArgsUsage: "[NAME…]", Usage: "be given no mail of somebody's for a while, or list whose",
	UsageText: `atm mute carol --for 2h
atm mute carol
atm mute`,
	Description: `Their mail is kept unread, and they are told so: atm ls and atm read show it, atm unmute and the end
of the time bring it. Answers to what you asked them, acks and atm's own notices come all the same.`,
	Flags:  []cli.Flag{cmdline.DurationFlag("for", 0, "it ends after `D`: 2h, 1d; without it atm unmute ends it")},
	Action: command.With(app.OpenMe, mute),
}

var unmuteCommand = &cli.Command{
	Name: "unmute", ArgsUsage: "NAME…", Usage: "be given somebody's mail again",
	UsageText: `atm unmute carol`,
	Action:    command.With(app.OpenMe, unmute),
}

// muted is the JSON of mute.
type muted struct {
	Muted []teamdir.Mute `json:"muted"`
}

func mute(c *cli.Context, s *app.Scope, p *command.Printer) error {
	words, lasts, isTimed := c.Args().Slice(), cmdline.Duration(c, "for"), c.IsSet("for")
	if n := len(words); n > 2 && words[n-2] == "for" && !isTimed { // mute carol for 2h
		d, err := cmdline.ParseDuration(words[n-1])
		if err != nil {
			return failure.Usage("for %q: %v", words[n-1], err).WithHint("`atm mute NAME --for 2h`")
		}
		words, lasts, isTimed = words[:n-2], d, true
	}
	switch {
	case isTimed && len(words) == 0:
		return failure.Usage("mute whom?").WithHint("`atm mute NAME --for 2h`; `atm mute` lists those that are")
	case isTimed && lasts <= 0:
		return failure.Usage("--for %s: must be above 0", lasts).WithHint("`atm mute NAME --for 2h`; without --for it lasts until `atm unmute NAME`")
	case len(words) == 0:
		return listMuted(s, p)
	}
	who, err := mutable(s, words)
	if err != nil {
		return err
	}
	var until time.Time
	if isTimed {
		until = time.Now().Add(lasts).UTC()
	}
	var done muted
	var text strings.Builder
	for _, a := range who {
		m := teamdir.Mute{Who: a, Until: until}
		done.Muted = append(done.Muted, m)
		fmt.Fprintf(&text, "muted %s%s: %s ends it\n", s.Who(a), untilText(m), p.Command("atm unmute "+s.Who(a)))
	}
	err = s.Team.ChangeMutes(c.Context, s.Me.Agent(), func(all []teamdir.Mute) []teamdir.Mute {
		return append(without(all, who), done.Muted...)
	})
	return p.PrintUnlessError(err, done, text.String())
}

func unmute(c *cli.Context, s *app.Scope, p *command.Printer) error {
	who, err := mutable(s, c.Args().Slice())
	if err != nil {
		return err
	}
	var ended []wire.Address
	err = s.Team.ChangeMutes(c.Context, s.Me.Agent(), func(all []teamdir.Mute) []teamdir.Mute {
		for _, m := range all {
			if slices.Contains(who, m.Who) {
				ended = append(ended, m.Who)
			}
		}
		return without(all, who)
	})
	var text strings.Builder
	for _, a := range ended {
		fmt.Fprintf(&text, "unmuted %s\n", s.Who(a))
	}
	if err == nil && len(ended) == 0 {
		err = failure.NotFound("%s has not muted %s", s.Me.Agent(), strings.Join(c.Args().Slice(), ", ")).WithHint("`atm mute` lists those that are")
	}
	return p.PrintUnlessError(err, map[string]any{"unmuted": ended}, text.String())
}

// mutable returns whom words name, if this process may mute them for me and give me their mail again.
func mutable(s *app.Scope, words []string) (who []wire.Address, err error) {
	for _, word := range words {
		if strings.Trim(word, "@") == "" { // "$UNSET"
			return nil, failure.Usage("whom? a name is empty").WithHint("`atm team` shows the names")
		}
		found, err := s.Correspondents(word)
		if err != nil {
			return nil, err
		}
		if slices.Contains(found, s.Me.Address()) {
			return nil, failure.Usage("%s is you: nobody mutes themselves", s.Me.Agent()).WithHint("`atm mute NAME`, of somebody else")
		}
		for _, a := range found {
			if !slices.Contains(who, a) {
				who = append(who, a)
			}
		}
	}
	err = s.MayAct("mute for", s.Me.Agent())
	if actor, isInAgent := s.Actor(); err == nil && isInAgent && actor == s.Me.Agent() {
		err = s.MayWrite() // a program that only says that it is this agent
	}
	return who, err
}

func without(all []teamdir.Mute, who []wire.Address) []teamdir.Mute {
	return slices.DeleteFunc(all, func(m teamdir.Mute) bool { return slices.Contains(who, m.Who) })
}

func listMuted(s *app.Scope, p *command.Printer) error {
	all, err := s.Team.Mutes(s.Me.Agent())
	var text strings.Builder
	for _, m := range all {
		fmt.Fprintf(&text, "%s%s\n", s.Who(m.Who), untilText(m))
	}
	if len(all) == 0 {
		text.WriteString("nobody is muted")
	}
	return p.PrintUnlessError(err, muted{append([]teamdir.Mute{}, all...)}, text.String())
}

// untilText is " until 15:04:05", or "" without a time.
func untilText(m teamdir.Mute) string {
	if m.Until.IsZero() {
		return ""
	}
	return " until " + letter.Stamp(m.Until)
}
