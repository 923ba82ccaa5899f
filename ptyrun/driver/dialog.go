package driver

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/wire"
)

type dialogStyle struct {
	digitsChoose bool     // an option's digit chooses it at once
	isFront      bool     // as frontDialog reads it
	kinds        []phrase // how the first row or the question begins, or what a row below the options has, and the kind it means
	headings     []phrase // how the row begins that tells what is asked, and the tool that it means
	verbs        []phrase // how a row begins that tells of a running tool, and the tool
}

// selectors stand before the option that Return would choose.
const selectors = "❯›●>▸▶→◉"

type optionList struct {
	rows     []int // of the options, in order
	labels   []string
	selected int
	column   int  // of the numbers
	isCut    bool // its first options are above the screen
}

// readDialog returns what l asks, nil for nothing. p is the input box, if there is one: a list above it is a
// quotation, one inside it is somebody's draft.
func (d *Driver) readDialog(l *Look, p inputBox, boxed bool) *Dialog {
	if d.box.shape == barred && !boxed {
		if q := d.buttonDialog(l); q != nil {
			return q
		}
	}
	f, ok := d.findOptions(l)
	if !ok || boxed && f.rows[0] <= p.bottom {
		return nil
	}
	if d.dialogs.isFront {
		return d.readFrontDialog(l, f)
	}
	first, whole := d.dialogTop(l, f)
	text := textRows(l, first, f.rows[0])
	q := &Dialog{Kind: "unknown", Prompt: clip(strings.Join(text, "\n"))}
	if !f.isCut {
		q.Kind = d.kindOfDialog(l, text, f)
	}
	if q.Kind == "permission" && whole {
		q.Tool, q.Input = d.requested(l, first, f)
	}
	for i, label := range f.labels {
		o := newOption(strconv.Itoa(i+1), label)
		switch {
		case f.isCut:
			o.Keys = "" // what it would choose cannot be seen
		case d.dialogs.digitsChoose && i < 9:
			o.Keys = o.ID
		case o.Keys == "":
			o.Keys = arrowKeys(l, "B", "A", i-f.selected)
		}
		q.Options = append(q.Options, o)
	}
	q.Cancel = cancelKey(textRows(l, f.rows[len(f.rows)-1]+1, len(l.Lines)))
	q.Print = d.fingerprint(q)
	return q
}

// cancelKey returns the key that ends a dialog without an answer, as the rows below its options say, which
// may be broken anywhere.
func cancelKey(foot []string) string {
	if cancelHint.MatchString(Solid(strings.Join(foot, ""))) {
		return escape
	}
	return ""
}

var cancelHint = regexp.MustCompile(`(?i)esc(tocancel|tointerrupt|dismiss)`)

// findOptions finds the lowest numbered list of at least two (the front's may be of one), one of which has a selector
// before it, and below which nothing of the transcript stands.
func (d *Driver) findOptions(l *Look) (optionList, bool) {
	f := optionList{selected: -1}
	want, between, below := 0, 0, 0
	done := false
	for y := len(l.Lines) - 1; y >= 0 && !done; y-- {
		line := l.line(y)
		n, label, column, selected := parseOption(line)
		switch {
		case n > 0 && (want == 0 || n == want && column == f.column):
			if selected && f.selected >= 0 {
				return optionList{}, false
			} else if selected {
				f.selected = len(f.rows)
			}
			if isWrapped(l, y, y+1) {
				more, _ := unframe(l.line(y + 1))
				label += " " + more
			}
			f.column, want, between = column, n-1, 0
			f.rows, f.labels = append(f.rows, y), append(f.labels, label)
			done = want == 0
		case blank(line) || isRule(line, "─"):
		case want == 0:
			if below++; below > 8 || d.kindOf(line) != otherRow {
				return optionList{}, false
			}
		default:
			text, at := unframe(line)
			if between++; between > 8 || text != "" && at <= f.column {
				return optionList{}, false
			}
		}
	}
	f.isCut = !done
	if f.selected < 0 || len(f.rows) < 2 && !d.dialogs.isFront {
		return optionList{}, false
	}
	slices.Reverse(f.rows)
	slices.Reverse(f.labels)
	f.selected = len(f.rows) - 1 - f.selected
	return f, true
}

var numberedRow = regexp.MustCompile(`^(?:([` + selectors + `]) *)?([1-9][0-9]?)[.)] +(.+)$`)

// parseOption reads "❯ 2. Label": number 0 for anything else.
func parseOption(line string) (n int, label string, column int, selected bool) {
	text, column := unframe(line)
	m := numberedRow.FindStringSubmatchIndex(text)
	if m == nil {
		return 0, "", 0, false
	}
	label = strings.Trim(text[m[6]:], " ✔✓") // a mark at the one that was chosen
	if label == "" {
		return 0, "", 0, false
	}
	n, _ = strconv.Atoi(text[m[4]:m[5]])
	return n, label, column + utf8.RuneCountInString(text[:m[4]]), m[2] >= 0
}

// unframe is what stands in a row between its frames, if it has any, and the column at which that begins.
func unframe(line string) (text string, column int) {
	text = strings.TrimLeft(line, " │┃")
	column = utf8.RuneCountInString(line) - utf8.RuneCountInString(text)
	return strings.TrimRight(text, " │"), column
}

// isWrapped reports whether row y was broken because the first word of row next did not fit any more.
func isWrapped(l *Look, y, next int) bool {
	n, _, _, _ := parseOption(l.line(next))
	more, column := unframe(l.line(next))
	_, from := unframe(l.line(y))
	if l.Cols == 0 || n > 0 || more == "" || column < from {
		return false
	}
	word, _, _ := strings.Cut(more, " ")
	return ansi.StringWidth(strings.TrimRight(l.line(y), " │"))+1+ansi.StringWidth(word) > l.Cols-4
}

// arrowKeys are the keys that go n options on, or back, and choose.
func arrowKeys(l *Look, on, back string, n int) string {
	intro, key := "\x1b[", on
	if l.Modes.AppCursor {
		intro = "\x1bO"
	}
	if n < 0 {
		n, key = -n, back
	}
	return strings.Repeat(intro+key, n) + Submit
}

// dialogTop is the first row of the dialog whose list is f, and whether the dialog is on the screen from its beginning.
func (d *Driver) dialogTop(l *Look, f optionList) (first int, whole bool) {
	at := f.rows[0]
	column, framed := columnOf(l.line(at), "│")
	switch {
	case f.isCut:
		return 0, false
	case d.box.shape == ruled:
		y := l.ruleAbove(at, "─")
		return y + 1, y >= 0
	case d.box.shape == halves && framed && blank(firstRunes(l.line(at), column)):
		y := at - 1
		for runeAt(l.line(y), column) == "│" {
			y--
		}
		return y + 1, runeAt(l.line(y), column) == "╭"
	case d.box.shape == unframed:
		y := at - 1
		for y >= 0 && (blank(l.line(y)) || margin(l.line(y)) > 0) {
			y--
		}
		if y < 0 {
			return 0, blank(l.line(0))
		}
		// Of a message the rows are indented from the second on.
		message := d.kindOf(l.line(y)) == userRow
		for y++; message && y < at && !blank(l.line(y)); y++ {
		}
		return y, true
	}
	y := at
	for y > 0 && y > at-12 {
		line := l.line(y - 1)
		if isRule(line, "─") || strings.ContainsAny(line, "╭╮╰╯╹") || d.kindOf(line) != otherRow {
			break
		}
		y--
	}
	return y, false
}

// textRows are the rows from a to b (without b), without frames, rules and what is blank.
func textRows(l *Look, a, b int) []string {
	var text []string
	for y := a; y < b; y++ {
		s, _ := unframe(l.line(y))
		if s != "" && strings.Trim(s, "─╌╭╮╰╯━═ ") != "" {
			text = append(text, s)
		}
	}
	return text
}

// kindOfDialog judges by the first row, the question above the options and the rows below them. What stands
// between is what the agent wants to do: it can say anything.
func (d *Driver) kindOfDialog(l *Look, text []string, f optionList) string {
	judged := []string{strings.Join(text[:min(3, len(text))], " ")}
	for n := 1; n <= 3 && n <= len(text); n++ {
		judged = append(judged, strings.Join(text[len(text)-n:], " "))
	}
	foot := strings.Join(textRows(l, f.rows[len(f.rows)-1]+1, len(l.Lines)), " ")
	for _, k := range d.dialogs.kinds {
		if slices.ContainsFunc(judged, func(s string) bool { return strings.HasPrefix(s, k.text) }) || strings.Contains(foot, k.text) {
			return k.means
		}
	}
	return "unknown"
}

var namedKey = regexp.MustCompile(`^(.+) \((esc|[a-z])\)$`)

// newOption is an option as its label tells. Keys are set where the label names one: "(y)", "(esc)".
func newOption(id, label string) Option {
	o := Option{ID: id, Label: label}
	if m := namedKey.FindStringSubmatch(label); m != nil {
		if o.Label, o.Keys = m[1], m[2]; o.Keys == "esc" {
			o.Keys = escape
		}
	}
	o.Kind = wire.OptionKind(id, o.Label)
	return o
}

// spinnerRow is a row that a spinner begins.
var spinnerRow = pattern(`^[` + claudeSpins + spins + `] `)

// fingerprint is the dialog's fingerprint. It leaves out blanks and frames, which a resize moves, and rows that spin.
func (d *Driver) fingerprint(q *Dialog) string {
	var prompt strings.Builder // in one piece: its rows may be broken elsewhere
	for row := range strings.SplitSeq(q.Prompt, "\n") {
		if !spinnerRow.MatchString(row) {
			prompt.WriteString(Solid(row))
		}
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %q", d.Name, q.Kind, prompt.String(), q.Tool, Solid(q.Input))
	for _, o := range q.Options {
		fmt.Fprintf(h, " %q", Solid(o.Label))
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// clip keeps a text readable: a dialog is one screen at most, but a screen may be large.
func clip(s string) string {
	if most := 8 << 10; len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
