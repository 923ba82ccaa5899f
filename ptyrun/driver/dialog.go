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

// A Dialog is a question that a program draws in place of its input box.
type Dialog struct {
	Kind        string // permission, trust, question, unknown
	Fingerprint string // stays the same while the same dialog is on the screen
	Prompt      string // the text above the options
	Tool        string // Claude Code's name for the tool: Bash, Edit, WebFetch; "" if uncertain, so that no rule answers
	Alias       string // another name of the tool, which rules match as well
	IsCommand   bool   // Input is a command, although tools with these names take none
	Input       string // the complete command, path or address
	Options     []Option
	cancel      string // the key that ends the dialog without an answer, if the dialog names one
}

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

// Allowing returns the option that allows this one call only. In a question, where the agent writes the options, there
// must be exactly one that starts like a yes.
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

// A dialogStyle describes the dialogs of a program.
type dialogStyle struct {
	digitsChoose bool     // the digit of an option chooses it at once
	isFront      bool     // readFrontDialog reads them
	kinds        []phrase // prefixes of the first row or the question, or texts below the options, and the dialog's kind
	headings     []phrase // prefixes of the row that names the tool, and the tool
	verbs        []phrase // prefixes of the row of a running tool, and the tool

	// request reads the tool and its input in a permission dialog from row first to the options. It returns "" if the
	// screen leaves them open: a rule must not allow a request that was not read completely.
	request func(d *Driver, l *Look, first int, f optionList) (tool, input string)
}

// selectors are the marks before the option that Return chooses.
const selectors = "❯›●>▸▶→◉"

// An optionList is a numbered list of options.
type optionList struct {
	rows     []int // on the screen
	labels   []string
	selected int  // -1: none
	column   int  // of the numbers
	isCut    bool // the first options are above the screen
	hasPane  bool // there is a pane beside the options
}

// readDialog returns the dialog on the screen, or nil. p is the input box, if there is one: a list inside it is a
// draft, and a list above it is a quotation.
func (d *Driver) readDialog(l *Look, p inputBox, hasBox bool) *Dialog {
	if d.box.shape == barred && !hasBox {
		if q := d.buttonDialog(l); q != nil {
			return q
		}
	}
	f, ok := d.findOptions(l)
	if !ok || hasBox && f.rows[0] <= p.bottom {
		return nil
	}
	if d.dialogs.isFront {
		return d.readFrontDialog(l, f)
	}
	first, isWhole := d.dialogTop(l, f)
	text := textRows(l, first, f.rows[0])
	q := &Dialog{Kind: "unknown", Prompt: clip(strings.Join(text, "\n"))}
	if !f.isCut {
		q.Kind = d.kindOfDialog(l, text, f)
	}
	if q.Kind == "permission" && isWhole && d.dialogs.request != nil {
		q.Tool, q.Input = d.dialogs.request(d, l, first, f)
	}
	for i, label := range f.labels {
		o := newOption(strconv.Itoa(i+1), label)
		switch {
		case f.isCut, f.hasPane, f.selected < 0, hasAny(label, []string{"[ ]", "[✔]", "[x]"}):
			o.Keys = "" // its position is unknown, or its key only marks it
		case d.dialogs.digitsChoose && i < 9:
			o.Keys = o.ID
		case o.Keys == "":
			o.Keys = arrowKeys(l, "B", "A", i-f.selected)
		}
		q.Options = append(q.Options, o)
	}
	q.cancel = cancelKey(textRows(l, f.rows[len(f.rows)-1]+1, len(l.Lines)))
	q.Fingerprint = d.fingerprint(q)
	return q
}

// cancelKey returns the key that ends a dialog without an answer, if the rows below the options name it.
func cancelKey(foot []string) string {
	if cancelHint.MatchString(RemoveBlanks(strings.Join(foot, ""))) {
		return escape
	}
	return ""
}

var cancelHint = regexp.MustCompile(`(?i)esc(tocancel|tointerrupt|dismiss)`)

// pane matches what a question shows beside its options.
var pane = regexp.MustCompile(` {2,}[│┌├└] *[^ ].*$`)

// findOptions finds the lowest numbered list, which must have one selected option (a question may have none), at least
// two options (one if it names the key to cancel, or for the front) and no row of the transcript below it.
func (d *Driver) findOptions(l *Look) (optionList, bool) {
	f := optionList{selected: -1}
	want, between, below := 0, 0, 0
	done, foot := false, l.solidFoot()
	isQuestion := strings.Contains(foot, "Entertoselect")
	for y := len(l.Lines) - 1; y >= 0 && !done; y-- {
		line := pane.ReplaceAllString(l.line(y), "")
		f.hasPane = f.hasPane || line != l.line(y)
		n, label, column, selected := parseOption(line)
		if rest, ok := strings.CutPrefix(line, "❯"); ok && n == 0 && isQuestion {
			line = " " + rest // what is selected is no option: "❯ Chat about this"
		}
		switch {
		case n > 0 && (want == 0 || n == want && column == f.column):
			if selected && f.selected >= 0 {
				return optionList{}, false
			} else if selected {
				f.selected = len(f.rows)
			}
			if line == l.line(y) && !slices.Contains(f.rows, y+1) && isWrapped(l, y, y+1) {
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
			if between++; between > 8 || text != "" && at < f.column {
				return optionList{}, false
			}
		}
	}
	f.isCut = !done
	mayBeOne := d.dialogs.isFront || strings.Contains(foot, "Esctocancel") // the others are below a small screen
	if f.selected < 0 && !isQuestion || len(f.rows) == 0 || len(f.rows) < 2 && !mayBeOne {
		return optionList{}, false
	}
	slices.Reverse(f.rows)
	slices.Reverse(f.labels)
	if f.selected >= 0 {
		f.selected = len(f.rows) - 1 - f.selected
	}
	return f, true
}

// numberedRow matches an option; on a narrow screen without the blank before its label. An arrow shows that there are
// more options.
var numberedRow = regexp.MustCompile(`^(?:([` + selectors + `]) *|[↑↓] +)?([1-9][0-9]?)[.)]( +.+|\p{Lu}.*)$`)

// parseOption parses a row like "❯ 2. Label". For any other row n is 0.
func parseOption(line string) (n int, label string, column int, isSelected bool) {
	text, column := unframe(line)
	m := numberedRow.FindStringSubmatchIndex(text)
	if m == nil {
		return 0, "", 0, false
	}
	label = strings.Trim(text[m[6]:], " ✔✓") // without the mark of the current choice
	n, _ = strconv.Atoi(text[m[4]:m[5]])
	return n, label, column + utf8.RuneCountInString(text[:m[4]]), m[2] >= 0
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

// dialogTop returns the first row of the dialog with the options f, and whether the dialog starts on the screen.
func (d *Driver) dialogTop(l *Look, f optionList) (first int, isWhole bool) {
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
		// The rows of a message or a tool call are indented from the second on, and two blank rows follow.
		end := y + 1
		for end < at && !blank(l.line(end)+l.line(end+1)) {
			end++
		}
		before := strings.Join(textRows(l, y+1, end), " ")
		isHeading := func(p phrase) bool { return strings.Contains(before, p.text) }
		switch {
		case len(textRows(l, end, at)) == 0:
			return y + 1, true
		case slices.ContainsFunc(d.dialogs.headings, isHeading): // perhaps the two blank rows are in a command
			return y + 1, false
		}
		return end, true
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

// textRows returns the text of rows a to b (exclusive), without frames, rules and blank rows.
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

// joinRows returns the text of the rows as lines. It does not undo wrapping, which looks the same as a line that ends
// at the edge of the screen.
func joinRows(l *Look, rows []int, keep func(r row, i int) bool) string {
	var lines []string
	for _, y := range rows {
		line, _ := unframe(l.row(y).exactText(keep)) // with no-break spaces, which are letters to a shell
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n ")
}

// kindOfDialog looks at the first rows, the question above the options and the rows below them, but not at the rows
// between: those show what the agent wants to do, and may contain any text.
func (d *Driver) kindOfDialog(l *Look, text []string, f optionList) string {
	candidates := []string{strings.Join(text[:min(3, len(text))], " ")}
	for n := 1; n <= 3 && n <= len(text); n++ {
		candidates = append(candidates, strings.Join(text[len(text)-n:], " "))
	}
	foot := strings.Join(textRows(l, f.rows[len(f.rows)-1]+1, len(l.Lines)), " ")
	for _, k := range d.dialogs.kinds {
		if slices.ContainsFunc(candidates, func(s string) bool { return strings.HasPrefix(s, k.text) }) || strings.Contains(foot, k.text) {
			return k.means
		}
	}
	return "unknown"
}

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

// spinnerRow matches a row that starts with a spinner.
var spinnerRow = pattern(`^[` + claudeSpins + spins + `] `)

// fingerprint identifies a dialog. It ignores blanks and frames, which a resize moves, and rows with a spinner.
func (d *Driver) fingerprint(q *Dialog) string {
	var prompt strings.Builder // without row breaks, which a resize moves
	for row := range strings.SplitSeq(q.Prompt, "\n") {
		if !spinnerRow.MatchString(row) {
			prompt.WriteString(RemoveBlanks(row))
		}
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %q", d.Name, q.Kind, prompt.String(), q.Tool, RemoveBlanks(q.Input))
	for _, o := range q.Options {
		fmt.Fprintf(h, " %q", RemoveBlanks(o.Label))
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// clip limits the length of a text, since a screen may be large.
func clip(s string) string {
	if limit := 8 << 10; len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
