// Package cli is the program atm: an urfave/cli app whose verbs come from the packages below it (mail, agent, session,
// setup). Package command says how a verb is made and how a command line is read.
package cli

import (
	"cmp"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
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
	output.IgnoreSIGPIPE() // Report answers the same for all verbs
	program := newApp(command.Version(version))
	if n := len(words) - 1; n >= 0 && words[n] == completionFlag {
		complete(program, words[:n])
		return failure.ExitDone
	}
	line, err := cmdline.Parse(program, words)
	c, bad := line.Context()
	switch err = cmp.Or(err, bad); {
	case line.Unknown >= 0:
		name, args := words[line.Unknown], slices.Delete(slices.Clone(words), line.Unknown, line.Unknown+1)
		if code, found := runExternal(name, args); found {
			return code
		}
		verb := name
		if next := words[line.Unknown+1:]; len(next) > 0 && cmdline.HintFor(name+" "+next[0]) != "" { // create team
			verb += " " + next[0]
		}
		err = cmp.Or(app.MemberAsVerb(command.Given(c), name), error(cmdline.UnknownVerb(program, verb)))
	case err != nil:
	case line.Help:
		err = printHelp(c, helpPage(c.Command, command.Width()))
	case c.Command.Action == nil:
		var code int
		if code, err = runCompanion(c, line); err == nil {
			return code
		}
	default:
		err = c.Command.Action(c)
	}
	return command.Report(c, err, c.Command.Name == "hook")
}

func newApp(version string) *cli.App {
	app := &cli.App{Name: "atm", HelpName: "atm", Version: version, Flags: cmdline.Flags(), Action: home, Metadata: map[string]any{}}
	app.Commands = slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands(), companions,
		[]*cli.Command{helpCommand, versionCommand, completionCommand})
	setHelpNames(app.Commands, app.HelpName)
	return app
}

func setHelpNames(verbs []*cli.Command, parent string) {
	for _, c := range verbs {
		c.HelpName = parent + " " + c.Name
		setHelpNames(c.Subcommands, c.HelpName)
	}
}
