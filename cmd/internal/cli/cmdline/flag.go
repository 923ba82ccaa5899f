package cmdline

import (
	"flag"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/lockfile"
)

// Flags are the flags that every command takes.
func Flags() []cli.Flag {
	noColor := func(*cli.Context, bool) error { return os.Setenv("NO_COLOR", "1") }
	return []cli.Flag{
		&cli.StringFlag{Name: "root", Usage: "the `DIR` that holds the teams"},
		&cli.StringFlag{Name: "team", Usage: "the `TEAM`"},
		&cli.StringFlag{Name: "as", Usage: "your `NAME`"},
		&cli.BoolFlag{Name: "json", Usage: "one JSON document on stdout"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: "silent", Usage: "errors only"},
		DurationFlag("lock-timeout", lockfile.DefaultTimeout, "wait for a lock at most `D` (default 5s)"),
		&cli.BoolFlag{Name: "no-color", Category: "no-colour", Hidden: true, Action: noColor},
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "the help page"},
	}
}

// VersionFlag is a flag of atm alone, not of its commands.
var VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "the version"}

func isVersion(f cli.Flag) bool { return f.Names()[0] == VersionFlag.Name }

// isFlag reports whether a word is a flag. "-" is stdin; a list item and "-=" are text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && word[1] != '='
}

// flag looks up "--name" or "--name=value" among the flags of the command, then of the app.
func (l *Line) flag(word string) cli.Flag {
	if !isFlag(word) {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range slices.Concat(l.Command.Flags, l.Program.Flags) {
		if slices.Contains(f.Names(), name) && (!isVersion(f) || l.Command.Name == "") {
			return f
		}
	}
	return nil
}

// waits reports whether a flag makes the command wait, at most for --timeout.
func (l *Line) waits(f cli.Flag) bool {
	name, _, _ := strings.Cut(f.Names()[0], "-")
	return !takesValue(f) && slices.Contains([]string{"wait", "follow", "watch"}, name) && l.flag("--timeout") != nil
}

// ValueName returns what a flag's usage calls its value, for completion; ok is false for a flag without a value.
func (l *Line) ValueName(flag string) (name string, ok bool) {
	f := l.flag(flag)
	if f == nil || !takesValue(f) || strings.Contains(flag, "=") {
		return "", false
	}
	typed, _ := FlagUsage(f)
	_, name, _ = strings.Cut(typed, " ")
	return name, true
}

// HasFlag reports whether a command has a visible flag of that name that takes no value.
func HasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.VisibleFlags(), func(f cli.Flag) bool { return !takesValue(f) && slices.Contains(f.Names(), name) })
}

func takesValue(f cli.Flag) bool { return f.(cli.DocGenerationFlag).TakesValue() }

// FlagUsage returns a flag as it is typed, "--limit N", and what it does.
func FlagUsage(f cli.Flag) (typed, usage string) {
	value, usage := flag.UnquoteUsage(&flag.Flag{Usage: f.(cli.DocGenerationFlag).GetUsage()})
	if !takesValue(f) {
		value = ""
	} else if usage == "" { // a hidden flag
		value = "VALUE"
	}
	return strings.TrimSpace("--" + f.Names()[0] + " " + value), usage
}

// NotBoth is a usage error where two flags of a set such as "fyi wait-ack" are given.
func NotBoth(c *cli.Context, sets ...string) error {
	for _, set := range sets {
		given := slices.DeleteFunc(strings.Fields(set), func(name string) bool { return !c.IsSet(name) })
		if len(given) > 1 {
			return failure.Usage("--%s and --%s contradict each other", given[0], given[1]).WithHint("leave one out")
		}
	}
	return nil
}

// Only is a usage error where a flag is given with another of the command's than those that go with it.
func Only(c *cli.Context, flag string, with ...string) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if c.IsSet(flag) && c.IsSet(name) && name != flag && !slices.Contains(with, name) {
			return NotBoth(c, flag+" "+name)
		}
	}
	return nil
}

// CheckTimeout is a usage error where --timeout is given without one of the flags with which the command waits, if it has
// such.
func CheckTimeout(c *cli.Context) error {
	if !c.IsSet("timeout") {
		return nil
	}
	var waiting []string
	l := &Line{Command: c.Command, Program: c.App}
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; l.waits(f) {
			if c.Bool(name) {
				return nil
			}
			waiting = append(waiting, name)
		}
	}
	if waiting == nil { // wait, ask, watch
		return nil
	}
	return failure.Usage("--timeout does nothing without --%s", strings.Join(waiting, " or --")).WithHint("add --%s, or leave --timeout out", waiting[0])
}
