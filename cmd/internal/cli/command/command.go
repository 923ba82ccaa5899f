// Package command is what the verbs of atm share.
//
// A verb is a *cli.Command (github.com/urfave/cli/v2) in a file of its name, in the package of its group. Its action takes
// its options from the *cli.Context, which goes no further, calls one thing with them and its app.Scope (With), and prints
// one value with its Printer. Its ArgsUsage is counted: [X] is optional, X… repeats, CMD begins another program's command
// line. Its UsageText is its examples; the first is also a hint. Its Aliases, and those of its flags, mean exactly the same.
//
//	command.go     what was given becomes a scope
//	run.go         a command line is parsed, and its command run
//	input.go       texts come in
//	print.go       values go to stdout, warnings to stderr
//	report.go      an error is printed, and becomes an exit code
//	message.go     messages are found; messages and turns as text
//	table.go       columns; team.go: the table of the team
//	watch.go       what repaints a terminal
//	companion.go   atm's other programs
//
// Text from outside is escaped where it becomes part of a line (letter.Escape).
package command

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/teamdir/notices"
)

// With is the action of a verb that works in a scope.
func With(open func(*app.Given) (*app.Scope, error), act func(*cli.Context, *app.Scope, *Printer) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		p := PrinterOf(c)
		return Act(c.Context, p, open, func(s *app.Scope) error { return act(c, s, p) })
	}
}

// Act opens a scope and acts in it. Its root stays open for the explanation of an error.
func Act(ctx context.Context, p *Printer, open func(*app.Given) (*app.Scope, error), act func(*app.Scope) error) error {
	s, err := open(p.Given)
	if err != nil {
		return err
	}
	if s.Team != nil {
		notices.TellKilled(ctx, s.Team)
	}
	return act(s)
}

// Given returns what the command line says about the root, the team and the identity: the same one for each call.
func Given(c *cli.Context) *app.Given { return PrinterOf(c).Given }

func newGiven(c *cli.Context) *app.Given {
	g := &app.Given{
		Streams: output.Streams{In: c.App.Reader, Out: c.App.Writer, Err: c.App.ErrWriter}, Args: cmdline.LineOf(c).Typed,
		Root: c.String("root"), Team: c.String("team"), As: c.String("as"),
		LockTimeout: cmdline.Duration(c, "lock-timeout"), IsQuiet: c.Bool("quiet"), Verb: c.Command.HelpName,
	}
	if c.NArg() == 1 {
		g.Word = c.Args().First()
	}
	return g
}
