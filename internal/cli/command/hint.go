package command

import (
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/teams/policy"
)

// rememberFlag keeps the value of a flag that was given and names something that exists, for the commands in hints.
func rememberFlag(c *cli.Context, flag string) {
	if c.IsSet(flag) {
		c.App.Metadata["--"+flag] = c.String(flag)
	}
}

// Flags returns --root, --team and --as as far as they were given, with a space in front, to append to a command.
func (s *Scope) Flags() string { return flagsFor(s.c, "", "--root", "--team", "--as") }

// flagsFor returns the remembered ones of some flags that a text does not have already.
func flagsFor(c *cli.Context, text string, names ...string) (flags string) {
	if c == nil { // a program that has no command line
		return ""
	}
	for _, name := range names {
		if value, ok := c.App.Metadata[name].(string); ok && !strings.Contains(text, name+" ") {
			flags += " " + name + " " + policy.Quote(value)
		}
	}
	return flags
}

// commandInHint finds commands to type, not those in a sentence such as "bob has not called atm read".
var commandInHint = regexp.MustCompile("(^|[:;,|?] |or |and |then |`)atm [a-z-]+")

// actsAsMe are the verbs that need --as to mean the same again.
var actsAsMe = strings.Fields("send reply read ack ls unread withdraw wait take ask approve reject event")

// CompleteHint adds to the commands in a hint the --root, --team and --as that this command was given.
func CompleteHint(c *cli.Context, hint string) string {
	return commandInHint.ReplaceAllStringFunc(hint, func(found string) string {
		at := strings.LastIndex(found, " ")
		verb := found[at+1:]
		hasFlag := verb[0] == '-' // atm --team main read
		if c != nil && c.App.Commands != nil && !hasFlag && c.App.Command(verb) == nil {
			return found // atm is the subject of a sentence
		}
		if slices.Contains(actsAsMe, verb) {
			found += flagsFor(c, hint, "--as")
		}
		return found[:at] + flagsFor(c, hint, "--root", "--team") + found[at:]
	})
}
