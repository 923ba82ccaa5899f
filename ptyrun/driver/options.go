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
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire/foreign"
)

var namedKey = regexp.MustCompile(`^(.+) \(((?i:esc)|tab|shift\+tab|[a-z])(?: to stop)?\)$`)

// keyNames are the keys that have a longer name.
var keyNames = map[string]string{"esc": escape, "tab": "\t", "shift+tab": "\x1b[Z"}

// newOption makes an option of a label. It sets Keys if the label names a key: "(y)", "(esc)", "(tab)", "(Esc to stop)".
func newOption(id, label string) ask.Option {
	o := ask.Option{ID: id, Label: label}
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
	options  []ask.Option
	selected int // index of the option that Return chooses; -1: none or unknown
}

// findNumbered finds the lowest numbered list, which must have one selected option (a question may have none), at least
// two options and no row of the transcript below it.
func (d *Driver) findNumbered(l *Look) (f layout, ok bool) {
	isQuestion := d.isFree(l)
	isForeign := func(y int) bool {
		isExplanation := margin(l.line(y)) > 0 && l.isMutedRow(y)
		return d.kindOf(l, y) != otherRow && !isExplanation && !d.screen.Dialog.Row.Matches(l.line(y))
	}
	f, ok = l.numberedIn(0, len(l.Lines), isQuestion, isForeign)
	key := d.keyBelow(l, f.end)
	if !ok || f.selected < 0 && !isQuestion && key == "" || len(f.options) < 2 {
		return f, false
	}
	for i := range f.options {
		o := &f.options[i]
		if f.options[0].ID != "1" {
			o.Kind = "" // the first ones are above the screen
		}
		switch isDigit := len(o.ID) == 1; {
		case key == agents.DigitKey && isDigit && !isBox(*o):
			o.Keys = o.ID
		case key == agents.DigitEnter && isDigit:
			o.Keys = o.ID + enter
		case f.selected < 0, isBox(*o):
			o.Keys = "" // its position is unknown, or its key only marks it
		case d.screen.Dialog.Digits && isDigit:
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

// keyBelow returns what chooses an option of a list although none is selected, as the rows from y on say; "": nothing.
func (d *Driver) keyBelow(l *Look, y int) string {
	foot := strings.Join(l.Lines[max(0, y):], " ")
	for _, c := range d.screen.Dialog.Choose {
		if c.Pattern.MatchString(foot) {
			l.note("dialog.choose", c.Means, c.Line, noRow, c.Pattern.FindString(foot))
			return c.Means
		}
	}
	return ""
}

// A markedOption is what the pattern of a file finds of an option.
type markedOption struct {
	ask.Option
	column, end int // where its label, or its key, is in its row
	isSelected  bool
	isTwice     bool // its key, or Enter, is pressed twice
}

// optionsIn returns the options that the pattern of the file finds in row y.
func (d *Driver) optionsIn(l *Look, y int) (options []markedOption) {
	pattern, line := d.screen.Dialog.Option, l.line(y)
	for _, m := range pattern.FindAllStringSubmatchIndex(line, -1) {
		group := func(name string) (text string, at int) {
			i := 2 * pattern.SubexpIndex(name)
			if i < 0 || m[i] < 0 {
				return "", -1
			}
			return line[m[i]:m[i+1]], m[i]
		}
		key, keyAt := group("key")
		label, at := group("label")
		if label == "" {
			label, at = key, keyAt
		}
		if at < 0 {
			continue
		}
		o := markedOption{Option: newOption(key, label), column: ansi.StringWidth(line[:at]), end: ansi.StringWidth(line[:at+len(label)])}
		_, selectedAt := group("selected")
		_, twiceAt := group("twice")
		o.isSelected, o.isTwice = selectedAt >= 0, twiceAt >= 0
		if key != "" {
			o.Keys = cmp.Or(keyNames[strings.ToLower(key)], key)
		}
		options = append(options, o)
	}
	return options
}

// findMarked finds the lowest options that the pattern of the file describes: each behind its key, or one of them selected,
// in one row or in one column.
func (d *Driver) findMarked(l *Look) (f layout, ok bool) {
	first, end, isWhole := d.lowestDialog(l)
	at := end - 1
	for ; at >= first; at-- {
		if found := d.optionsIn(l, at); len(found) > 1 || len(found) == 1 && (found[0].isSelected || found[0].ID != "") {
			break
		}
	}
	if at < first || parseOption(l.line(at)).number > 0 {
		return f, false
	}
	l.note("dialog.option", "", 0, at, "")
	options := d.optionsIn(l, at)
	isRow := len(options) > 1
	for f.top = at; f.top > first && !isRow; f.top-- {
		above := d.optionsIn(l, f.top-1)
		if len(above) != 1 || above[0].column != options[0].column {
			break
		}
		options = append(above, options...)
	}
	for f.end = at + 1; f.end < end && !isRow; f.end++ {
		below := d.optionsIn(l, f.end)
		if len(below) != 1 || below[0].column != options[0].column {
			break
		}
		options = append(options, below...)
	}
	f.options = l.withKeys(f.top, options, isRow)
	if f.first, f.isWhole = first, isWhole; !isWhole {
		f.first, f.isWhole = d.dialogTop(l, f.top)
	}
	return f, len(options) > 1
}

// withKeys returns options from row y on, which are in one row or in a column, with what chooses each.
func (l *Look) withKeys(y int, marked []markedOption, isRow bool) (options []ask.Option) {
	selected := slices.IndexFunc(marked, func(o markedOption) bool { return o.isSelected })
	on, back := "B", "A"
	if isRow {
		on, back = "C", "D"
		if selected < 0 {
			selected = l.standingOut(y, marked)
		}
	}
	isWide := slices.ContainsFunc(marked, func(o markedOption) bool { return o.end > l.Cols*3/4 })
	for i, o := range marked {
		switch isKeyed := o.ID != ""; {
		case isKeyed:
			if isTwo := slices.ContainsFunc(options, func(other ask.Option) bool { return other.ID == o.ID }); isTwo {
				return nil // what has one key for two options was not drawn as options
			}
		case isRow:
			o.ID = strings.ReplaceAll(strings.ToLower(o.Label), " ", "-")
		default:
			o.ID = strconv.Itoa(i + 1)
		}
		if o.Keys == "" && selected >= 0 {
			o.Keys = arrowKeys(l, on, back, i-selected)
		}
		if isWide && !isRow { // a row may be the rest of the one above it
			o.Keys = ""
		}
		if o.isTwice && o.Keys != "" {
			o.Keys += enter
		}
		options = append(options, o.Option)
	}
	return options
}

// standingOut returns the option in row y whose background stands out most; -1: none does.
func (l *Look) standingOut(y int, options []markedOption) int {
	ground, most, selected := l.row(y).background(), 0, -1
	for i, o := range options {
		switch n := contrast(l.cell(o.column, y), ground); {
		case n > most:
			most, selected = n, i
		case n == most:
			selected = -1
		}
	}
	return selected
}

// findText finds a dialog without options that can be read: what is drawn in place of the box, and is neither a box that is
// half drawn nor a view that is only looked at.
func (d *Driver) findText(l *Look) (f layout, ok bool) {
	s := &d.screen.Dialog
	f.first, f.end, _ = d.lowestDialog(l)
	f.top = f.end
	text := textRows(l, f.first, f.end)
	// The frame of a tool has rows below it, or it begins with the tool's call.
	isFrame := s.Row != nil && s.Bottom != nil && l.solidRows(f.end+1, len(l.Lines)) == "" && d.transcriptEnd(l, f.end) <= f.first
	hasEdge := isFrame || s.Row == nil && (s.Bottom != nil || s.Top != nil && s.Heading == nil)
	hasHint := hasAny(strings.Join(text[max(0, len(text)-3):], " "), s.Hints)
	isKnown := s.Row != nil && s.Bottom == nil && d.kindOfDialog(l, text, "") != agents.Unknown
	isBox := d.screen.Box.Text != nil && !fits("", d.screen.Box.Text) && d.beginsBox(l, f.first)
	for y := f.first; y < f.end; y++ {
		if l.hasAny(y, d.screen.Box.NeverBelow, "box.never_below") {
			return f, false
		}
	}
	return f, len(text) > 0 && (hasHint || isKnown || hasEdge && !isBox)
}

// isBox reports whether an option is one of several that may be ticked together.
func isBox(o ask.Option) bool { return hasAny(o.Label, []string{"[ ]", "[✔]", "[✓]", "[x]"}) }

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
