package command

import (
	"cmp"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir"
)

// Prepare gives a program and its commands what they have in common.
func Prepare(program *cli.App) {
	cli.HelpFlag = nil                 // --help is among the flags of the program
	program.Compiled = time.Unix(0, 0) // else urfave/cli looks at the program's file
	program.HideHelp, program.HideVersion, program.DisableSliceFlagSeparator = true, true, true
	program.Metadata = map[string]any{}
	program.ExitErrHandler = func(*cli.Context, error) {} // Run reports it
	program.Before = func(c *cli.Context) error {
		program.Metadata[innermost] = c
		return nil
	}
	prepare(program, program.Commands)
}

// innermost is where Run finds the context of an error.
const innermost = "innermost"

func prepare(program *cli.App, commands []*cli.Command) {
	for _, c := range commands {
		c.HideHelp, c.Before = true, program.Before
		act := c.Action
		c.Action = func(c *cli.Context) error {
			if err := cmp.Or(cmdline.CheckWords(c), cmdline.CheckTimeout(c)); err != nil && !c.Bool("help") {
				return err
			}
			err := act(c)
			if unknown, ok := errors.AsType[*teamdir.UnknownError](err); ok && cmdline.HasFlag(c.Command, string(unknown.Name)) { // ls sent
				return failure.NotFound("%w", err).WithHint("did you mean `%s --%s`?", c.Command.HelpName, unknown.Name)
			}
			return err
		}
		prepare(program, c.Subcommands)
	}
}

// Run runs the command of a prepared program that a sorted line asks for, or refuses it for what Sort found, prints any
// error, and returns the exit code.
func Run(program *cli.App, line *cmdline.Line, err error) int {
	if err != nil {
		line.Instead(func(*cli.Context) error { return err })
	}
	err = line.Alone().Run(append([]string{program.Name}, line.Args()...))
	c, ok := program.Metadata[innermost].(*cli.Context)
	if !ok {
		panic(err) // two commands have the same name
	}
	return Report(c, err, line.Command.Name == "hook")
}
