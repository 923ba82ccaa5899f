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
	selected int  // index of the option that Return chooses; -1: none or unknown
	isCut    bool // the first options are not on the screen
	hasPane  bool // there is a pane beside the options
}

// findOptions finds the lowest numbered list, which must have one selected option (a question may have none), at least
// two options (one if it names the key to cancel, or for the front) and no row of the transcript below it.
func (d *Driver) findOptions(l *Look) (f layout, ok bool) {
	foot := l.solidFoot()
	isQuestion := strings.Contains(foot, "Entertoselect")
	isForeign := func(line string) bool { return d.kindOf(line) != otherRow }
	f, ok = l.numberedIn(0, len(l.Lines), isQuestion, isForeign)
	mayBeOne := d.dialogs.isFront || strings.Contains(foot, "Esctocancel") // the others are below a small screen
	hasChoice, isEnough := f.selected >= 0 || isQuestion, len(f.options) > 1 || mayBeOne
	if !ok || !hasChoice || !isEnough {
		return f, false
	}
	for i := range f.options {
		o := &f.options[i]
		switch {
		case f.isCut, f.hasPane, f.selected < 0, o.isBox():
			o.Keys = "" // its position is unknown, or its key only marks it
		case d.dialogs.digitsChoose && i < 9:
			o.Keys = o.ID
		case o.Keys == "":
			o.Keys = arrowKeys(l, "B", "A", i-f.selected)
		}
	}
	if !f.isCut {
		f.first, f.isWhole = d.dialogTop(l, f.top)
	}
	return f, true
}

// isBox reports whether the option is one of several that may be ticked together.
func (o *Option) isBox() bool { return hasAny(o.Label, []string{"[ ]", "[✔]", "[✓]", "[x]"}) }

// pane matches what a question shows beside its options.
var pane = regexp.MustCompile(` {2,}[│┌├└] *[^ ].*$`)

// numberedIn reads the lowest numbered list in rows first to end (exclusive). At most one option may be selected.
func (l *Look) numberedIn(first, end int, isQuestion bool, isForeign func(line string) bool) (layout, bool) {
	r := listReader{Look: l, isQuestion: isQuestion, isForeign: isForeign, list: layout{selected: -1}}
	for y := end - 1; y >= first && r.lowest != 1; y-- {
		if !r.read(y) {
			return r.list, false
		}
	}
	r.list.isCut = r.lowest > 1
	return r.list, r.lowest > 0
}

// A listReader reads a numbered list from its last row up.
type listReader struct {
	*Look
	isQuestion bool
	isForeign  func(line string) bool

	list           layout
	lowest, column int // the lowest number yet, and its column
	others         int // the other rows since then
}

// read reads the row above those that were read, and reports whether it may belong to the list.
func (r *listReader) read(y int) bool {
	line := pane.ReplaceAllString(r.line(y), "")
	hasPane := line != r.line(y)
	r.list.hasPane = r.list.hasPane || hasPane
	o := parseOption(line)
	isNext := r.lowest == 0 || o.number == r.lowest-1 && o.column == r.column
	if o.number == 0 || !isNext {
		return r.passOther(line, o.number == 0)
	}
	if o.isSelected && r.list.selected >= 0 {
		return false
	}
	if o.isSelected {
		r.list.selected = 0
	} else if r.list.selected >= 0 {
		r.list.selected++
	}
	if !hasPane && r.list.top != y+1 && isWrapped(r.Look, y, y+1) {
		more, _ := unframe(r.line(y + 1))
		o.label += " " + more
	}
	if r.lowest == 0 {
		r.list.end = y + 1
	}
	r.list.top, r.list.options = y, slices.Insert(r.list.options, 0, newOption(strconv.Itoa(o.number), o.label))
	r.lowest, r.column, r.others = o.number, o.column, 0
	return true
}

// passOther reports whether the list may go on above a row that is no option of it. Below the list may be eight rows that
// are not foreign, between two options eight that do not start left of the numbers.
func (r *listReader) passOther(line string, isText bool) bool {
	if rest, ok := strings.CutPrefix(line, "❯"); ok && isText && r.isQuestion {
		line = " " + rest // what is selected is no option: "❯ Chat about this"
	}
	text, at := unframe(line)
	if text == "" || isRule(line, "─") {
		return true
	}
	r.others++
	isOutside := at < r.column
	if isBelow := r.lowest == 0; isBelow {
		isOutside = r.isForeign(line)
	}
	return r.others <= 8 && !isOutside
}

// selectors are the marks before the option that Return chooses.
const selectors = "❯›●>▸▶→◉"

// numberedRow matches an option; on a narrow screen without the blank before its label. An arrow shows that there are
// more options.
var numberedRow = regexp.MustCompile(`^(?:([` + selectors + `]) *|[↑↓] +)?([1-9][0-9]?)[.)]( +.+|\p{Lu}.*)$`)

// An optionRow is a row like "❯ 2. Label".
type optionRow struct {
	number, column int // number 0: it is another row
	label          string
	isSelected     bool
}

func parseOption(line string) (o optionRow) {
	text, column := unframe(line)
	m := numberedRow.FindStringSubmatchIndex(text)
	if m == nil {
		return o
	}
	o.number, _ = strconv.Atoi(text[m[4]:m[5]])
	o.column = column + utf8.RuneCountInString(text[:m[4]])
	o.label = strings.Trim(text[m[6]:], " ✔✓") // without the mark of the current choice
	o.isSelected = m[2] >= 0
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
