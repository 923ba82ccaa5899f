// Package cli is the atm command: an urfave/cli app whose verbs come from the
// groups below (mail, agent, session, setup), a file each. What verbs share, and
// how one looks, is in package command.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/agent"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/mail"
	"github.com/agentteammail/atm/internal/cli/session"
	"github.com/agentteammail/atm/internal/cli/setup"
	"github.com/agentteammail/atm/internal/runspec"
)

// Run does what the words behind the program's name ask for and returns the exit
// code. Everything that was wrong has been printed.
func Run(version string, words []string) int {
	app := newApp(runspec.Version(version))
	if n := len(words) - 1; n >= 0 && words[n] == generate {
		complete(app, words[:n])
		return command.ExitDone
	}
	line, err := command.Parse(app, words)
	if line.Unknown >= 0 {
		name := words[line.Unknown]
		if code, found := runExternal(name, slices.Delete(slices.Clone(words), line.Unknown, line.Unknown+1)); found {
			return code
		}
		if rest := words[line.Unknown+1:]; len(rest) > 0 && command.Meant(name+" "+rest[0]) != "" {
			name += " " + rest[0]
		}
		err = unknownVerb(app, name)
	}
	c := newContext(app, line)
	if err == nil && line.Help {
		err = printHelp(c, helpPage(line.Command))
	} else if err == nil {
		err = app.RunContext(context.Background(), line.Args)
	}
	return command.Report(c, err, c.Command.Name == "hook" && !line.Help)
}

// newContext is what an error or a completion needs to know of a line: the verb and the
// flags of the app.
func newContext(app *cli.App, line *command.Line) *cli.Context {
	set := flag.NewFlagSet(app.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range app.Flags {
		f.Apply(set)
	}
	set.Parse(line.Global) // what is wrong there, urfave has said
	if line.JSON {
		set.Set("json", "true")
	}
	c := cli.NewContext(app, set, nil)
	if line.Command != nil {
		c.Command = line.Command
	}
	return c
}

// runExternal runs atm-NAME, if there is such a program, in the place of this one.
func runExternal(name string, args []string) (code int, found bool) {
	path, err := command.Companion("atm-" + name)
	if err != nil || strings.ContainsAny(name, `/\`) {
		return 0, false
	}
	cmd := exec.Command(path, args...)
	err = syscall.Exec(path, cmd.Args, os.Environ())
	if errors.Is(err, errors.ErrUnsupported) { // Windows
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if cmd.ProcessState != nil {
		return cmd.ProcessState.ExitCode(), true
	}
	fmt.Fprintf(os.Stderr, "atm: run %s: %v\n", path, err)
	return command.ExitFailed, true
}

// newApp is the app with all its verbs.
func newApp(version string) *cli.App {
	app := &cli.App{
		Name: "atm", HelpName: "atm", Version: version,
		HideHelp: true, HideVersion: true, DisableSliceFlagSeparator: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "root", Usage: "the `DIR` that holds the teams"},
			&cli.StringFlag{Name: "team", Usage: "the team `NAME`"},
			&cli.StringFlag{Name: "as", Usage: "your `NAME`"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON document on stdout"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q", "silent"}, Usage: "errors only"},
			command.DurationFlag("lock-timeout", 5e9, "wait for a lock at most `D` (default 5s)"),
			&cli.BoolFlag{Name: "no-color", Aliases: []string{"no-colour"}, Hidden: true, Action: func(*cli.Context, bool) error { return os.Setenv("NO_COLOR", "1") }},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y", "non-interactive"}, Hidden: true}, // atm never asks
			&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "the help page"},
			&cli.BoolFlag{Name: "version", Aliases: []string{"v", "V"}, Usage: "the version"},
		},
		Action: home, OnUsageError: command.UsageError, Metadata: map[string]any{},
		ExitErrHandler: func(*cli.Context, error) {}, // errors are printed once, by Run
	}
	app.Commands = slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands(), []*cli.Command{helpCommand, versionCommand, completionCommand})
	app.Setup()
	for _, c := range app.Commands {
		prepare(c, app.HelpName)
	}
	return app
}

// prepare gives a verb and its subs their full names, and keeps urfave's own help out
// of them: --help and the verb help are ours.
func prepare(c *cli.Command, parent string) {
	c.HelpName = parent + " " + c.Name
	c.HideHelp, c.HideHelpCommand, c.UseShortOptionHandling = true, true, true
	c.OnUsageError = command.UsageError
	for _, sub := range c.Subcommands {
		prepare(sub, c.HelpName)
	}
}

// unknownVerb says what was probably meant.
func unknownVerb(app *cli.App, name string) error {
	e := command.Usage("unknown command %q", name).WithHint("atm help all")
	if hint := command.Meant(name); hint != "" {
		return e.WithHint("%s", hint)
	}
	var known []string
	for _, c := range app.VisibleCommands() {
		known = append(known, c.Names()...)
	}
	if near, ok := command.Nearest(name, known); ok {
		near = app.Command(near).Name
		return e.WithHint("did you mean \"atm %s\"?", near).WithCandidates(near)
	}
	return e
}
