package cli

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
)

// completionFlag ends a command line in which a shell asks for completions, as urfave has it.
const completionFlag = "--generate-bash-completion"

//go:embed completion
var scripts embed.FS

var completionCommand = &cli.Command{
	Name: "completion", ArgsUsage: "SHELL", Usage: "print the completion script for bash, zsh, fish or powershell",
	UsageText: "source <(atm completion bash)\natm completion fish > ~/.config/fish/completions/atm.fish",
	Action: func(c *cli.Context) error {
		script, err := scripts.ReadFile("completion/" + strings.ToLower(c.Args().First()))
		if err != nil {
			return failure.Usage("no completion for %q", c.Args().First()).WithHint("atm completion bash, zsh, fish or powershell")
		}
		_, err = os.Stdout.Write(script) // even with --json: a shell reads it
		return err
	},
}

// complete prints what can come next: the values of a flag behind it; else flags if one was begun, the verb's subs and
// the values of its arguments.
func complete(app *cli.App, words []string) {
	last := "" // perhaps still being typed
	if n := len(words) - 1; n >= 0 {
		last = words[n]
		if slices.Contains(words[:n], "--") {
			return
		}
	}
	line, _ := cmdline.Parse(app, append(words, "")) // "" is the next word: "unread" alone would mean ls
	c := newContext(app, line)
	names, wantsValue := line.ArgNames, false
	if strings.HasPrefix(last, "-") {
		var name string
		if name, wantsValue = line.ValueName(last); wantsValue {
			names = []string{name}
		}
		for _, f := range slices.Concat(c.Command.VisibleFlags(), app.VisibleFlags()) {
			if name := "--" + f.Names()[0]; strings.HasPrefix(name, last) && (name != last || !wantsValue) {
				fmt.Fprintln(os.Stdout, name)
			}
		}
	}
	verbs := c.Command.VisibleCommands()
	if line.Command == nil || line.Command == helpCommand && len(line.Words) < 2 {
		verbs = app.VisibleCommands()
	}
	for _, sub := range verbs {
		if !wantsValue {
			fmt.Fprintln(os.Stdout, sub.Name)
		}
	}
	completeValues(c, strings.Split(strings.Join(names, "|"), "|"))
}

// completeValues prints the values of arguments by their names in the usage (TO, AGENT, ID): members, and the ids of
// messages that I got or sent.
func completeValues(c *cli.Context, names []string) {
	s, err := command.OpenMeIfGiven(c)
	if err != nil {
		return
	}
	is := func(some ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(some, name) })
	}
	if is("TO", "AGENT", "NAME") {
		for _, name := range s.Names() {
			fmt.Fprintln(os.Stdout, name)
		}
	}
	if s.Me == nil || !is("ID") || is("NAME") || strings.HasPrefix(c.Command.HelpName, "atm session ") {
		return
	}
	ids, _ := s.Me.IDs(mailbox.Range{Unread: true, Owed: true, Done: true, Sent: true, Newest: true, Limit: 100})
	for short := range strings.FieldsSeq(command.Shorts(ids)) {
		fmt.Fprintln(os.Stdout, short)
	}
}
