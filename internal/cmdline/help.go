package cmdline

import (
	"strings"
	"unicode/utf8"
)

// A help page is never larger than this; Check sees to it.
const (
	pageLines   = 25
	pageColumns = 100
)

// help prints the page that the words after `atm help` ask for.
func (a *App) help(c *Call, words []string) error {
	if len(words) == 0 {
		return a.printPage(c, nil)
	}
	if words[0] == "all" && a.find("all") == nil {
		_, err := c.Stdout.WriteString(a.all())
		return err
	}
	p := &parse{app: a}
	p.locate(append([]string{"--"}, words...))
	if p.err != nil {
		return p.err
	}
	return a.printPage(c, p.path)
}

// printPage writes a verb's page to stdout; no path: the main page.
func (a *App) printPage(c *Call, path []*Verb) error {
	page := a.Help
	switch {
	case len(path) > 0:
		page = a.page(path)
	case page == "":
		page = a.all()
	}
	if !strings.HasSuffix(page, "\n") {
		page += "\n"
	}
	_, err := c.Stdout.WriteString(page)
	return err
}

// form returns a command and its arguments.
func form(path string, v *Verb) string {
	if v == nil || v.Args == "" {
		return path
	}
	return path + " " + v.Args
}

// all returns every command, a line each.
func (a *App) all() string {
	if a.HelpAll != nil {
		return a.HelpAll()
	}
	var names, says []string
	var add func(path string, verbs []*Verb)
	add = func(path string, verbs []*Verb) {
		for _, v := range verbs {
			if v.Hidden {
				continue
			}
			full := path + " " + v.Name
			if v.Run != nil || len(v.Subs) == 0 {
				names, says = append(names, form(full, v)), append(says, v.Summary)
			}
			add(full, v.Subs)
		}
	}
	add(a.Name, a.Verbs)
	add(a.Name, builtinVerbs)
	const most = 40 // a longer one pushes its own summary to the right, not all
	width := 0
	for _, name := range names {
		if n := columns(name); n <= most {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for i, name := range names {
		line := []rune(padded(name, width) + "  " + says[i])
		if len(line) > pageColumns {
			line = append(line[:pageColumns-1], '…')
		}
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// page returns the help page of a verb: examples, form, flags, notes, and the
// flags of every verb in one line. Where it would be too long its short flags
// stand in two columns, then without empty lines.
func (a *App) page(path []*Verb) string {
	v := path[len(path)-1]
	sections := [][]string{nil, a.forms(path), nil, v.Notes, {a.everywhere()}}
	for _, example := range v.Examples {
		sections[0] = append(sections[0], "  "+example)
	}
	sections[2] = oneColumn(v.flags())
	if size(sections) > pageLines {
		sections[2] = twoColumns(v.flags())
	}
	gap := "\n"
	if size(sections) > pageLines {
		gap = ""
	}
	var b strings.Builder
	for _, lines := range sections {
		if len(lines) > 0 && b.Len() > 0 {
			b.WriteString(gap)
		}
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// size returns the lines of a page with an empty one between its sections.
func size(sections [][]string) int {
	n := 0
	for _, lines := range sections {
		if len(lines) > 0 {
			n += len(lines) + 1
		}
	}
	return n - 1
}

// forms returns how the command is written, what it does, and its subs.
func (a *App) forms(path []*Verb) []string {
	v := path[len(path)-1]
	full := a.path(path)
	var lines []string
	if v.Run != nil || len(v.Subs) == 0 {
		line := "usage: " + form(full, v)
		for i, alias := range v.Aliases {
			line += []string{"   (or ", ", "}[min(i, 1)] + alias
		}
		if len(v.Aliases) > 0 {
			line += ")"
		}
		lines = append(lines, line)
	}
	if v.Summary != "" {
		lines = append(lines, v.Summary)
	}
	width := 0
	for _, sub := range v.Subs {
		if !sub.Hidden {
			width = max(width, columns(form(full+" "+sub.Name, sub)))
		}
	}
	for _, sub := range v.Subs {
		if !sub.Hidden {
			lines = append(lines, "  "+padded(form(full+" "+sub.Name, sub), width)+"  "+sub.Summary)
		}
	}
	return lines
}

// everywhere returns the line of the flags of every verb.
func (a *App) everywhere() string {
	line := "every command:"
	for i := range a.Flags {
		line += " " + label(&a.Flags[i], false)
	}
	for i := range builtinFlags {
		f := &builtinFlags[i]
		if f.Name != "version" && findFlag(a.Flags, f.Name, true) == nil {
			line += " " + label(f, false)
		}
	}
	return line
}

// label returns a flag as help shows it: "-n, --limit N".
func label(f *Flag, short bool) string {
	s := dashed(f.Name)
	if short && len(f.Name) > 1 {
		for _, alias := range f.Aliases {
			if len(alias) == 1 {
				s = "-" + alias + ", " + s
			}
		}
	}
	if f.Arg != "" {
		s += " " + f.Arg
	}
	if short && f.repeats() {
		s += "…"
	}
	return s
}

// usage returns what a flag does, and its default.
func usage(f *Flag) string {
	if f.Default == "" {
		return f.Usage
	}
	return f.Usage + " (" + f.Default + ")"
}

func oneColumn(flags []Flag) []string {
	width := 0
	for i := range flags {
		width = max(width, columns(label(&flags[i], true)))
	}
	lines := make([]string, len(flags))
	for i := range flags {
		lines[i] = "  " + padded(label(&flags[i], true), width) + "  " + usage(&flags[i])
	}
	return lines
}

// twoColumns puts the flags that fit into half a line two on one, and the
// others below them.
func twoColumns(flags []Flag) []string {
	const half = pageColumns / 2
	width := 0
	for i := range flags {
		width = max(width, columns(label(&flags[i], true)))
	}
	var short, long []string
	for i := range flags {
		cell := "  " + padded(label(&flags[i], true), width) + "  " + usage(&flags[i])
		if columns(cell) <= half {
			short = append(short, cell)
		} else {
			long = append(long, cell)
		}
	}
	var lines []string
	rows := (len(short) + 1) / 2
	for i := range rows {
		line := short[i]
		if rows+i < len(short) {
			line = padded(line, half) + short[rows+i]
		}
		lines = append(lines, line)
	}
	return append(lines, long...)
}

func columns(s string) int { return utf8.RuneCountInString(s) }

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-columns(s)))
}
