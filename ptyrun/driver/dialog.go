package driver

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
)

// A Dialog is a question that a program draws in place of its input box.
type Dialog struct {
	Kind        string // permission, trust, question, unknown
	Fingerprint string // stays the same while the same dialog is on the screen
	Prompt      string // the text above the options
	Tool        string // Claude Code's name for the tool: Bash, Edit, WebFetch; "" if uncertain, so that no rule answers
	Alias       string // another name of the tool, which rules match as well
	IsCommand   bool   // Input is a command, although tools with these names take none
	Input       string // the complete command, path or address
	IsCut       bool   // a permission request of which a part is not on the screen
	Options     []Option
	cancel      string // the key that ends the dialog without an answer, if the dialog names one
}

// Allowing returns the option that allows this one call only. In a question, where the agent writes the options, there
// must be exactly one that starts like a yes. A dialog of an unknown kind has none: it may ask for anything.
func (d *Dialog) Allowing() (Option, bool) {
	found := slices.DeleteFunc(slices.Clone(d.Options), func(o Option) bool { return !o.AllowsOnce() })
	if len(found) == 0 || d.Kind == "question" && len(found) > 1 {
		return Option{}, false
	}
	return found[0], true
}

// Denying returns the option that denies and ends the dialog. For a question it prefers the key that ends it without an
// answer: "No tests" is an answer.
func (d *Dialog) Denying() (Option, bool) {
	if d.Kind == "question" {
		if o, ok := d.cancelOption(); ok {
			return o, true
		}
	}
	if i := slices.IndexFunc(d.Options, Option.Denies); i >= 0 {
		return d.Options[i], true
	}
	return d.cancelOption()
}

// cancelOption returns the option that ends the dialog without an answer: the one for Escape, or Escape itself.
func (d *Dialog) cancelOption() (Option, bool) {
	if i := slices.IndexFunc(d.Options, func(o Option) bool { return o.Keys == escape }); i >= 0 {
		return d.Options[i], true
	}
	return Option{ID: "cancel", Label: "Esc", Keys: d.cancel, Kind: "reject_once"}, d.cancel != ""
}

// requests read the tool and its input in a permission dialog from row first to the options in row end, by the form that a
// driver's file names. They return "" if the screen leaves them open: a rule must not allow a request that was not read
// completely. Without a form no rule does.
var requests = map[string]func(d *Driver, l *Look, first, end int) (tool, input string){
	"claude": (*Driver).claudeRequest, "codex": (*Driver).codexRequest, "gemini": (*Driver).geminiRequest, "opencode": (*Driver).opencodeRequest,
}

// readDialog returns the dialog on the screen, or nil. box is the input box, or nil: a list inside it is a draft, and a
// list above it is a quotation. shows is what the title says.
func (d *Driver) readDialog(l *Look, box *inputBox, shows reducer.Activity) *Dialog {
	f, ok := d.findLayout(l, box)
	if !ok && box == nil && shows != reducer.Thinking { // else the turn behind a menu goes on
		f, ok = d.findText(l)
	}
	if !ok || box != nil && f.top <= box.bottom {
		return nil
	}
	text, foot := textRows(l, f.first, f.top), strings.Join(textRows(l, f.end, len(l.Lines)), " ")
	f.isWhole = f.isWhole && !hiddenRows.MatchString(foot)
	q := &Dialog{Kind: d.kindOfDialog(l, text, foot), Prompt: strings.Join(text, "\n"), Options: f.options}
	for i := range q.Options {
		if o := &q.Options[i]; o.Kind == "" && slices.Contains(d.screen.Dialog.AllowsOnce, o.Label) {
			o.Kind = "allow_once"
		}
	}
	switch {
	case q.Kind == "permission" && !f.isWhole:
		q.IsCut = true
	case q.Kind == "permission":
		if read := requests[d.screen.Dialog.Request]; read != nil {
			q.Tool, q.Input = read(d, l, f.first, f.top)
		}
	case q.Kind == "unknown":
		for i := range q.Options {
			if o := &q.Options[i]; !o.Denies() {
				o.Kind = ""
			}
		}
	}
	if cancelHint.MatchString(RemoveBlanks(foot)) {
		q.cancel = escape
	}
	q.Fingerprint = d.fingerprint(q)
	return q
}

// findLayout finds a dialog with options.
func (d *Driver) findLayout(l *Look, box *inputBox) (f layout, ok bool) {
	if d.screen.Dialog.Shape == agents.Barred && box == nil {
		if f, ok = d.findBarredOptions(l); ok {
			return f, true
		}
	}
	if d.screen.Dialog.Keyed && box == nil {
		if f, ok = d.findKeyed(l); ok {
			return f, true
		}
	}
	if d.screen.Dialog.Selected != "" && box == nil {
		f, ok = d.findUnnumbered(l)
		if ok && d.kindOfDialog(l, textRows(l, f.first, f.top), "") == agents.Unknown {
			return d.findText(l) // a menu with as many rows as fit, or something else to pick from
		}
		if ok {
			return f, true
		}
	}
	return d.findOptions(l)
}

// hiddenRows matches what the program says below a dialog that does not fit on its screen.
var hiddenRows = regexp.MustCompile(`^[↑↓] \d+ more lines?`)

// cancelHint matches the text below the options if it names the key that ends the dialog without an answer.
var cancelHint = regexp.MustCompile(`(?i)esc(?:ape)?(?:tocancel|tointerrupt|dismiss|/ctrl\+ccancel)`)

// dialogTop returns the first row of the dialog with options in row at, and whether the dialog starts on the screen.
func (d *Driver) dialogTop(l *Look, at int) (first int, isWhole bool) {
	startsWith := func(y int, s string) bool { return strings.HasPrefix(strings.TrimSpace(l.line(y)), s) }
	switch shape := d.screen.Dialog.Shape; {
	case shape == agents.Ruled:
		y := l.borderAbove(at)
		return y + 1, y >= 0
	case shape == agents.Framed && !startsWith(at, "│"):
		return d.callAbove(l, at)
	case shape == agents.Framed:
		y := at - 1
		for startsWith(y, "│") {
			y--
		}
		return y + 1, startsWith(y, "╭")
	case shape == agents.Lowest:
		return d.lowestTop(l, at)
	}
	return blockTop(l, at), false
}

// blockTop returns the first row of the block of filled rows at row y.
func blockTop(l *Look, y int) int {
	for at := y; y > 0 && (y == at || !blank(l.line(y-1))); y-- {
	}
	return y
}

// borderAbove returns the border of a dialog above row y, or -1. (Claude Code draws ▔▔▔▔ above what a person opened.)
func (l *Look) borderAbove(y int) int { return max(l.ruleAbove(y, "─"), l.ruleAbove(y, "▔")) }

// lowestTop is dialogTop for a dialog below the last row that is not indented, and its indented rest, or for a screen
// reader below the last row of the transcript: it starts with the first known heading there.
func (d *Driver) lowestTop(l *Look, at int) (first int, isWhole bool) {
	y := at - 1
	for y >= 0 && (blank(l.line(y)) || margin(l.line(y)) > 0 || d.screen.Box.Bottom == nil && d.screen.Box.Top != nil && d.kindOf(l, y) == otherRow) {
		y--
	}
	for first = y + 1; first < at; first++ {
		if _, ok := findPrefix(strings.TrimSpace(l.line(first))+" ", slices.Concat(d.screen.Dialog.Kinds, d.screen.Dialog.Headings)); ok {
			return first, true
		}
	}
	return max(y+1, d.transcriptEnd(l, at)), false
}

// transcriptEnd returns the row below the lowest row of the transcript above row at. (What is selected in a list may look
// like a message.)
func (d *Driver) transcriptEnd(l *Look, at int) int {
	for y := at - 1; y >= 0; y-- {
		if k := d.kindOf(l, y); k != otherRow && k != agents.MessageRow {
			return y + 1
		}
	}
	return 0
}

// callAbove is dialogTop for a dialog without a frame: it starts with the row of the tool's call, or where that is none on
// the screen, below the blank row above its options.
func (d *Driver) callAbove(l *Look, at int) (first int, isWhole bool) {
	for y := at - 1; y >= 0; y-- {
		if k := d.kindOf(l, y); k != otherRow {
			if k == agents.ToolRow {
				return y, true
			}
			break
		}
	}
	return blockTop(l, at), false
}

// textRows returns the text of rows a to b (exclusive), without frames, rules and blank rows.
func textRows(l *Look, a, b int) []string {
	var text []string
	for y := a; y < b; y++ {
		s, _ := unframe(l.line(y))
		if s != "" && strings.Trim(s, "─╌╭╮╰╯━═▔ ") != "" {
			text = append(text, s)
		}
	}
	return text
}

// joinRows returns the text of rows a to b (exclusive) as lines. It does not undo wrapping, which looks the same as a
// line that ends at the edge of the screen.
func joinRows(l *Look, a, b int, keep func(r row, i int) bool) string {
	var lines []string
	for y := a; y < b; y++ {
		line, _ := unframe(l.row(y).exactText(keep)) // with no-break spaces, which are letters to a shell
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n ")
}

// kindOfDialog looks at the first rows, the question above the options and the rows below them, but not at the rows
// between: those show what the agent wants to do, and may contain any text.
func (d *Driver) kindOfDialog(l *Look, text []string, foot string) string {
	candidates := []string{strings.Join(text[:min(3, len(text))], " ")}
	for n := 1; n <= 3 && n <= len(text); n++ {
		candidates = append(candidates, strings.Join(text[len(text)-n:], " "))
	}
	for _, k := range d.screen.Dialog.Kinds {
		if slices.ContainsFunc(candidates, func(s string) bool { return strings.HasPrefix(s, k.Text) }) || strings.Contains(foot, k.Text) {
			l.note("dialog.kinds", k.Means, k.Line, noRow, k.Text)
			return k.Means
		}
	}
	return agents.Unknown
}

// fingerprint identifies a dialog. It ignores blanks and frames, which a resize moves.
func (d *Driver) fingerprint(q *Dialog) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %q", d.Name, q.Kind, RemoveBlanks(q.Prompt), q.Tool, RemoveBlanks(q.Input))
	for _, o := range q.Options {
		fmt.Fprintf(h, " %q", RemoveBlanks(o.Label))
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
