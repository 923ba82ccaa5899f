package testagent

import (
	"bytes"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/pelletier/go-toml/v2"
)

// face is what differs between the agents: how they handle input, and what they show. The exact screens of the real
// programs are in the tests of the drivers.
type face struct {
	Fullscreen bool // it draws on the alternate screen

	Swallow      int    `toml:"swallow_ms"` // within so many ms of text, Return is a line break
	Pasted       string // the placeholder of a long paste; "": there is none
	PasteLines   int    `toml:"paste_lines"` // a paste with so many line breaks is long; 0: any number is not
	PasteChars   int    `toml:"paste_chars"` // a paste with more characters is long
	Steers       bool   // Return during a turn adds the text to the turn; else the text is queued
	Again        string // the footer after one Escape, if two interrupt; "": one does
	Restores     bool   // an interrupt before any answer puts the prompt and the queue back into the box
	DigitsSelect bool   `toml:"digits_select"` // a digit in a dialog selects, and does not answer

	Idle, Busy, Asks string // titles
	DeclaresAs       string `toml:"declares_as"` // its name where it declares its state; "": it does not
	Selector         string // before the selected option
	Placeholder      string // in the empty box
	Foot             string
	BusyFoot         string `toml:"busy_foot"`

	Banner, Asked, Received, Answer, Ran, Failed, Limited, Stopped, Denied, Ended template // in the transcript

	// Below the transcript: a tool that waits for permission, a turn, a queued message, and the box.
	Waiting, Working, Queued, Box template

	Permission, Question prompt
	Trust                *prompt // nil: there is no such dialog
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

//go:embed faces
var faces embed.FS

func loadFace(profile string) (*face, error) {
	f := &face{}
	text, err := faces.ReadFile("faces/" + profile + ".toml")
	if err != nil {
		return nil, fmt.Errorf("--profile %q is not one of claude, codex, gemini, opencode", profile)
	}
	return f, toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(f)
}

const (
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	inverse = "\x1b[7m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	reset   = "\x1b[0m"
)

// block is rows, and the values of {text} or {draft}, and of {took}, in them. {─}, {▄} and {▀} fill a row; {list} and
// {buttons} are the options of the dialog; {bold}, {dim}, {red} and {green} are styles up to {end}.
type block struct {
	rows template
	text string
	took string
}

// draw renders a block. If a text wraps, its further lines are indented and keep the row's frame.
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
			before = strings.Map(func(r rune) rune {
				if r == '┃' || r == '│' {
					return r
				}
				return ' '
			}, ansi.Strip(before))
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
		"{─}", strings.Repeat("─", a.cols), "{▄}", strings.Repeat("▄", a.cols), "{▀}", strings.Repeat("▀", a.cols),
		"{cwd}", a.cwd, "{dir}", a.dir, "{took}", b.took, "{foot}", a.footer(), "{buttons}", a.buttons(),
		"{bold}", bold, "{dim}", dim, "{red}", red, "{green}", green, "{end}", reset,
		"{braille}", cycle("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"), "{star}", cycle("·✢✳✶✻✽"),
	).Replace(row)
}

func (a *agent) footer() string {
	switch {
	case a.hint != "":
		return a.hint
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

// buttons renders the options side by side, the selected one inverted.
func (a *agent) buttons() (row string) {
	if a.dialog == nil {
		return ""
	}
	for i, o := range a.dialog.Options {
		if i == a.dialog.selected {
			row += inverse + " " + o.Label + " " + reset + " "
		} else {
			row += " " + o.Label + "  "
		}
	}
	return row
}

// frame renders the part of the screen that changes: all of the alternate screen, or what is below the transcript on
// the main one.
func (a *agent) frame() (f frame) {
	var low []string
	t := a.turn
	add := func(rows template, text string) { low = append(low, a.draw(block{rows, text, t.age()})...) }
	if t != nil && t.tool != "" {
		add(a.Waiting, t.tool)
	}
	if a.dialog != nil {
		add(a.dialog.Rows, a.dialog.about)
	} else {
		if t != nil && (!a.Fullscreen || t.saying == "") { // Codex has no busy line while it answers
			add(a.Working, "")
		}
		for _, q := range a.queue {
			add(a.Queued, q)
		}
		for _, row := range a.Box {
			add(template{row}, a.draft)
			if !strings.Contains(row, "{draft}") {
				continue
			}
			f.y = len(low) - 1
			f.x, f.cursor = ansi.StringWidth(low[f.y]), a.Fullscreen
			if a.draft == "" {
				low[f.y] += dim + a.Placeholder
			}
		}
	}
	above := a.draw(a.pending)
	if t != nil && t.saying != "" {
		above = append(above, a.draw(block{a.Answer, t.written(), ""})...)
	}
	if a.Fullscreen {
		var all []string
		for _, b := range a.transcript[max(len(a.transcript)-a.rows, 0):] {
			all = append(all, a.draw(b)...)
		}
		above = append(all, above...)
		room := max(a.rows-len(low), 0)
		above = append(above[max(len(above)-room, 0):], make([]string, max(room-len(above), 0))...)
	}
	f.y += len(above)
	f.lines = append(above, low...)
	return f
}
