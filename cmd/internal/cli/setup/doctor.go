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
	"github.com/agentteammail/atm/internal/policy"
)

var doctorCommand = &cli.Command{
	Name: "doctor", Category: "fsck health diagnose\nretry redeliver    atm doctor --fix ID\ndriver drivers    atm doctor --driver claude", ArgsUsage: "[WHAT]", Usage: "check everything, and name the command that fixes it",
	UsageText: `atm doctor
atm doctor --fix
atm doctor --fix bob/notes.json     try again what was set aside, by its file or id
atm doctor --driver claude          what atm knows of a program: its screen, keys and triggers
atm doctor --driver claude bob      what it reads from bob's terminal, or from a recording`,
	Description: `Checks the root, team.toml, locks, disk, stray files, runners and hooks, and lists what was set
aside: files that are no mail, and mail that was typed in and not accepted. Mend the cause, then
--fix it; nobody gets twice what they got before. Exits 1 if something is wrong.
A driver is a file that says what an agent program looks like. Yours are in ~/.config/atm/drivers,
as NAME.toml; they win over built-in ones. docs/drivers.md shows how to write one.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "fix", Category: "repair", Usage: "fix what can be fixed without loss"},
		&cli.StringFlag{Name: "driver", Usage: "look at this `DRIVER`; all lists them"},
	},
	Action: func(c *cli.Context) error {
		if c.IsSet("driver") {
			return lookAtDriver(c)
		}
		return command.With(app.OpenRoot, runDoctor)(c)
	},
}

func runDoctor(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if word := c.Args().First(); word != "" && c.Bool("fix") {
		return retry(c, p, word)
	} else if word != "" {
		return failure.Usage("what about %q?", word).WithHint("`atm doctor --fix %s` tries it again", policy.Quote(word))
	}
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

// retry has something that was set aside tried again.
func retry(c *cli.Context, p *command.Printer, word string) error {
	s, err := app.OpenMeIfGiven(p.Given)
	if err != nil {
		return err
	}
	did, err := s.Retry(c.Context, word)
	if err != nil {
		return err
	}
	return p.Confirming().PrintAs(map[string]any{"retried": did}, did.Text())
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
