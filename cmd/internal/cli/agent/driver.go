package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/runspec"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/config"
)

var driverCommand = &cli.Command{
	Name: "driver", Usage: "what atm knows of agent programs: their screens, keys and triggers",
	UsageText: `atm driver ls
atm driver try claude --agent bob`,
	Description: `A driver is a file that says what an agent program looks like. Yours are in ~/.config/atm/drivers,
as NAME.toml; they win over built-in ones. One that says extends = "claude" changes only what else
it says. docs/drivers.md shows how to write one.
Nothing is typed into a program that no driver describes. Shells and REPLs are known by name; if
yours is like one, say driver = "plain" in team.toml, or atm run --driver plain.`,
	Action: listDrivers,
	Subcommands: []*cli.Command{
		{Name: "ls", Aliases: []string{"list"}, Usage: "list the drivers, where they come from and their mistakes",
			UsageText:   "atm driver ls",
			Description: "Lists the mistakes in your files, by line, a wrong type alone. A file with mistakes is not used.",
			Action:      listDrivers},
		{Name: "show", ArgsUsage: "NAME", Usage: "print a driver's file",
			UsageText: "atm driver show codex",
			Action:    showDriver},
		{
			Name: "try", ArgsUsage: "NAME [FILE]", Usage: "print what a driver reads from a recording, and what fits",
			UsageText: `atm driver try claude --agent bob
atm driver try ./mine.toml screen.cast`,
			Description: "FILE has the bytes that a program wrote to its terminal, or is an asciicast.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "agent", Usage: "the terminal of this member, as its runner records it, in place of FILE"},
				&cli.StringFlag{Name: "size", Usage: "terminal size, unless FILE says it (default `100x30`)"},
			},
			Action: tryDriver,
		},
	},
}

// A driverLine is a driver in the list.
type driverLine struct {
	Name     string   `json:"name"`
	From     string   `json:"from"` // "built in", or a file
	Versions []string `json:"versions"`
	Unproven bool     `json:"unproven,omitempty"`
	Replaces bool     `json:"replaces_built_in"`
	IsUsed   bool     `json:"used"` // false: the file has mistakes
	Mistakes []string `json:"mistakes"`
	Problem  string   `json:"problem,omitempty"`
}

func listDrivers(c *cli.Context) error {
	p := command.PrinterOf(c)
	lines, rows, faults := []driverLine{}, [][]string{{"NAME", "FROM", "TRIED WITH"}}, ""
	for _, e := range agents.Load(agents.Dir()) {
		fault := e.Fault()
		l := driverLine{
			Name: e.Name, From: cmp.Or(e.Path, "built in"), Replaces: e.Overrides, IsUsed: fault == nil,
			Versions: []string{}, Mistakes: append([]string{}, e.Mistakes...),
		}
		from := l.From
		switch {
		case fault != nil && e.File != nil:
			from = "built in, because of mistakes in " + e.Path
		case fault != nil:
			from = "nowhere, because of mistakes in " + e.Path
		case e.File.Extends != "":
			from += ", and the rest of the built-in " + e.File.Extends
		case e.Overrides:
			from += ", in place of the built-in one"
		}
		if e.File != nil {
			l.Versions, l.Unproven = append(l.Versions, e.File.Versions...), e.File.Unproven
		}
		tried := strings.Join(l.Versions, ", ")
		if l.Unproven {
			tried = "unproven"
		}
		if e.Err != nil {
			l.Problem = e.Err.Error()
			faults += letter.Escape(e.Err.Error()) + "\n"
		}
		for _, m := range e.Mistakes {
			faults += letter.Escape(e.Path+": "+m) + "\n"
		}
		lines, rows = append(lines, l), append(rows, []string{e.Name, from, tried})
	}
	text := strings.Join(p.Columns(rows, "", "", ""), "\n") + "\n"
	return p.PrintAs(map[string]any{"drivers": lines, "directory": agents.Dir()}, text+faults)
}

// findDriver returns the driver of a name; verb is the one that needs it.
func findDriver(verb, name string) (agents.Entry, error) {
	if name == "" {
		return agents.Entry{}, failure.Usage("%s needs a name", verb).WithHint("`%s claude`", verb)
	}
	all := agents.Load(agents.Dir())
	i := slices.IndexFunc(all, func(e agents.Entry) bool { return e.Name == name })
	if i < 0 {
		return agents.Entry{}, failure.NotFound("no driver %q", name).WithHint("`atm driver ls`").WithNearest(name, agents.Names(agents.Dir()))
	}
	return all[i], nil
}

func showDriver(c *cli.Context) error {
	p := command.PrinterOf(c)
	e, err := findDriver(p.Verb, c.Args().First())
	if err != nil {
		return err
	}
	if e.File == nil {
		return failure.Failed("%w", e.Fault()).WithHint("`atm driver ls`")
	}
	from := cmp.Or(e.Path, "built in")
	if err := e.Fault(); err != nil {
		p.Warn("%v", err)
		from = "built in"
	}
	text := string(e.File.Text)
	if p.IsTerminal() {
		text = letter.Reveal(text)
	}
	return p.PrintAs(map[string]any{"name": e.Name, "from": from, "text": text}, text)
}

func tryDriver(c *cli.Context) error {
	p, spec := command.PrinterOf(c), runspec.Look{Driver: c.Args().First(), Recording: c.Args().Get(1)}
	if !strings.HasSuffix(spec.Driver, ".toml") { // else a file that is being written
		e, err := findDriver(p.Verb, spec.Driver)
		if err == nil && e.Fault() != nil {
			err = failure.Failed("%w", e.Fault()).WithHint("`atm driver ls`")
		}
		if err != nil {
			return err
		}
	}
	var err error
	if spec.Cols, spec.Rows, err = config.ParseSize(cmp.Or(c.String("size"), "100x30")); err != nil {
		return failure.Usage("size: %v", err).WithHint("--size 100x30")
	}
	if name := c.String("agent"); name != "" {
		s, err := app.OpenTeam(p.Given)
		if err != nil {
			return err
		}
		box, err := s.Member(name)
		if err != nil {
			return err
		}
		spec.Recording = filepath.Join(box.Path(), "run", "screen.cast")
	}
	if spec.Recording == "" {
		return failure.Usage("which screen?").WithHint("`atm driver try %s FILE`, or --agent NAME", spec.Driver)
	}
	program, err := command.FindCompanion(c, app.Runner, "which reads screens")
	if err != nil {
		return err
	}
	r, err := readScreen(program, spec)
	if err != nil {
		return failure.Failed("try driver %s: %w", spec.Driver, err)
	}
	return p.PrintAs(r, letter.Reveal(readingText(p, r)))
}

// readScreen has atm-runner read a recorded screen, for which it has an emulator.
func readScreen(program string, spec runspec.Look) (*runspec.Reading, error) {
	spec.Recording, _ = filepath.Abs(spec.Recording)
	in, _ := json.Marshal(spec)
	cmd := exec.Command(program, "look")
	var failed bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &failed
	out, err := cmd.Output()
	if reason := strings.TrimSpace(failed.String()); err != nil && reason != "" {
		return nil, errors.New(reason)
	}
	r := &runspec.Reading{}
	if err == nil {
		err = json.Unmarshal(out, r)
	}
	return r, err
}

const maxEvidence = 60 // columns of the text that a pattern matched

// readingText is a reading for a person.
func readingText(p *command.Printer, r *runspec.Reading) string {
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", name, strings.ReplaceAll(value, "\n", "\n         "))
		}
	}
	shown := len(r.Screen)
	for shown > 0 && r.Screen[shown-1] == "" {
		shown--
	}
	for i, row := range r.Screen[:shown] {
		fmt.Fprintf(&b, "%3d| %s\n", i+1, row)
	}
	field("title", r.Title)
	field("state", strings.TrimSpace(r.State+" "+r.Detail))
	if r.IsPrompt {
		field("mail", "would be typed now")
	} else {
		field("mail", "would wait: "+r.Gate)
	}
	field("draft", r.Draft)
	if q := r.Dialog; q != nil {
		field("dialog", q.Dialog)
		field("asks", q.Prompt)
		field("tool", q.Tool)
		for i, o := range q.Options {
			field("option", strings.TrimSpace(fmt.Sprintf("%s %q by %q %s", o.ID, o.Label, r.Keys[i], o.Kind)))
		}
	}
	rows := [][]string{{"ROW", "FITS", "TEXT"}}
	for _, m := range r.Matches {
		row := "title"
		if m.Row > 0 {
			row = strconv.Itoa(m.Row)
		}
		text := strings.Join(strings.Fields(m.Text), " ")
		rows = append(rows, []string{row, m.Key, letter.Fit(text, min(maxEvidence, letter.Columns(text)))})
	}
	b.WriteString(strings.Join(p.Columns(rows, "", "", ""), "\n") + "\n")
	return b.String()
}
