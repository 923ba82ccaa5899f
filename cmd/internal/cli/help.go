package cli

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

//go:embed help.txt
var mainHelp string

//go:embed topics.txt
var topicsText string

// A topic is a help page that is about no command.
type topic struct{ name, title, text string }

// topics are those of topics.txt, in its order.
func topics() (all []topic) {
	for _, section := range strings.Split("\n"+topicsText, "\n# ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		name, title, _ := strings.Cut(heading, ": ")
		all = append(all, topic{name, title, strings.TrimSpace(text) + "\n"})
	}
	return all
}

func topicText(name string) string {
	all := topics()
	return all[slices.IndexFunc(all, func(t topic) bool { return t.name == name })].text
}

var helpCommand = &cli.Command{
	Name: "help", Category: "man usage commands", ArgsUsage: "[VERB|TOPIC|all] [SUB]", Usage: "explain a command or a topic; all: a line for each",
	UsageText: `atm help send
atm help all
atm help environment`,
	Description: "Topics: environment, exit-codes, json, team.toml, states, files, examples.",
	Flags:       []cli.Flag{&cli.BoolFlag{Name: "all", Hidden: true}, &cli.BoolFlag{Name: "man", Usage: "print the manual page: atm help --man | man -l -"}},
	Action: func(c *cli.Context) error {
		program := cmdline.LineOf(c).Program
		if c.Bool("man") {
			_, err := io.WriteString(c.App.Writer, manual(program))
			return err
		}
		if c.Args().First() == "all" || c.Bool("all") {
			all := verbLines(program.VisibleCommands()) + "\n"
			for _, t := range topics() {
				all += fmt.Sprintf("%-32s  %s\n", "atm help "+t.name, t.title)
			}
			return printHelp(c, all)
		}
		if !c.Args().Present() {
			return printHelp(c, mainPage(program))
		}
		word := c.Args().First()
		isAsked := func(t topic) bool { // atm help env, but atm help team is the command's
			return c.NArg() == 1 && (t.name == word || len(word) > 2 && strings.HasPrefix(t.name, word) && program.Command(word) == nil)
		}
		if i := slices.IndexFunc(topics(), isAsked); i >= 0 {
			return printHelp(c, topics()[i].text)
		}
		found := &cli.Command{Subcommands: program.Commands}
		for i, name := range c.Args().Slice() {
			sub := found.Command(name)
			switch {
			case sub == nil && i == 0 && findExtension(name) != "":
				return failure.Exit(replaceBy(c.App, findExtension(name), []string{"--help"}))
			case sub == nil && i == 0:
				e := cmdline.UnknownCommand(program, name)
				e.Hint = e.Hint.Map(func(typed string) string { return helpOf(program, typed) })
				return e
			case sub == nil:
				return cmdline.UnknownWord(found, name)
			}
			found = sub
		}
		return printHelp(c, helpPage(found, command.PrinterOf(c).Width()))
	},
}

var versionCommand = &cli.Command{
	Name: "version", Usage: "print the version, and the commit and Go that it was built from",
	UsageText: `atm version
atm version --json`,
	Action: func(c *cli.Context) error {
		build := command.BuildOf(c.App.Version)
		return command.PrinterOf(c).PrintAs(build, "atm "+build.String())
	},
}

// mainPage is the page of atm itself, and the extensions that are here.
func mainPage(program *cli.App) string {
	names := extensions(program)
	if len(names) == 0 {
		return mainHelp
	}
	return mainHelp + "Extensions, programs atm-NAME on PATH: " + letter.Escape(strings.Join(names, " ")) + "\n"
}

func printHelp(c *cli.Context, text string) error {
	shown := text
	if width := command.PrinterOf(c).Width(); width > 0 {
		shown = layOut(text, width)
	}
	return command.PrinterOf(c).PrintAs(map[string]string{"help": text}, shown)
}

// layOut breaks the lines of a help page that are longer than a row of a terminal. In a table it breaks the
// last column alone, which goes on below itself, or has rows of its own where there is no room for that.
func layOut(text string, width int) (out string) {
	const gap, deep, minimum = "  ", 13, 20 // between two columns; where rows of its own begin; of the last column
	for line := range strings.Lines(text) {
		line, indent := strings.TrimSuffix(line, "\n"), "    "
		columns := strings.TrimRight(line[:strings.LastIndex(line, gap)+1], " ")
		if letter.Columns(line) > width && columns != "" {
			last := strings.TrimLeft(line[len(columns):], " ")
			at := letter.Columns(line) - letter.Columns(last)
			if at > width-minimum {
				at = deep
				out, line = out+columns+"\n", strings.Repeat(" ", at)+last
			}
			indent = strings.Repeat(" ", at)
		}
		out += letter.WrapTo(line, indent, width) + "\n"
	}
	return out
}

// helpTemplate is the help page of a command: examples first.
const helpTemplate = `{{range lines .UsageText}}  {{.}}
{{end}}
{{synopsis .}}: {{.Usage}}
{{with .Description}}{{fill .}}

{{end}}{{with verbs .VisibleCommands}}{{.}}
{{end}}{{with flags .}}{{.}}
{{end}}Also: --root DIR --team NAME --as NAME --json --quiet --lock-timeout D --help
`

func helpPage(c *cli.Command, width int) string {
	var page strings.Builder
	cli.HelpPrinterCustom(&page, helpTemplate, c, map[string]any{
		"lines":    func(text string) []string { return strings.Split(text, "\n") },
		"synopsis": cmdline.Synopsis,
		"fill":     func(text string) string { return fill(text, width) },
		"verbs":    verbLines,
		"flags":    func(c *cli.Command) string { return flagLines(c, width) },
	})
	return page.String()
}

// fill breaks paragraphs anew if they are wider than a terminal; 0: it is none.
func fill(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		isTooLong := func(line string) bool { return width > 0 && letter.Columns(line) > width }
		if slices.ContainsFunc(strings.Split(p, "\n"), isTooLong) && !strings.Contains(p, "  ") {
			paragraphs[i] = letter.WrapTo(strings.ReplaceAll(p, "\n", " "), "", width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// flagLines lists the flags, many of them in two columns if a terminal of this width has room for those; 0: it is none.
func flagLines(c *cli.Command, width int) (text string) {
	flags := c.VisibleFlags()
	half := (len(flags) + 1) / 2
	left, widthOfLeft := flagCells(flags[:half])
	right, widthOfRight := flagCells(flags[half:])
	if len(flags) <= 10 || width > 0 && widthOfLeft+widthOfRight+4 > width {
		left, widthOfLeft = flagCells(flags)
		right = nil
	}
	for i, cell := range left {
		if i < len(right) {
			cell = fmt.Sprintf("%-*s  %s", widthOfLeft, cell, right[i])
		}
		text += "  " + cell + "\n"
	}
	return text
}

// flagCells returns a cell for each flag, and the width of the widest.
func flagCells(flags []cli.Flag) (cells []string, width int) {
	typed := 0
	for _, f := range flags {
		name, _ := cmdline.FlagUsage(f)
		typed = max(typed, letter.Columns(name))
	}
	for _, f := range flags {
		name, usage := cmdline.FlagUsage(f)
		cell := fmt.Sprintf("%-*s  %s", typed, name, usage)
		cells, width = append(cells, cell), max(width, letter.Columns(cell))
	}
	return cells, width
}

func verbLines(verbs []*cli.Command) (text string) {
	for _, c := range verbs {
		text += fmt.Sprintf("%-32s  %s\n%s", cmdline.Synopsis(c), c.Usage, verbLines(c.VisibleCommands()))
	}
	return text
}

// helpOf returns the command that explains another one.
func helpOf(program *cli.App, typed string) string {
	of := "atm help"
	found := &cli.Command{Subcommands: program.Commands}
	for _, word := range strings.Fields(typed)[1:] {
		if found = found.Command(word); found == nil || found.Name == "help" {
			break
		}
		of += " " + word
	}
	return of
}
