package cli

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
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
			return failure.Usage("no completion for %q", c.Args().First()).WithHint("`atm completion bash`; also zsh, fish and powershell")
		}
		_, err = c.App.Writer.Write(script) // even with --json: a shell reads it
		return err
	},
}

// complete prints what can come next: the values of a flag behind it; else flags if one was begun, the verb's subs and
// the values of its arguments.
func complete(program *cli.App, words []string) {
	last := "" // perhaps still being typed
	if n := len(words) - 1; n >= 0 {
		last = words[n]
		if slices.Contains(words[:n], "--") {
			return
		}
	}
	line, _ := cmdline.Sort(program, append(words, "")) // "" is the next word
	before := slices.Clone(line.Words[:max(len(line.Words)-1, 0)])
	line.Instead(func(c *cli.Context) error {
		completeBehind(c, line, before, last)
		return nil
	})
	line.Alone().Run(append([]string{program.Name}, line.Args()...))
}

// completeBehind is complete where the flags of the program are known. before are the arguments before the next word.
func completeBehind(c *cli.Context, line *cmdline.Line, before []string, last string) {
	for _, f := range slices.Concat(line.Command.VisibleFlags(), c.App.VisibleFlags()) {
		if name := "--" + f.Names()[0]; strings.HasPrefix(last, "-") && strings.HasPrefix(name, last) && name != last {
			fmt.Fprintln(c.App.Writer, name)
		}
	}
	if name, wantsValue := line.ValueName(last); wantsValue {
		printOffers(c.App.Writer, offers(c, line.Command, name, nil, ""), cmdline.Choices(line.Command, last))
		return
	}
	begun := "" // bob,
	if strings.HasSuffix(last, ",") && len(before) > 0 {
		begun, before = last, before[:len(before)-1]
	}
	printOffers(c.App.Writer, offers(c, line.Command, nameAt(line.Command, len(before)), before, begun))
	verbs := line.Command.VisibleCommands()
	if line.Command.Name == "" || line.Command == helpCommand && len(before) == 0 {
		verbs = line.Program.VisibleCommands()
	}
	if line.Command == helpCommand && len(before) == 0 {
		for _, t := range topics() {
			fmt.Fprintln(c.App.Writer, t.name)
		}
	}
	for _, sub := range verbs {
		fmt.Fprintln(c.App.Writer, sub.Name)
	}
}
