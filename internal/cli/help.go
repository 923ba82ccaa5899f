package cli

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
)

//go:embed help.txt
var mainHelp string

var helpCommand = &cli.Command{
	Name: "help", ArgsUsage: "[VERB|all] [SUB]", Usage: "what a command does; all: a line each",
	UsageText: "atm help send\natm help all",
	Action: func(c *cli.Context) error {
		if c.Args().First() == "all" {
			return printAll(c.App)
		}
		return printHelp(c.App, c.Args().Slice())
	},
}

var versionCommand = &cli.Command{
	Name: "version", Usage: "prints the version", UsageText: "atm version",
	Action: func(c *cli.Context) error { return command.Print(c, versionOf{c.App.Version}) },
}

type versionOf struct {
	Version string `json:"version"`
}

func (v versionOf) String() string { return "atm " + v.Version }

// page is a verb's help: an example first, at most 25 lines.
const page = `{{range lines .UsageText}}  {{.}}
{{end}}
{{.HelpName}}{{with .ArgsUsage}} {{.}}{{end}}: {{.Usage}}
{{with .Description}}{{.}}
{{end}}{{with subs .}}
{{.}}{{end}}{{with flags .}}
{{.}}{{end}}
Everywhere: --root DIR, --team NAME, --as NAME, --json, --quiet, --lock-timeout D, --help
`

// printHelp prints the page of a verb; of none, the main page.
func printHelp(app *cli.App, path []string) error {
	commands, found, name := app.Commands, (*cli.Command)(nil), app.Name
	for _, word := range path {
		var next *cli.Command
		for _, c := range commands {
			if c.HasName(word) {
				next = c
			}
		}
		if next == nil && found == nil {
			return unknownVerb(app, word)
		}
		if next == nil {
			return command.Usage("unknown command %q after %s", word, name).WithHint("%s --help", name)
		}
		found, commands, name = next, next.Subcommands, name+" "+next.Name
	}
	if found == nil {
		_, err := os.Stdout.WriteString(mainHelp)
		return err
	}
	shown := *found
	shown.HelpName = name
	cli.HelpPrinterCustom(os.Stdout, page, &shown, map[string]any{
		"lines": func(s string) []string { return strings.Split(s, "\n") },
		"flags": flagLines,
		"subs":  subLines,
	})
	return nil
}

// flagLines are a verb's flags, in two columns where they are many.
func flagLines(c *cli.Command) string {
	var cells []string
	width := 0
	for _, f := range c.VisibleFlags() {
		value, usage := flag.UnquoteUsage(&flag.Flag{Usage: f.(cli.DocGenerationFlag).GetUsage()})
		if _, isBool := f.(*cli.BoolFlag); isBool {
			value = ""
		}
		cell := fmt.Sprintf("%-16s %s", strings.TrimSpace("--"+f.Names()[0]+" "+value), usage)
		cells = append(cells, cell)
		width = max(width, len([]rune(cell)))
	}
	var b strings.Builder
	rows := len(cells)
	if len(cells) > 10 {
		rows = (len(cells) + 1) / 2
	}
	for i := range rows {
		line := "  " + cells[i]
		if i+rows < len(cells) {
			line = fmt.Sprintf("  %-*s  %s", width, cells[i], cells[i+rows])
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func subLines(c *cli.Command) string {
	var b strings.Builder
	for _, sub := range c.VisibleCommands() {
		fmt.Fprintf(&b, "  %-28s %s\n", strings.TrimSpace(c.Name+" "+sub.Name+" "+sub.ArgsUsage), sub.Usage)
	}
	return b.String()
}

// printAll prints a line for every verb.
func printAll(app *cli.App) error {
	var b strings.Builder
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(&b, "%-32s %s\n", strings.TrimSpace("atm "+c.Name+" "+c.ArgsUsage), c.Usage)
		for _, sub := range c.VisibleCommands() {
			fmt.Fprintf(&b, "%-32s %s\n", strings.TrimSpace("atm "+c.Name+" "+sub.Name+" "+sub.ArgsUsage), sub.Usage)
		}
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}
