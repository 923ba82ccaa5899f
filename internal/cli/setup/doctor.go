package setup

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var doctorCommand = &cli.Command{
	Name: "doctor", Aliases: []string{"diagnose", "fsck"}, Usage: "check everything, and name the command that mends it",
	UsageText:   "atm doctor\natm doctor --fix",
	Description: "Root, team.toml line by line, locks, disk, stray files, runners, hooks. Exit 1 when something\nis wrong.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "fix", Aliases: []string{"repair"}, Usage: "mend what can be mended without loss"},
	},
	Action: with(command.OpenRoot, doctor),
}

func doctor(c *cli.Context, s *command.Scope) error {
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	checks := s.Root.Doctor(ctx, command.Place(c), c.Bool("fix"))
	place := installPlace(c)
	for _, tool := range agentconfig.Tools {
		for _, flag := range []string{"", " --local"} {
			if h, err := place.FindHooks(tool, flag != ""); err == nil && h.Missing {
				checks = append(checks, teams.Check{Code: "hooks." + tool, Severity: "error", Fix: "atm install " + tool + flag,
					Message: fmt.Sprintf("the hooks in %s run %s, which is not there: %s gets no mail in its turns", h.Path, h.Program, tool)})
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	isWrong := false
	var b strings.Builder
	for _, check := range checks {
		isWrong = isWrong || check.Wrong()
		b.WriteString(check.Severity + ": " + letter.Escape(check.Message) + "\n")
		if check.Fix != "" {
			b.WriteString("  " + letter.Escape(check.Fix) + "\n")
		}
	}
	if !isWrong {
		b.WriteString("nothing is wrong\n")
	}
	if err := command.Print(c, result{map[string]any{"checks": checks}, b.String()}); err != nil {
		return err
	}
	if isWrong {
		return command.Exit(command.ExitFailed)
	}
	return nil
}
