// Package cli is the atm command: an urfave/cli app whose verbs come from the
// groups below (mail, agent, session, setup), a file each. What verbs share, and
// how one looks, is in package command.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
	if len(words) > 0 && words[len(words)-1] == generate {
		app.EnableBashCompletion = true
		if !slices.Contains(words, "--") { // behind which urfave would run the verb
			app.Run(append([]string{app.Name}, words...))
		}
		return command.ExitDone
	}
	line, err := command.Parse(app, words)
	if line.Unknown >= 0 {
		name := words[line.Unknown]
		if code, found := runExternal(name, slices.Delete(slices.Clone(words), line.Unknown, line.Unknown+1)); found {
			return code
		}
		err = unknownVerb(app, name)
	}
	set := flag.NewFlagSet(app.Name, flag.ContinueOnError)
	set.Bool("json", line.JSON, "")
	c := cli.NewContext(app, set, nil) // what an error needs to know
	if line.Command != nil {
		c.Command = line.Command
	}
	if err == nil && line.Help {
		err = printHelp(app, line.Command)
	} else if err == nil {
		err = app.RunContext(context.Background(), line.Args)
	}
	return command.Report(c, err, c.Command.Name == "hook" && !line.Help)
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
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "errors only"},
			command.DurationFlag("lock-timeout", 5e9, "wait for a lock at most `D` (default 5s)"),
			&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "the help page"},
			&cli.BoolFlag{Name: "version", Aliases: []string{"v", "V"}, Usage: "the version"},
		},
		Action: home, BashComplete: complete, OnUsageError: command.UsageError, Metadata: map[string]any{},
		ExitErrHandler: func(*cli.Context, error) {}, // errors are printed once, by Run
	}
	app.Commands = slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands(), []*cli.Command{helpCommand, versionCommand, completionCommand})
	app.Setup()
	for _, c := range app.Commands {
		prepare(c, app.HelpName)
	}
	return app
}

// prepare gives a verb and its subs their full names and our completion, and
// keeps urfave's own help out of them: --help and the verb help are ours.
func prepare(c *cli.Command, parent string) {
	c.HelpName = parent + " " + c.Name
	c.HideHelp, c.HideHelpCommand, c.UseShortOptionHandling = true, true, true
	c.BashComplete, c.OnUsageError = complete, command.UsageError
	for _, sub := range c.Subcommands {
		prepare(sub, c.HelpName)
	}
}

// meant are words that people type for another verb, and what they mean.
var meant = map[string]string{
	"delete": "atm withdraw ID", "rm": "atm withdraw ID", "remove": "atm withdraw ID, atm team retire NAME",
	"cancel":  "atm withdraw ID takes back what you sent; atm interrupt NAME ends a turn",
	"forward": "atm show ID --raw | atm send NAME -", "broadcast": "atm send all \"…\"", "announce": "atm send all \"…\"",
	"mail": "atm read reads, atm send NAME \"…\" writes", "email": "atm send NAME \"…\"", "sendto": "atm send NAME \"…\"",
	"notify": "atm send NAME \"…\"", "ping": "atm send NAME \"…\"", "post": "atm send NAME \"…\"",
	"reply-all": "atm reply ID --all \"…\"", "count": "atm ls --count", "sent": "atm ls --sent", "outbox": "atm ls --sent",
	"mark": "atm read ID marks as read, atm unread ID puts back", "done": "atm ack ID, or atm reply ID \"Done.\"",
	"poll": "atm read --wait 5m", "sleep": "atm wait --timeout 5m", "subscribe": "atm read --follow", "query": "atm search WORDS",
	"ui": "atm team --watch", "tui": "atm team --watch", "dashboard": "atm team --watch", "top": "atm team --watch",
	"members": "atm team", "agents": "atm team", "users": "atm team", "who": "atm team", "ps": "atm team", "teams": "atm team ls",
	"add": "atm team add NAME", "create": "atm init NAME…", "new": "atm init NAME…", "setup": "atm init NAME…",
	"start": "atm up NAME, or atm run NAME -- CMD", "launch": "atm run NAME -- CMD", "exec": "atm run NAME -- CMD", "kill": "atm stop NAME",
	"log": "atm watch --since 1h --no-follow", "logs": "atm watch --since 1h --no-follow", "tail": "atm watch", "follow": "atm watch",
	"config": "atm doctor looks at team.toml; atm where says what is in force", "settings": "atm where", "export": "atm backup FILE",
	"use": "put --as NAME on each command", "login": "put --as NAME on each command", "permissions": "atm pending",
}

// unknownVerb says what was probably meant.
func unknownVerb(app *cli.App, name string) error {
	e := command.Usage("unknown command %q", name).WithHint("atm help all")
	if hint := meant[name]; hint != "" {
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
