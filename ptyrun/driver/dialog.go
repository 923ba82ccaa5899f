package driver

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire/foreign"
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
	for y >= 0 && (blank(l.line(y)) || margin(l.line(y)) > 0 || d.screen.Box.Shape == agents.Rest && d.kindOf(l, y) == otherRow) {
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
		_, isBox := d.glyphAt(l.line(f.first))
		ok = f.first > 0 && !isBox
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
