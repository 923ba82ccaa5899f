package testagent

import (
	"bytes"
	_ "embed"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/pelletier/go-toml/v2"
)

// face is what Claude Code shows. The exact screens of all programs are in the tests of the drivers.
type face struct {
	Idle, Busy, Asks string // titles
	Selector         string // before the selected option
	Foot             string
	BusyFoot         string `toml:"busy_foot"`

	Banner, Asked, Received, Answer, Ran, Failed, Limited, Stopped, Denied, Ended template // in the transcript

	// Below the transcript: a tool that waits for permission, a turn, a queued message, and the box.
	Waiting, Working, Queued, Box template

	Permission, Question, Trust prompt
}

// prompt is shown in place of the box until it is answered.
type prompt struct {
	Rows    template
	Options []option
}

// option is one answer: its name in the log, and the names of the keys that choose it at once.
type option struct{ ID, Label, Keys string }

func (o option) denies() bool { return o.ID == "no" || o.ID == "exit" || o.ID == "cancel" }

// template is rows of the screen, see block.
type template []string

func (t *template) UnmarshalText(text []byte) error {
	*t = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return nil
}

//go:embed face.toml
var faceText []byte

func loadFace() (*face, error) {
	f := &face{}
	return f, toml.NewDecoder(bytes.NewReader(faceText)).DisallowUnknownFields().Decode(f)
}

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	reset = "\x1b[0m"
)

// block is rows, and the values of {text} or {draft}, and of {took}, in them. {─} fills a row; {list} are the options of the
// dialog; {bold}, {dim}, {red} and {green} are styles up to {end}.
type block struct {
	rows template
	text string
	took string
}

// draw renders a block. If a text wraps, its further lines are indented.
func (a *agent) draw(b block) (lines []string) {
	for _, row := range b.rows {
		before, after, isText := strings.Cut(strings.ReplaceAll(row, "{draft}", "{text}"), "{text}")
		before, after = a.fill(before, b), a.fill(after, b)
		if indent, _, ok := strings.Cut(row, "{list}"); ok {
			for _, option := range a.list() {
				lines = append(lines, indent+option)
			}
			continue
		}
		if !isText {
			lines = append(lines, before)
			continue
		}
		for _, line := range strings.Split(ansi.Wrap(b.text, max(a.cols-ansi.StringWidth(before)-2, 1), ""), "\n") {
			lines = append(lines, before+line)
			before = strings.Repeat(" ", ansi.StringWidth(before))
		}
		lines[len(lines)-1] += after
	}
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, a.cols, "")
	}
	return lines
}

// fill replaces all placeholders but {text} and {draft}.
func (a *agent) fill(row string, b block) string {
	cycle := func(glyphs string) string { return string([]rune(glyphs)[a.spin%len([]rune(glyphs))]) }
	return strings.NewReplacer(
		"{─}", strings.Repeat("─", a.cols), "{cwd}", a.cwd, "{dir}", a.dir, "{took}", b.took, "{foot}", a.footer(),
		"{bold}", bold, "{dim}", dim, "{red}", red, "{green}", green, "{end}", reset,
		"{braille}", cycle("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"), "{star}", cycle("·✢✳✶✻✽"),
	).Replace(row)
}

func (a *agent) footer() string {
	switch {
	case a.turn != nil:
		return a.BusyFoot
	case a.draft == "":
		return a.Foot
	}
	return ""
}

func (a *agent) list() (lines []string) {
	for i, o := range a.dialog.Options {
		mark := a.Selector
		if i != a.dialog.selected {
			mark = strings.Repeat(" ", ansi.StringWidth(mark))
		}
		label := strings.ReplaceAll(a.fill(o.Label, block{}), "{text}", a.dialog.about)
		lines = append(lines, mark+strconv.Itoa(i+1)+". "+label)
	}
	return lines
}

// frame renders the part of the screen that changes: what is below the transcript.
func (a *agent) frame() (f frame) {
	t := a.turn
	add := func(rows template, text string) { f.lines = append(f.lines, a.draw(block{rows, text, t.age()})...) }
	f.lines = a.draw(a.pending)
	if t != nil && t.saying != "" {
		add(a.Answer, t.written())
	}
	if t != nil && t.tool != "" {
		add(a.Waiting, t.tool)
	}
	if a.dialog != nil {
		add(a.dialog.Rows, a.dialog.about)
		return f
	}
	if t != nil {
		add(a.Working, "")
	}
	for _, q := range a.queue {
		add(a.Queued, q)
	}
	for _, row := range a.Box {
		add(template{row}, a.draft)
		if strings.Contains(row, "{draft}") {
			f.y = len(f.lines) - 1
			f.x = ansi.StringWidth(f.lines[f.y])
		}
	}
	return f
}
