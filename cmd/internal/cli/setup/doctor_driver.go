package setup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
)

// lookAtDriver lists the drivers, prints one's file, or what one reads from a terminal.
func lookAtDriver(c *cli.Context) error {
	name := c.String("driver")
	switch {
	case c.Bool("fix"):
		return failure.Usage("--driver and --fix contradict each other").WithHint("leave one out")
	case c.NArg() > 0:
		return tryDriver(c, name, c.Args().First())
	case name == "all":
		return listDrivers(c)
	}
	return showDriver(c, name)
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

func findDriver(name string) (agents.Entry, error) {
	all := agents.Load(agents.Dir())
	i := slices.IndexFunc(all, func(e agents.Entry) bool { return e.Name == name })
	if i < 0 {
		return agents.Entry{}, failure.NotFound("no driver %q", name).WithHint("`atm doctor --driver all`").WithNearest(name, agents.Names(agents.Dir()))
	}
	return all[i], nil
}

func showDriver(c *cli.Context, name string) error {
	p := command.PrinterOf(c)
	e, err := findDriver(name)
	if err != nil {
		return err
	}
	if e.File == nil {
		return failure.Failed("%w", e.Fault()).WithHint("`atm doctor --driver all`")
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

// tryDriver prints what a driver reads from a recording, or from the terminal of a member as its runner records it.
func tryDriver(c *cli.Context, name, of string) error {
	p, spec := command.PrinterOf(c), runspec.Look{Driver: name, Recording: of, Cols: 100, Rows: 30} // unless the recording says it
	if !strings.HasSuffix(name, ".toml") {                                                          // else a file that is being written
		e, err := findDriver(name)
		if err == nil && e.Fault() != nil {
			err = failure.Failed("%w", e.Fault()).WithHint("`atm doctor --driver all`")
		}
		if err != nil {
			return err
		}
	}
	if _, err := os.Stat(of); err != nil {
		s, failed := app.OpenTeam(p.Given)
		if failed == nil && s.IsMember(of) {
			box, err := s.Member(of)
			if err != nil {
				return err
			}
			spec.Recording = filepath.Join(box.Path(), "run", "screen.cast")
		}
	}
	program, err := command.FindCompanion(c, app.Runner, "which reads screens")
	if err != nil {
		return err
	}
	r, err := readScreen(program, spec)
	if err != nil {
		return failure.Failed("try driver %s: %w", name, err)
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
