package setup

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
)

var linkCommand = &cli.Command{
	Name: "link", Category: "unlink    atm link --remove LINK", ArgsUsage: "[DIR]", Usage: "write to another project on this machine, and get mail from it",
	UsageText: `atm link ../web --as web      here; and there: atm link ../app --as app
atm send bob@web "…"          @web is its whole team
atm link                      lists them
atm link --remove web`,
	Description: `--as is what the other project is called here. Both sides have to say it, and both need a team of
the same name. Mail goes right into the mailbox there. To see or to run its members, name its root:
atm team --root ../web/.atm.`,
	Flags:  []cli.Flag{&cli.StringFlag{Name: "remove", Usage: "end the link `LINK`; the other side's stays"}},
	Action: command.With(app.OpenTeam, link),
}

// links is what link prints.
type links struct {
	Links []app.Linked `json:"links"`
}

func (l links) String() string {
	if len(l.Links) == 0 {
		return "no links: atm link DIR --as NAME makes one"
	}
	var lines []string
	for _, one := range l.Links {
		line := fmt.Sprintf("%s  %s", one.Name, letter.Escape(one.Root))
		if one.KnownAs != "" {
			line += fmt.Sprintf("  (this project is %s there)", one.KnownAs)
		}
		if lines = append(lines, line); one.Problem != "" {
			lines = append(lines, "  "+letter.Escape(one.Problem+"; "+one.Hint))
		}
	}
	return strings.Join(lines, "\n")
}

func link(c *cli.Context, s *app.Scope, p *command.Printer) error {
	dir, as := c.Args().First(), s.Given.As
	s.Given.As = "" // it is no identity here
	switch {
	case c.IsSet("remove"):
		return unlink(c, s, p)
	case dir == "" && as == "":
		all, err := s.Linked()
		return p.PrintUnlessError(err, links{all}, links{all}.String())
	case dir == "":
		return failure.Usage("--as %s: which project?", as).WithHint("`atm link ../web --as web`")
	case as == "":
		return failure.Usage("what is %s called here?", letter.Quote(dir, 200)).WithHint("`atm link %s --as NAME`; then its bob is bob@NAME", policy.Quote(dir))
	}
	if err := s.MayAct(policy.Link, ""); err != nil {
		return err
	}
	made, err := s.Link(dir, as)
	if err != nil {
		return err
	}
	all, err := s.Linked()
	for _, one := range all {
		if one.Name != made.Name {
			continue
		}
		text := p.Say("%s is linked: `atm send NAME@%[1]s \"…\"`", one.Name)
		if one.Problem != "" {
			text = fmt.Sprintf("%s is %s, but %s; %s", one.Name, letter.Escape(one.Root), letter.Escape(one.Problem), one.Hint)
		}
		return p.Confirming().PrintUnlessError(err, one, text)
	}
	return err
}

func unlink(c *cli.Context, s *app.Scope, p *command.Printer) error {
	name := c.String("remove")
	if c.NArg() > 0 {
		return failure.Usage("--remove ends a link: no DIR beside it").WithHint("`atm link --remove %s`", policy.Quote(name))
	}
	if err := s.MayAct(policy.Link, ""); err != nil {
		return err
	}
	return p.Confirming().PrintUnlessError(s.Unlink(name), map[string]any{"name": name}, name+" is not linked any more")
}
