package driver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/wire"
)

// An Option is one answer to a dialog. As JSON it has the fields of ACP.
type Option struct {
	ID    string `json:"id"`             // its number, or for a button "allow-once" and the like
	Kind  string `json:"kind,omitempty"` // as in wire.OptionKind; "" if unknown
	Label string `json:"label"`
	Keys  string `json:"-"` // the bytes that choose it on this screen; "" if unknown
}

// Denies reports whether the option is known to deny the request.
func (o Option) Denies() bool { return strings.HasPrefix(o.Kind, "reject") }

// AllowsOnce reports whether the option is known to allow this one call only.
func (o Option) AllowsOnce() bool { return o.Kind == "allow_once" }

var namedKey = regexp.MustCompile(`^(.+) \((esc|[a-z])\)$`)

// newOption makes an option of a label. It sets Keys if the label names a key: "(y)", "(esc)".
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

// A layout says where a dialog is on the screen.
type layout struct {
	first    int  // row of the dialog
	isWhole  bool // the dialog starts on the screen
	top, end int  // the first row of the options, and the first row of the text below them
	options  []Option
	selected int // index of the option that Return chooses; -1: none or unknown
}

// findOptions finds the lowest numbered list, which must have one selected option (a question may have none), at least
// two options (for the front, one) and no row of the transcript below it.
func (d *Driver) findOptions(l *Look) (f layout, ok bool) {
	isQuestion := strings.Contains(l.solidFoot(), "Entertoselect")
	isForeign := func(line string) bool { return d.kindOf(line) != otherRow }
	f, ok = l.numberedIn(0, len(l.Lines), isQuestion, isForeign)
	if !ok || f.selected < 0 && !isQuestion || len(f.options) < 2 && !d.dialogs.isFront {
		return f, false
	}
	for i := range f.options {
		o := &f.options[i]
		switch {
		case f.selected < 0, o.isBox():
			o.Keys = "" // its position is unknown, or its key only marks it
		case d.dialogs.digitsChoose && len(o.ID) == 1:
			o.Keys = o.ID
		case o.Keys == "":
			o.Keys = arrowKeys(l, "B", "A", i-f.selected)
		}
	}
	f.first, f.isWhole = d.dialogTop(l, f.top)
	return f, true
}

// isBox reports whether the option is one of several that may be ticked together.
func (o *Option) isBox() bool { return hasAny(o.Label, []string{"[ ]", "[✔]", "[✓]", "[x]"}) }

// numberedIn reads the lowest numbered list in rows first to end (exclusive), from its last row up. At most one option
// may be selected. Below the list may be eight rows that are not foreign, between two options eight that do not start
// left of the numbers.
func (l *Look) numberedIn(first, end int, isQuestion bool, isForeign func(line string) bool) (f layout, ok bool) {
	f.selected = -1
	lowest, column, others := 0, 0, 0 // the lowest number yet, its column, and the other rows since then
	for y := end - 1; y >= first && lowest != 1; y-- {
		line := l.line(y)
		o := parseOption(line)
		if o.number == 0 || lowest > 0 && (o.number != lowest-1 || o.column != column) {
			if isQuestion { // what is selected may be no option: "❯ Chat about this"
				line = strings.Replace(line, "❯", " ", 1)
			}
			text, at := unframe(line)
			if text == "" || isRule(line, "─") {
				continue
			}
			if others++; others > 8 || lowest == 0 && isForeign(line) || at < column {
				return f, false
			}
			continue
		}
		if o.isSelected && f.selected >= 0 {
			return f, false
		}
		if o.isSelected || f.selected >= 0 {
			f.selected++
		}
		if lowest == 0 {
			f.end = y + 1
		}
		f.top, f.options = y, slices.Insert(f.options, 0, newOption(strconv.Itoa(o.number), o.label))
		lowest, column, others = o.number, o.column, 0
	}
	return f, lowest > 0
}

// numberedRow matches an option, after the mark of the one that Return chooses.
var numberedRow = regexp.MustCompile(`^([❯›●>▸▶→◉] *)?([1-9][0-9]?)[.)] +(.+)$`)

// An optionRow is a row like "❯ 2. Label".
type optionRow struct {
	number, column int // number 0: it is another row
	label          string
	isSelected     bool
}

func parseOption(line string) (o optionRow) {
	text, column := unframe(line)
	m := numberedRow.FindStringSubmatch(text)
	if m == nil {
		return o
	}
	o.number, _ = strconv.Atoi(m[2])
	o.column = column + utf8.RuneCountInString(m[1])
	o.label = strings.Trim(m[3], " ✔✓") // without the mark of the current choice
	o.isSelected = m[1] != ""
	return o
}

// unframe returns the text of a row without a frame, and its column.
func unframe(line string) (text string, column int) {
	text = strings.TrimLeft(line, " │┃")
	column = utf8.RuneCountInString(line) - utf8.RuneCountInString(text)
	return strings.TrimRight(text, " │"), column
}

// isWrapped reports whether row next continues row y, because its first word did not fit there.
func isWrapped(l *Look, y, next int) bool {
	more, column := unframe(l.line(next))
	_, from := unframe(l.line(y))
	if strings.Trim(more, "╭─╮") == "" || column < from {
		return false
	}
	word, _, _ := strings.Cut(more, " ")
	return ansi.StringWidth(strings.TrimRight(l.line(y), " │"))+1+ansi.StringWidth(word) > l.Cols-4
}

// arrowKeys returns the keys that move n options on, or back, and choose.
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
