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
	"github.com/agentteammail/atm/reducer/ask"
)

// readDialog returns the question that a program draws in place of its input box, or nil. Its Kind is open, its Dialog is
// permission, trust, question or unknown, and its Prompt all that is above the options: nothing on a screen is taken for a
// tool or a command that a rule could decide about.
// box is the input box, or nil: a list inside it is a draft, and a
// list above it is a quotation. shows is what the title says.
func (d *Driver) readDialog(l *Look, box *inputBox, shows reducer.Activity) *ask.Question {
	f, ok := d.findLayout(l, box)
	if !ok && box == nil && shows != reducer.Thinking { // else the turn behind a menu goes on
		f, ok = d.findText(l)
	}
	if !ok || box != nil && f.top <= box.bottom && !d.endsOpenBox(f, box) {
		return nil
	}
	text, foot := textRows(l, f.first, f.top), strings.Join(textRows(l, f.end, len(l.Lines)), " ")
	q := &ask.Question{Dialog: d.kindOfDialog(l, text, foot), Prompt: strings.Join(text, "\n"), Options: f.options}
	for i := range q.Options {
		o := &q.Options[i]
		for _, a := range d.screen.Dialog.Answers {
			if a.Pattern.MatchString(o.Label) {
				l.note("dialog.answers", a.Means, a.Line, noRow, o.Label)
				o.Kind = a.Means
				break
			}
		}
	}
	switch q.Dialog {
	case "permission":
		q.Cut = !f.isWhole || hiddenRows.MatchString(foot)
	case "unknown":
		for i := range q.Options {
			if o := &q.Options[i]; !o.Denies() {
				o.Kind = ""
			}
		}
	}
	if i := slices.IndexFunc(q.Options, func(o ask.Option) bool { return o.Keys == escape }); i >= 0 {
		q.Cancel = q.Options[i]
	} else if cancelHint.MatchString(RemoveBlanks(foot)) {
		q.Cancel = ask.Option{ID: "cancel", Label: "Esc", Keys: escape, Kind: "reject_once"}
	}
	q.Fingerprint = d.fingerprint(q)
	return q
}

// endsOpenBox reports whether a dialog is in the row of a box without edges, whose pattern a question fits as well: all of
// the dialog is there, and above that row is what it asks.
func (d *Driver) endsOpenBox(f layout, box *inputBox) bool {
	return d.screen.Dialog.Option != nil && d.screen.Box.Bottom == nil && f.isWhole && f.first < box.first && f.top >= box.first
}

// findLayout finds a dialog with options.
func (d *Driver) findLayout(l *Look, box *inputBox) (f layout, ok bool) {
	isOpen := box != nil && d.screen.Box.Bottom == nil
	if (box == nil || isOpen) && d.screen.Dialog.Option != nil && !d.isFree(l) {
		if f, ok = d.findMarked(l); ok && d.kindOfDialog(l, textRows(l, f.first, f.top), "") == agents.Unknown {
			if isOpen {
				return f, false
			}
			return d.findText(l) // a menu with as many rows as fit, or something else to pick from
		}
		if ok {
			return f, true
		}
	}
	return d.findNumbered(l)
}

// hiddenRows matches what the program says below a dialog that does not fit on its screen.
var hiddenRows = regexp.MustCompile(`^[↑↓] \d+ more lines?`)

// cancelHint matches the text below the options if it names the key that ends the dialog without an answer.
var cancelHint = regexp.MustCompile(`(?i)esc(?:ape)?(?:tocancel|tointerrupt|dismiss|/ctrl\+ccancel)`)

// dialogTop returns the first row of the dialog with options in row at, and whether the dialog starts on the screen.
func (d *Driver) dialogTop(l *Look, at int) (first int, isWhole bool) {
	switch s := &d.screen.Dialog; {
	case s.Row.Matches(l.line(at)):
		return d.blockAbove(l, at)
	case s.Heading != nil && (s.Top == nil || s.Row != nil):
		for y := at - 1; y >= 0; y-- {
			if s.Heading.Matches(l.line(y)) {
				l.note("dialog.heading", "", 0, y, "")
				return y, true
			}
			if d.kindOf(l, y) != otherRow {
				break
			}
		}
	case s.Heading != nil: // rows between the first and the options may have any text, also that of a heading
		edge := l.lastMatch(s.Top, at, "dialog.top")
		for y := edge + 1; y < at; y++ {
			if s.Heading.Matches(l.line(y)) {
				l.note("dialog.heading", "", 0, y, "")
				return y, true
			}
		}
		return max(edge+1, d.transcriptEnd(l, at)), false
	case s.Top != nil && s.Row == nil:
		edge := l.lastMatch(s.Top, at, "dialog.top")
		return edge + 1, edge >= 0
	}
	for first = at; first > 0 && (first == at || !blank(l.line(first-1))); first-- {
	}
	return first, false
}

// blockAbove returns the first of the rows of a dialog around row at, and whether its edge is on the screen.
func (d *Driver) blockAbove(l *Look, at int) (first int, isWhole bool) {
	s := &d.screen.Dialog
	for at > 0 && s.Row.Matches(l.line(at-1)) {
		at--
	}
	return at, at > 0 && (s.Top == nil || s.Top.Matches(l.line(at-1)))
}

// maxOthers is how many filled rows may be below the rows of a dialog.
const maxOthers = 3

// lowestDialog returns the rows in which the lowest dialog would be, by its edges and its rows, and whether it starts there.
func (d *Driver) lowestDialog(l *Look) (first, end int, isWhole bool) {
	s := &d.screen.Dialog
	end = len(l.Lines)
	if s.Bottom != nil {
		end = max(0, l.lastMatch(s.Bottom, end, "dialog.bottom"))
	}
	for end > 0 && blank(l.line(end-1)) {
		end--
	}
	switch {
	case s.Row != nil:
		for others := 0; end > 0 && (!s.Row.Matches(l.line(end-1)) || len(textRows(l, end-1, end)) == 0); end-- {
			if !blank(l.line(end-1)) && !s.Row.Matches(l.line(end-1)) {
				if others++; others > maxOthers {
					return 0, 0, false
				}
			}
		}
		first, isWhole = d.blockAbove(l, end)
	case s.Top != nil && s.Heading == nil:
		if first = l.lastMatch(s.Top, end, "dialog.top") + 1; first == 0 {
			return 0, 0, false
		}
		isWhole = true
	default:
		first = d.transcriptEnd(l, end)
	}
	return first, end, isWhole
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
func (d *Driver) fingerprint(q *ask.Question) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q", d.Name, q.Dialog, RemoveBlanks(q.Prompt))
	for _, o := range q.Options {
		fmt.Fprintf(h, " %q", RemoveBlanks(o.Label))
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
