// Package cli is the program atm: an urfave/cli app whose verbs come from the packages below it (mail, agent, session,
// setup). Package command says how a verb is made and how a command line is read.
package cli

import (
	"cmp"
	"context"
	"flag"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/agent"
	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/cli/mail"
	"github.com/agentteammail/atm/internal/cli/session"
	"github.com/agentteammail/atm/internal/cli/setup"
	"github.com/agentteammail/atm/internal/output"
)

// Run runs the command that the words behind the program's name ask for, prints any error, and returns the exit code.
func Run(version string, words []string) int {
	output.IgnoreSIGPIPE() // Report answers the same for all verbs
	app := newApp(command.Version(version))
	if n := len(words) - 1; n >= 0 && words[n] == completionFlag {
		complete(app, words[:n])
		return failure.ExitDone
	}
	line, err := cmdline.Parse(app, words)
	app.Metadata["line"] = line
	c := newContext(app, line)
	if line.Unknown >= 0 {
		name, args := words[line.Unknown], slices.Delete(slices.Clone(words), line.Unknown, line.Unknown+1)
		if code, found := runExternal(name, args); found {
			return code
		}
		verb := name
		if next := words[line.Unknown+1:]; len(next) > 0 && cmdline.HintFor(name+" "+next[0]) != "" { // create team
			verb += " " + next[0]
		}
		err = cmp.Or(command.MemberAsVerb(c, name), error(cmdline.UnknownVerb(app, verb)))
	}
	if err == nil && line.Help {
		err = printHelp(c, helpPage(line.Command))
	} else if err == nil && slices.Contains(companions, line.Command) {
		var code int
		if code, err = runCompanion(c, line); err == nil {
			return code
		}
	} else if err == nil {
		err = app.RunContext(context.Background(), line.Args)
	}
	return command.Report(c, err, c.Command.Name == "hook")
}

// newContext is the context for an error or a completion: it has the verb, its arguments and the app's flags.
func newContext(app *cli.App, line *cmdline.Line) *cli.Context {
	set := flag.NewFlagSet(app.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range app.Flags {
		f.Apply(set)
	}
	set.Parse(slices.Concat(line.Global, []string{"--"}, line.Words)) // urfave reports mistakes in these
	if slices.Contains(line.Global, "--json=true") {
		set.Set("json", "true")
	}
	c := cli.NewContext(app, set, nil)
	if line.Command != nil {
		c.Command = line.Command
	}
	return c
}

func newApp(version string) *cli.App {
	app := &cli.App{
		Name: "atm", HelpName: "atm", Version: version,
		HideHelp: true, HideVersion: true, DisableSliceFlagSeparator: true,
		Flags: cmdline.Flags(), Action: home,
		OnUsageError: cmdline.UsageError, Metadata: map[string]any{},
		ExitErrHandler: func(*cli.Context, error) {}, // Run prints errors
	}
	app.Commands = slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands(), companions,
		[]*cli.Command{helpCommand, versionCommand, completionCommand})
	app.Setup()
	for _, c := range app.Commands {
		prepare(c, app.HelpName)
	}
	return app
}

// prepare gives a verb and its subs their full names, and turns off urfave's help in favour of ours.
func prepare(c *cli.Command, parent string) {
	c.HelpName = parent + " " + c.Name
	c.HideHelp, c.HideHelpCommand = true, true
	c.OnUsageError = cmdline.UsageError
	for _, sub := range c.Subcommands {
		prepare(sub, c.HelpName)
	}
}
