package setup

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/hook"
)

var hookCommand = &cli.Command{
	Name: "hook", ArgsUsage: "TOOL", Usage: "called by an agent's hooks: records its events and hands it mail",
	UsageText: `atm hook claude < event.json`,
	Description: `TOOL: claude, codex, gemini, opencode; atm install TOOL sets it up.
claude-status: for the statusLine in Claude Code's settings; prints nothing.
Reads the tool's JSON from stdin, appends its events, and prints the answer for the tool.
Fails open: whatever goes wrong, one line on stderr, nothing on stdout, exit 0.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "brought", Hidden: true}, // it is called by a hook that atm run brings
		&cli.BoolFlag{Name: "wake", Hidden: true},    // older settings of Claude Code have it: nothing is done
	},
	Action: runHook,
}

// runHook returns errors as other verbs do; Report makes them fail open.
func runHook(c *cli.Context) error {
	exit, err := hook.Handle(c.Context, command.Given(c), hook.Options{
		Word: c.Args().First(), Verbs: primerVerbs(c), IsBrought: c.Bool("brought"), IsVoid: c.Bool("wake"), IsPatient: !c.IsSet("lock-timeout"),
	})
	if exit != 0 {
		return failure.Exit(exit)
	}
	return err
}
