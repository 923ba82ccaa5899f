package cli

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
)

// generate is urfave's sign that a shell asks for the words that may stand next.
const generate = "--generate-bash-completion"

// The scripts ask for the words that may stand at the cursor.
//
//go:embed completion
var scripts embed.FS

var completionCommand = &cli.Command{
	Name: "completion", ArgsUsage: "SHELL", Usage: "a completion script for bash, zsh, fish or powershell",
	UsageText: "source <(atm completion bash)\natm completion fish > ~/.config/fish/completions/atm.fish",
	Action: func(c *cli.Context) error {
		script, err := scripts.ReadFile("completion/" + strings.ToLower(c.Args().First()))
		if err != nil {
			return command.Usage("no completion for %q", c.Args().First()).WithHint("atm completion bash, zsh, fish or powershell")
		}
		_, err = os.Stdout.Write(script) // also with --json: a shell reads it
		return err
	},
}

// complete prints what may stand next: behind a flag that wants a value what that may be;
// else flags where one is begun, the verb's subs and what its words may be.
func complete(app *cli.App, words []string) {
	last := "" // perhaps still being typed
	if n := len(words) - 1; n >= 0 {
		last = words[n]
		if slices.Contains(words[:n], "--") {
			return
		}
	}
	line, _ := command.Parse(app, append(words, "")) // the word to come: "unread" alone would be ls
	c := newContext(app, line)
	kinds, wantsValue := line.ArgNames, false
	if strings.HasPrefix(last, "-") {
		var kind string
		if kind, wantsValue = line.ValueName(last); wantsValue {
			kinds = []string{kind}
		}
		for _, f := range slices.Concat(c.Command.VisibleFlags(), app.VisibleFlags()) {
			if name := "--" + f.Names()[0]; strings.HasPrefix(name, last) && (name != last || !wantsValue) {
				fmt.Fprintln(os.Stdout, name)
			}
		}
	}
	verbs := c.Command.VisibleCommands()
	if line.Command == nil {
		verbs = app.VisibleCommands()
	}
	for _, sub := range verbs {
		if !wantsValue {
			fmt.Fprintln(os.Stdout, sub.Name)
		}
	}
	offer(c, strings.Join(kinds, "|"))
}

// offer prints the words that there are of some kinds (TO, AGENT|ID): members, and ids of messages that I got or sent.
func offer(c *cli.Context, kinds string) {
	s, err := command.OpenMeIfSaid(c)
	if err != nil {
		return
	}
	is := func(some ...string) bool {
		return slices.ContainsFunc(strings.Split(kinds, "|"), func(k string) bool { return slices.Contains(some, k) })
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
