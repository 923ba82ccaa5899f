package setup

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/doctor"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

var doctorCommand = &cli.Command{
	Name: "doctor", Aliases: []string{"fsck", "health"}, Usage: "check everything, and name the command that fixes it",
	UsageText: `atm doctor
atm doctor --fix`,
	Description: `Checks the root, team.toml, locks, disk, stray files, runners and hooks.
Exits 1 if something is wrong.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "fix", Aliases: []string{"repair"}, Usage: "fix what can be fixed without loss"},
	},
	Action: command.With(app.OpenRoot, runDoctor),
}

func runDoctor(c *cli.Context, s *app.Scope, p *command.Printer) error {
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	checks := append(doctor.Examine(ctx, s.Root, p.Place(), c.App.Version, c.Bool("fix")), checkHooks(newInstaller(c))...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := ""
	for i := range checks {
		checks[i].Fix = p.Commands(checks[i].Fix)
		text += checks[i].Severity + ": " + letter.Escape(checks[i].Message) + "\n"
		if checks[i].Fix != "" {
			text += "  " + letter.Escape(checks[i].Fix) + "\n"
		}
	}
	isWrong := slices.ContainsFunc(checks, doctor.Check.IsProblem)
	if !isWrong {
		text += "nothing is wrong"
	}
	if err := p.PrintAs(map[string]any{"checks": checks}, text); err != nil || !isWrong {
		return err
	}
	return failure.Exit(failure.ExitFailed)
}

// checkHooks checks what atm install has set up.
func checkHooks(installer agentconfig.Installer) (checks []doctor.Check) {
	for _, tool := range agentconfig.Tools() {
		if fault, fix := installer.Fault(tool); fault != "" {
			checks = append(checks, doctor.Check{Code: "hooks." + tool, Severity: "warning", Message: fault, Fix: fix})
		}
	}
	return checks
}
