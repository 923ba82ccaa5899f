// Package cmdline reads a command line, calls the verb that it names, and
// turns what the verb returns into output and an exit code.
//
// What may be relied on:
//
//   - Flags stand anywhere, before or after the verb and its arguments, until
//     "--". Where they stand never changes what happens.
//   - A word that begins with "-" is never taken as text by accident: it is a
//     flag, or an error with a hint.
//   - An error is "atm: message" and "atm: hint: …" on stderr, or with --json
//     one object on stdout, also when the command line itself was wrong.
//     Nothing that somebody else wrote reaches the terminal unescaped there.
//   - stdin is touched by Call.Text alone.
//   - Nothing is built at start: verbs are static values, and a call looks at
//     its own verb. The others are visited only for a flag before the verb, a
//     misspelling, and help.
//
// The flags --json, --quiet, --help (-h) and --version and the verbs help and
// version need not be listed by the App.
package cmdline

import (
	"context"
	"os"
	"strings"
)

// An App is a program made of verbs. Its fields are set once; Run may be
// called many times.
type App struct {
	Name, Version string
	Verbs         []*Verb
	Flags         []Flag        // of every verb
	Help          string        // the main help page, verbatim
	HelpAll       func() string // nil: a line for every verb
	// Nil means the process's own.
	Stdin, Stdout, Stderr *os.File
	Getenv                func(string) string
}

// builtinFlags are understood by every App.
var builtinFlags = [...]Flag{
	{Name: "json", Usage: "one JSON document on stdout"},
	{Name: "quiet", Usage: "errors only"},
	{Name: "help", Aliases: []string{"h"}, Usage: "this page"},
	{Name: "version", Usage: "the version"},
}

var (
	helpVerb = &Verb{Name: "help", Args: "[COMMAND|all]", MaxArgs: -1,
		Summary: "what a command does; all: every command a line", Examples: []string{"help all"}}
	versionVerb = &Verb{Name: "version", Summary: "prints the version", Examples: []string{"version"}}
)

// builtinVerbs come after the App's own, which may replace them.
var builtinVerbs = []*Verb{helpVerb, versionVerb}

// find returns the verb of that name, or nil.
func (a *App) find(name string) *Verb {
	if v := findVerb(a.Verbs, name); v != nil {
		return v
	}
	return findVerb(builtinVerbs, name)
}

// Run does what args ask for, args being the words after the program's name,
// and returns the exit code. Everything that was wrong has been printed.
func (a *App) Run(ctx context.Context, args []string) int {
	p := a.parse(args)
	c := &Call{
		Args: p.args, Before: p.before, Path: a.path(p.path),
		Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.Getenv,
		app: a, ctx: ctx, settings: p.settings, patience: stdinPatience,
	}
	if c.Stdin == nil {
		c.Stdin = os.Stdin
	}
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	return c.report(a.call(ctx, c, p))
}

// call runs the verb, or help in its place.
func (a *App) call(ctx context.Context, c *Call, p *parse) error {
	v := p.verb()
	c.Verb = v
	switch {
	case p.lost:
		return p.err
	case p.on("help"):
		if v == helpVerb {
			return a.help(c, p.args)
		}
		return a.printPage(c, p.path)
	case p.on("version"):
		return a.printVersion(c)
	case p.err != nil:
		return p.err
	case v == nil:
		return a.printPage(c, nil)
	case v == helpVerb:
		return a.help(c, p.args)
	}
	if err := checkArgs(c, v); err != nil {
		return err
	}
	if v == versionVerb {
		return a.printVersion(c)
	}
	return v.Run.Run(ctx, c)
}

// checkArgs returns what is wrong with the number of arguments.
func checkArgs(c *Call, v *Verb) error {
	n := len(c.Args)
	switch {
	case v.Run == nil && len(v.Subs) > 0:
		names := make([]string, 0, len(v.Subs))
		for _, sub := range v.Subs {
			if !sub.Hidden {
				names = append(names, sub.Name)
			}
		}
		return Usage("%s needs one of %s", c.Path, strings.Join(names, ", ")).
			WithHint("%s --help", c.Path).WithCandidates(names...)
	case n < v.MinArgs:
		e := Usage("%s needs %s", c.Path, v.Args).WithHint("%s --help", c.Path)
		if len(v.Examples) > 0 {
			e.Hint = v.Examples[0]
		}
		return e
	case v.MaxArgs == 0 && n > 0:
		return Usage("%s takes no arguments, not %s", c.Path, quoted(c.Args[0])).WithHint("%s --help", c.Path)
	case v.MaxArgs > 0 && n > v.MaxArgs:
		return Usage("%s is one argument too many for %s", quoted(c.Args[v.MaxArgs]), c.Path).
			WithHint("%s --help", c.Path)
	}
	return nil
}

// path returns the command's name with its verb and sub: "atm team add".
func (a *App) path(path []*Verb) string {
	name := a.Name
	for _, v := range path {
		name += " " + v.Name
	}
	return name
}

func (a *App) printVersion(c *Call) error {
	if c.JSON() {
		return c.PrintJSON(struct {
			Version string `json:"version"`
		}{a.Version})
	}
	_, err := c.Stdout.WriteString(a.Name + " " + a.Version + "\n")
	return err
}
