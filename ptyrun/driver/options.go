package driver

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/wire/foreign"
)

// An Option is one answer to a dialog. As JSON it has the fields of ACP.
type Option struct {
	ID    string `json:"id"`             // its number, or for a button "allow-once" and the like
	Kind  string `json:"kind,omitempty"` // as in foreign.OptionKind; "" if unknown
	Label string `json:"label"`
	Keys  string `json:"-"` // the bytes that choose it on this screen; "" if unknown
}

// Denies reports whether the option is known to deny the request.
func (o Option) Denies() bool { return strings.HasPrefix(o.Kind, "reject") }

// AllowsOnce reports whether the option is known to allow this one call only.
func (o Option) AllowsOnce() bool { return o.Kind == "allow_once" }

var namedKey = regexp.MustCompile(`^(.+) \(((?i:esc)|tab|shift\+tab|[a-z])(?: to stop)?\)$`)

// keyNames are the keys that have a longer name.
var keyNames = map[string]string{"esc": escape, "tab": "\t", "shift+tab": "\x1b[Z"}

// newOption makes an option of a label. It sets Keys if the label names a key: "(y)", "(esc)", "(tab)", "(Esc to stop)".
func newOption(id, label string) Option {
	o := Option{ID: id, Label: label}
	if m := namedKey.FindStringSubmatch(label); m != nil {
		o.Label, o.Keys = m[1], cmp.Or(keyNames[strings.ToLower(m[2])], m[2])
	}
	o.Kind = foreign.OptionKind(id, o.Label)
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
// two options and no row of the transcript below it.
func (d *Driver) findOptions(l *Look) (f layout, ok bool) {
	isQuestion := d.isFree(l)
	isForeign := func(y int) bool {
		isExplanation := margin(l.line(y)) > 0 && l.isMutedRow(y)
		return d.kindOf(l, y) != otherRow && !isExplanation
	}
	f, ok = l.numberedIn(0, len(l.Lines), isQuestion, isForeign)
	isTyped := l.matches(d.screen.Dialog.NumbersHint, "dialog.numbers_hint", strings.Join(l.Lines[max(0, f.end):], " "))
	if !ok || f.selected < 0 && !isQuestion && !isTyped || len(f.options) < 2 {
		return f, false
	}
	for i := range f.options {
		o := &f.options[i]
		if f.options[0].ID != "1" {
			o.Kind = "" // the first ones are above the screen
		}
		switch {
		case isTyped && len(o.ID) == 1:
			o.Keys = o.ID + enter
		case f.selected < 0, o.isBox():
			o.Keys = "" // its position is unknown, or its key only marks it
		case d.screen.Dialog.Digits && len(o.ID) == 1:
			o.Keys = o.ID
		case o.Keys == "":
			o.Keys = arrowKeys(l, "B", "A", i-f.selected)
		}
	}
	f.first, f.isWhole = d.dialogTop(l, f.top)
	return f, true
}

// isFree reports whether a dialog says that what is selected in it may be none of its options.
func (d *Driver) isFree(l *Look) bool {
	hint := RemoveBlanks(d.screen.Dialog.FreeHint)
	return hint != "" && strings.Contains(l.solidFoot(), hint)
}

// findUnnumbered finds options without numbers below a border: rows in one column, of which one is selected. If what is
// selected lowest has a number, it is no such list.
func (d *Driver) findUnnumbered(l *Look) (f layout, ok bool) {
	end, line := d.dialogEnd(l), l.line
	if f.first, f.isWhole = l.borderAbove(end)+1, true; d.screen.Dialog.Shape == agents.Framed {
		for end--; end > 0 && !strings.HasPrefix(l.line(end), "╰"); end-- {
		}
		f.first, f.isWhole = d.dialogTop(l, end-1)
		line = l.framedLine
	}
	mark := d.screen.Dialog.Selected + " "
	at, column := -1, 0
	for y := end - 1; y >= f.first && (f.first > 0 || !f.isWhole) && at < 0; y-- {
		left := margin(line(y))
		if label, ok := strings.CutPrefix(line(y)[left:], mark); ok && label != "" && label[0] != ' ' {
			at, column = y, left+utf8.RuneCountInString(mark)
		}
	}
	if d.isFree(l) || parseOption(line(at)).number > 0 {
		return f, false
	}
	isOption := func(y int) bool {
		return !blank(line(y)) && margin(strings.Replace(line(y), d.screen.Dialog.Selected, " ", 1)) == column
	}
	for f.top = at; f.top > f.first && isOption(f.top-1); f.top-- {
	}
	for f.end = at + 1; isOption(f.end); f.end++ {
	}
	if at < 0 || f.end-f.top < 2 {
		return f, false
	}
	f.selected = at - f.top
	isWrapped := false
	for y := f.top; y < f.end; y++ {
		isWrapped = isWrapped || ansi.StringWidth(line(y)) > l.Cols*3/4
	}
	for y := f.top; y < f.end; y++ {
		o := newOption(strconv.Itoa(y-f.top+1), skipRunes(line(y), column))
		if o.Keys == "" {
			o.Keys = arrowKeys(l, "B", "A", y-at)
		}
		if isWrapped { // a row may be the rest of the one above it
			o.Keys = ""
		}
		f.options = append(f.options, o)
	}
	return f, true
}

// keyedOption matches one of several options in a row, behind its key.
var keyedOption = regexp.MustCompile(`\[([a-z])\] (\S+(?: \S+)*)`)

// findKeyed finds the lowest row of options behind their keys.
func (d *Driver) findKeyed(l *Look) (f layout, ok bool) {
	for y := len(l.Lines) - 1; y > 0 && !ok; y-- {
		options := keyedOption.FindAllStringSubmatch(l.line(y), -1)
		if rest := keyedOption.ReplaceAllString(l.line(y), ""); len(options) < 2 || !blank(rest) {
			continue
		}
		for _, m := range options {
			o := newOption(m[1], m[2])
			o.Keys = m[1]
			f.options = append(f.options, o)
		}
		f.top, f.end, f.selected, ok = y, y+1, -1, true
		f.first, f.isWhole = d.dialogTop(l, y)
	}
	return f, ok && d.kindOfDialog(l, textRows(l, f.first, f.top), "") != agents.Unknown
}

// framedLine is a row without the frame, of which the left side is a blank.
func (l *Look) framedLine(y int) string {
	inner, isFramed := strings.CutPrefix(l.line(y), "│")
	if !isFramed {
		return ""
	}
	return " " + strings.TrimRight(inner, " │")
}

// findText finds a dialog without options that can be read: what is drawn in place of the box, below a border or in a
// frame, and is neither a box that is half drawn nor a view that is only looked at.
func (d *Driver) findText(l *Look) (f layout, ok bool) {
	end := d.dialogEnd(l)
	for end > 0 && blank(l.line(end-1)) {
		end--
	}
	f.top, f.end = end, end
	switch d.screen.Dialog.Shape {
	case agents.Ruled:
		f.first = l.borderAbove(end) + 1
		box, _ := d.firstRow(l, f.first)
		ok = f.first > 0 && box == nil
	case agents.Between:
		f.first = l.borderAbove(end) + 1
		ok = f.first > 0
	case agents.Lowest:
		f.first = d.transcriptEnd(l, end)
		ok = hasAny(strings.Join(textRows(l, max(0, end-3), end), " "), d.screen.Dialog.Hints)
	case agents.Framed:
		ok = strings.HasPrefix(l.line(end-1), "╰")
		for f.first = end - 1; f.first > 0 && strings.HasPrefix(l.line(f.first-1), "│"); f.first-- {
		}
	}
	text := textRows(l, f.first, end)
	isView := false
	for y := f.first; y < end; y++ {
		isView = isView || l.hasAny(y, d.screen.Dialog.Views, "dialog.views") || l.hasAny(y, d.screen.Box.NeverBelow, "box.never_below")
	}
	return f, ok && len(text) > 0 && !isView
}

// dialogEnd returns the row behind the last one of a dialog: its lower rule, if it has one, or the end of the screen.
func (d *Driver) dialogEnd(l *Look) int {
	if d.screen.Dialog.Shape == agents.Between {
		return max(0, l.ruleAbove(len(l.Lines), "─"))
	}
	return len(l.Lines)
}

// isBox reports whether the option is one of several that may be ticked together.
func (o *Option) isBox() bool { return hasAny(o.Label, []string{"[ ]", "[✔]", "[✓]", "[x]"}) }

// numberedIn reads the lowest numbered list in rows first to end (exclusive), from its last row up. At most one option
// may be selected. Below the list may be eight rows that are not foreign, between two options eight that do not start
// left of the numbers.
func (l *Look) numberedIn(first, end int, isQuestion bool, isForeign func(y int) bool) (f layout, ok bool) {
	f.selected = -1
	lowest, column, others := 0, 0, 0 // the lowest number yet, its column, and the other rows since then
	for y := end - 1; y >= first && lowest != 1; y-- {
		line := l.line(y)
		o := parseOption(line)
		if o.number == 0 || lowest > 0 && (o.number != lowest-1 || o.column != column) {
			isChat := isQuestion && strings.Contains(line, "❯") // what is selected may be no option: "❯ Chat about this"
			if isChat {
				line = strings.Replace(line, "❯", " ", 1)
			}
			text, at := unframe(line)
			if text == "" || isRule(strings.TrimSpace(line), "─") {
				continue
			}
			if others++; others > 8 || lowest == 0 && !isChat && isForeign(y) || at < column {
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
		option := newOption(strconv.Itoa(o.number), o.label)
		isCut := strings.HasSuffix(o.label, "…") || parseOption(l.line(y+1)).number == 0 && isWrapped(l, y, y+1)
		if option.AllowsOnce() && isCut {
			option.Kind = "" // the rest may be "for this session"
		}
		f.top, f.options = y, slices.Insert(f.options, 0, option)
		lowest, column, others = o.number, o.column, 0
	}
	return f, lowest > 0
}

// numberedRow matches an option, after the mark of the one that Return chooses, or one that says that there are more.
// Claude Code leaves out the blank before a label that does not fit.
var numberedRow = regexp.MustCompile(`^(?:([❯›●>▸▶→◉] *|\(checked\) )|[↑↓] )?([1-9][0-9]?)[.)]( +.+|\p{Lu}.+)$`)

// spokenMark is how Gemini CLI says that an option is selected.
const spokenMark = "(checked) "

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
	o.column = column
	if m[1] != spokenMark { // else the others have none in its place
		o.column += utf8.RuneCountInString(text[:strings.Index(text, m[2])])
	}
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
	return strings.Repeat(intro+key, n) + enter
}
