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
	Action: func(c *cli.Context) error { return command.Print(c, command.Text("atm "+c.App.Version)) },
}

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
	if len(path) == 0 {
		_, err := os.Stdout.WriteString(mainHelp)
		return err
	}
	found := app.Command(path[0])
	if found == nil {
		return unknownVerb(app, path[0])
	}
	for _, sub := range path[1:] {
		if found = found.Command(sub); found == nil {
			return command.Usage("unknown command %q", strings.Join(path, " ")).WithHint("atm help %s", path[0])
		}
	}
	cli.HelpPrinterCustom(os.Stdout, page, found, map[string]any{
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
	rows := len(cells)
	if rows > 10 {
		rows = (rows + 1) / 2
	}
	text := ""
	for i := range rows {
		if i+rows < len(cells) {
			text += fmt.Sprintf("  %-*s  %s\n", width, cells[i], cells[i+rows])
		} else {
			text += "  " + cells[i] + "\n"
		}
	}
	return text
}

func subLines(c *cli.Command) string {
	text := ""
	for _, sub := range c.VisibleCommands() {
		text += fmt.Sprintf("  %-30s %s\n", strings.TrimSpace(sub.HelpName+" "+sub.ArgsUsage), sub.Usage)
	}
	return text
}

// printAll prints a line for every verb.
func printAll(app *cli.App) error {
	text := ""
	for _, c := range app.VisibleCommands() {
		text += fmt.Sprintf("%-32s %s\n%s", strings.TrimSpace(c.HelpName+" "+c.ArgsUsage), c.Usage, subLines(c))
	}
	_, err := os.Stdout.WriteString(text)
	return err
}
