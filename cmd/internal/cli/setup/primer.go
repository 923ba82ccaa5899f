package setup

import (
	"cmp"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/teamdir/programs"
)

var primerCommand = &cli.Command{
	Name: "primer", ArgsUsage: "[AGENT]", Usage: "what an agent needs to know",
	UsageText:   "atm primer --as bob",
	Description: "In Codex, !atm primer NAME also says which member a session is that could be several's.",
	Action:      primer,
}

func primer(c *cli.Context) error {
	p := command.PrinterOf(c)
	p.As = cmp.Or(c.Args().First(), p.As)
	s, missing, err := app.OpenOptional(p.Given)
	if err == nil && s.Team == nil {
		err = missing
	}
	if err != nil {
		return err
	}
	s.WarnUnaccepted()
	if p.As != "" && s.Me != nil && !s.IsPersons() && s.MayWrite() == nil {
		isBound, err := programs.Bind(s.Team, s.Me.Agent())
		if err != nil {
			return err
		}
		if isBound { // no command needs --as any more
			s.MeSource = ""
		}
	}
	text, err := s.Primer(primerVerbs(c), false)
	if s.Me != nil && s.IsInAgent() { // OpenCode's hooks have no other way to say it
		own := programs.This("")
		thread, _ := programs.ThreadOf(os.Getenv)
		if _, shows := programs.MemberOfThread(s.Root, thread); shows.IsRunning() {
			own.PID = shows.PID
		}
		if warning := app.SharingWarning(s.Team, s.Me.Agent(), own, s.MayWrite() == nil); warning != "" {
			text = "Careful: " + warning + "\n\n" + text
		}
	}
	return p.PrintUnlessError(err, map[string]string{"primer": text}, text)
}

// primerVerbs are the commands that a primer explains.
func primerVerbs(c *cli.Context) [][2]string {
	return cmdline.Explained(cmdline.LineOf(c).Program, "read", "reply", "send", "team")
}
