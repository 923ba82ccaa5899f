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
	Action: doctor,
}

func doctor(c *cli.Context) error {
	s, err := command.OpenRoot(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	checks := s.Root.Doctor(ctx, command.Place(c), c.Bool("fix"))
	place := installPlace(c)
	for _, tool := range agentconfig.Tools {
		checks = append(checks, checkHooks(place, tool, false)...)
		checks = append(checks, checkHooks(place, tool, true)...)
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
	document := struct {
		Checks []teams.Check `json:"checks"`
	}{checks}
	if err := command.Print(c, result{document, b.String()}); err != nil {
		return err
	}
	if isWrong {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// checkHooks looks at the hooks in a tool's configuration, the user's or this
// worktree's. Where there are none there is nothing to say.
func checkHooks(place agentconfig.Installer, tool string, local bool) []teams.Check {
	check := teams.Check{Code: "hooks." + tool, Severity: "ok", Fix: "atm install " + tool}
	if local {
		check.Fix += " --local"
	}
	found, err := place.FindHooks(tool, local)
	switch {
	case err != nil:
		check.Severity, check.Fix = "info", ""
		check.Message = fmt.Sprintf("whether %s has hooks is not known: %v", tool, err)
	case found.Program == "":
		return nil
	case found.Missing:
		check.Severity = "error"
		check.Message = fmt.Sprintf("the hooks in %s run %s, which is not there: %s gets no mail in its turns", found.Path, found.Program, tool)
	default:
		check.Fix = ""
		check.Message = fmt.Sprintf("hooks of %s in %s", tool, found.Path)
	}
	return []teams.Check{check}
}
