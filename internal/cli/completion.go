package cli

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
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
		_, err = os.Stdout.Write(script)
		return err
	},
}

// complete prints what may stand next: flags where one is begun, the verb's subs, the
// members and the ids of what I have not finished.
func complete(c *cli.Context) {
	if n := len(os.Args); n > 2 && strings.HasPrefix(os.Args[n-2], "-") {
		for _, f := range slices.Concat(c.Command.VisibleFlags(), c.App.VisibleFlags()) {
			fmt.Fprintln(os.Stdout, "--"+f.Names()[0])
		}
	}
	for _, sub := range c.Command.VisibleCommands() {
		fmt.Fprintln(os.Stdout, sub.Name)
	}
	s, err := command.OpenMeIfSaid(c)
	if err != nil || c.Command.ArgsUsage == "" {
		return
	}
	for _, name := range s.Names() {
		fmt.Fprintln(os.Stdout, name)
	}
	if s.Me == nil || !strings.Contains(c.Command.ArgsUsage, "ID") {
		return
	}
	ids, _ := s.Me.UnreadIDs()
	owed, _ := s.Me.OwedIDs()
	for _, id := range append(ids, owed...) {
		fmt.Fprintln(os.Stdout, id.Short(6))
	}
}
