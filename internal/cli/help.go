package cli

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
)

//go:embed help.txt
var mainHelp string

var helpCommand = &cli.Command{
	Name: "help", Aliases: []string{"man", "usage", "commands"}, ArgsUsage: "[VERB|all] [SUB]", Usage: "explain a command; all: a line for each",
	Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Hidden: true}},
	Action: func(c *cli.Context) error {
		if c.Args().First() == "all" || c.Bool("all") {
			return printHelp(c, verbLines(c.App.VisibleCommands()))
		}
		if !c.Args().Present() {
			return printHelp(c, mainHelp)
		}
		found := &cli.Command{Subcommands: c.App.Commands}
		for i, name := range c.Args().Slice() {
			if found = found.Command(name); found == nil {
				if _, err := cmdline.Parse(c.App, c.Args().Slice()); err != nil { // team ad
					return err
				}
				return cmdline.UnknownVerb(c.App, strings.Join(c.Args().Slice()[:i+1], " "))
			}
		}
		return printHelp(c, helpPage(found))
	},
}

var versionCommand = &cli.Command{
	Name: "version", Usage: "print the version",
	Action: func(c *cli.Context) error {
		return command.PrintAs(c, map[string]string{"version": c.App.Version}, "atm "+c.App.Version)
	},
}

func printHelp(c *cli.Context, text string) error {
	return command.PrintAs(c, map[string]string{"help": text}, text)
}

func helpPage(c *cli.Command) string {
	text := mainHelp
	if c.Name != "" {
		examples, description := cmdline.Page(c)
		text = "  " + strings.ReplaceAll(examples, "\n", "\n  ") + "\n\n" +
			cmdline.Synopsis(c) + ": " + c.Usage + "\n"
		for _, part := range []string{description, verbLines(c.VisibleCommands()), flagLines(c)} {
			if part != "" {
				text += strings.TrimSuffix(part, "\n") + "\n\n"
			}
		}
		text += "Everywhere: --root DIR, --team NAME, --as NAME, --json, --quiet, --lock-timeout D, --help\n"
	}
	return text
}

func flagLines(c *cli.Command) string {
	var cells []string
	width := 0
	for _, f := range c.VisibleFlags() {
		typed, usage := cmdline.FlagUsage(f)
		cell := fmt.Sprintf("%-16s %s", typed, usage)
		cells = append(cells, cell)
		width = max(width, len([]rune(cell)))
	}
	rows, text := len(cells), ""
	if rows > 10 {
		rows = (rows + 1) / 2
	}
	cells = append(cells, make([]string, rows)...)
	for i := range rows {
		text += strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, cells[i], cells[i+rows]), " ") + "\n"
	}
	return text
}

func verbLines(verbs []*cli.Command) (text string) {
	for _, c := range verbs {
		text += fmt.Sprintf("%-32s %s\n%s", cmdline.Synopsis(c), c.Usage, verbLines(c.VisibleCommands()))
	}
	return text
}
