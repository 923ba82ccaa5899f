// Package cli is the program atm: an urfave/cli app whose verbs come from the packages below it (mail, agent, session,
// setup). Package command says how a verb is made, package cmdline how a command line is read.
//
//	app.go         the commands, and what runs without one
//	home.go        atm alone
//	help.go        help pages, and topics.txt; manual.go: all of them as atm(1)
//	completion.go  what a shell may offer next; offer.go: names, ids and options
//	companion.go   verbs that are programs of their own; extension.go: verbs that are programs of others
package cli

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/agent"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/cli/mail"
	"github.com/agentteammail/atm/cmd/internal/cli/session"
	"github.com/agentteammail/atm/cmd/internal/cli/setup"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
)

// Run runs the command that the words behind the program's name ask for, prints any error, and returns the exit code.
func Run(version string, words []string) int {
	program := newApp(command.Version(version))
	program.Writer, program.ErrWriter = output.Standard() // Report answers the same for all verbs where a pipe is closed
	if n := len(words) - 1; n >= 0 && words[n] == completionFlag {
		complete(program, words[:n])
		return failure.ExitDone
	}
	line, err := cmdline.Sort(program, words)
	if line.IsUnknown() {
		if code, found := runExtension(program, line); found {
			return code
		}
	}
	return command.Run(program, line, err)
}

func newApp(version string) *cli.App {
	program := &cli.App{
		Name: "atm", HelpName: "atm", Version: version, Flags: append(cmdline.Flags(), cmdline.VersionFlag),
		Action: withoutCommand,
	}
	program.Commands = slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands(), companions,
		[]*cli.Command{helpCommand, versionCommand, completionCommand})
	prepare(program.Commands, "atm ")
	command.Prepare(program)
	return program
}

// prepare names the commands, and has each print its help page where that is asked for.
func prepare(commands []*cli.Command, parent string) {
	for _, c := range commands {
		act := c.Action
		c.HelpName = parent + c.Name
		c.Action = func(c *cli.Context) error {
			if c.Bool("help") && !c.Command.Hidden {
				return printHelp(c, helpPage(c.Command, command.PrinterOf(c).Width()))
			}
			return act(c)
		}
		prepare(c.Subcommands, c.HelpName+" ")
	}
}

// withoutCommand runs atm alone, or behind it a word that is none of its commands.
func withoutCommand(c *cli.Context) error {
	line := cmdline.LineOf(c)
	switch {
	case line.At >= 0:
		name := line.Typed[line.At]
		return cmdline.UnknownCommand(line.Program, name, line.Typed[line.At+1:]...)
	case c.Bool("help"):
		return printHelp(c, mainPage(line.Program))
	}
	return home(c)
}
