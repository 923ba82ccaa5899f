package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
)

// generate is urfave's sign that a shell asks for the words that may stand next.
const generate = "--generate-bash-completion"

// completionScripts ask for the words that may stand at the cursor.
var completionScripts = map[string]string{
	"bash": `_atm() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
	[[ $cur == -* ]] && words+=("$cur")
	COMPREPLY=($(compgen -W "$(atm "${words[@]}" ` + generate + ` 2>/dev/null)" -- "$cur"))
}
complete -o default -F _atm atm
`,
	"zsh": `#compdef atm
_atm() {
	local -a given offers
	given=("${(@)words[2,CURRENT-1]}")
	[[ ${words[CURRENT]} == -* ]] && given+=("${words[CURRENT]}")
	offers=(${(f)"$(atm "${given[@]}" ` + generate + ` 2>/dev/null)"})
	if (( $#offers )); then compadd -a offers; else _files; fi
}
compdef _atm atm
`,
	"fish": `function __atm_offers
	set -l given (commandline -opc)[2..-1]
	string match -q -- '-*' (commandline -ct); and set -a given (commandline -ct)
	atm $given ` + generate + ` 2>/dev/null
end
complete -c atm -a '(__atm_offers)'
`,
	"powershell": `Register-ArgumentCompleter -Native -CommandName atm -ScriptBlock {
	param($word, $ast, $cursor)
	$given = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
	if ($word -ne '' -and $word -notlike '-*') { $given = @($given | Select-Object -SkipLast 1) }
	atm @given ` + generate + ` 2>$null | Where-Object { $_ -like "$word*" } | ForEach-Object {
		[System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
	}
}
`,
}

var completionCommand = &cli.Command{
	Name: "completion", ArgsUsage: "SHELL", Usage: "a completion script for bash, zsh, fish or powershell",
	UsageText: "source <(atm completion bash)\natm completion fish > ~/.config/fish/completions/atm.fish",
	Action: func(c *cli.Context) error {
		script, ok := completionScripts[strings.ToLower(c.Args().First())]
		if !ok {
			return command.Usage("no completion for %q", c.Args().First()).WithHint("atm completion bash, zsh, fish or powershell")
		}
		_, err := os.Stdout.WriteString(script)
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
