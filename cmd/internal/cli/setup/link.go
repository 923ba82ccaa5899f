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
	"github.com/agentteammail/atm/wire"
)

var linkCommand = &cli.Command{
	Name: "link", ArgsUsage: "[DIR]", Usage: "exchange mail with another project on this machine",
	UsageText: `atm link ../web --as web      here; and there: atm link ../app --as app
atm send bob@web "…"
atm link                      lists them`,
	Description: `--as is what the other project is called here. Until both sides have said it, mail waits.
Both need a team of the same name. Nothing runs: each command carries what it sends, and fetches
what it shows. Its members are as on another machine: you see their states and questions, and may
answer where approvers there names you (me@app).`,
	Action: command.With(app.OpenTeam, link),
}

var unlinkCommand = &cli.Command{
	Name: "unlink", ArgsUsage: "LINK", Usage: "end a link to another project",
	UsageText: "atm unlink web",
	Description: `Mail that waits for it stays, and goes to whichever project gets this name again; atm withdraw ID
takes it back.`,
	Action: command.With(app.OpenTeam, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		if err := s.MayAct(policy.Link, ""); err != nil {
			return err
		}
		name := c.Args().First()
		waiting, err := s.Unlink(name)
		text := name + " is unlinked"
		if len(waiting) > 0 {
			text += fmt.Sprintf("; %s waiting for it: %s", letter.Many(len(waiting), "message"), app.Shorts(waiting))
		}
		return p.PrintUnlessError(err, map[string]any{"name": name, "waiting": append([]wire.ID{}, waiting...)}, text)
	}),
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
		if len(one.Waiting) > 0 {
			line += "  " + letter.Many(len(one.Waiting), "message") + " waiting"
		}
		if one.KnownAs != "" {
			line += fmt.Sprintf("  (this project is %s there)", one.KnownAs)
		}
		if lines = append(lines, line); one.Problem != "" {
			lines = append(lines, "  "+letter.Escape(one.Problem))
		}
	}
	return strings.Join(lines, "\n")
}

func link(c *cli.Context, s *app.Scope, p *command.Printer) error {
	dir, as := c.Args().First(), s.Given.As
	s.Given.As = "" // it is no identity here
	switch {
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
	s.Exchange(c.Context)
	all, err := s.Linked()
	for _, one := range all {
		if one.Name != made.Name {
			continue
		}
		text := fmt.Sprintf("%s is linked: atm send NAME@%[1]s \"…\"", one.Name)
		if one.KnownAs == "" {
			text = fmt.Sprintf("%s is %s, and mail for it waits: %s", one.Name, letter.Escape(one.Root), letter.Escape(one.Problem))
		}
		return p.PrintUnlessError(err, one, text)
	}
	return err
}
