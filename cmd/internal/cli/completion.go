package cli

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
)

// completionFlag ends a command line in which a shell asks for completions, as urfave has it.
const completionFlag = "--generate-bash-completion"

//go:embed completion
var scripts embed.FS

var completionCommand = &cli.Command{
	Name: "completion", ArgsUsage: "SHELL", Usage: "print the completion script for bash, zsh, fish or powershell",
	UsageText: `source <(atm completion bash)
atm completion fish > ~/.config/fish/completions/atm.fish`,
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
	c, _ := line.Context()
	for _, f := range slices.Concat(c.Command.VisibleFlags(), app.VisibleFlags()) {
		if name := "--" + f.Names()[0]; strings.HasPrefix(last, "-") && strings.HasPrefix(name, last) && name != last {
			fmt.Fprintln(os.Stdout, name)
		}
	}
	if name, wantsValue := line.ValueName(last); wantsValue {
		completeValues(c, name)
		return
	}
	verbs := c.Command.VisibleCommands()
	if c.Command.Name == "" || line.Command == helpCommand && len(line.Words) < 2 {
		verbs = app.VisibleCommands()
	}
	for _, sub := range verbs {
		fmt.Fprintln(os.Stdout, sub.Name)
	}
	completeValues(c, line.ArgNames...)
}

// completeValues prints the values of arguments by their names in the usage (TO, AGENT, ID|NAME): members, and the ids
// of messages that I got or sent.
func completeValues(c *cli.Context, names ...string) {
	s, err := app.OpenMeIfGiven(command.Given(c))
	if err != nil {
		return
	}
	isMember := func(name string) bool { return slices.Contains([]string{"TO", "AGENT", "NAME", "ID|NAME"}, name) }
	if slices.ContainsFunc(names, isMember) {
		for _, name := range s.Names() {
			fmt.Fprintln(os.Stdout, name)
		}
	}
	if s.Me == nil || !slices.Contains(names, "ID") || strings.HasPrefix(c.Command.HelpName, "atm session ") {
		return
	}
	ids, _ := s.Me.IDs(mailbox.Range{Unread: true, Owed: true, Done: true, Sent: true, Newest: true, Limit: 100})
	for short := range strings.FieldsSeq(app.Shorts(ids)) {
		fmt.Fprintln(os.Stdout, short)
	}
}
