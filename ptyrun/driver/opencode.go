package driver

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agentteammail/atm/ptyrun/control"
)

// opencode is the driver of opencode. Its title shows no state, and an interrupt takes two Escapes. What it draws beside
// an answer is not in the colour of text, or behind a bar in the colour of the background.
var opencode = Driver{
	Name:       "opencode",
	commands:   []string{"opencode"},
	npmPackage: "opencode-ai",
	sign:       pattern(`^(?:OpenCode\n|OC \| )`),
	interrupt:  "\x1b\x1b",
	triggers:   &triggerStyle{}, // it parses nothing in a text that begins with our header
	box: boxStyle{
		shape:        barred,
		text:         3,
		tailRows:     2,
		placeholders: []string{"Ask anything…", "Ask anything..."},
		maxBelow:     8,
	},
	foot: []gatePhrase{
		{"esc interrupt", control.GateBusy},
		{"esc again to interrupt", control.GateBusy},
		{"⬝", control.GateBusy},
		{"■", control.GateBusy},
		{"exit shell mode", control.GateShellMode},
	},
	indent: 5,
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`\[retrying`), has: isNoText},
		{kind: doneRow, re: pattern(`^ *▣(?: .*)? · .* · `), has: isNoText},
		{kind: hintRow, re: pattern(`^     ▣ `), has: isNoText},
		{kind: runsRow, re: pattern(`^ *┃  [` + spins + `] +(.{1,60})`)},
		{kind: runsRow, re: pattern(`^ *~ +(.{1,60})`), has: isNoText},
		{kind: toolRow, re: pattern(`^     [$→←✱%⚙◈] `), has: isOpencodeTool},
		{kind: hintRow, re: pattern(`^  ┃`), has: isInvisibleBar},
		{kind: userRow, re: pattern(`^  ┃  `)},
		{kind: textRow, re: pattern(`^     `)},
	},
	dialogs: dialogStyle{
		request: (*Driver).opencodeRequest,
		kinds:   []phrase{{"dismiss", "question"}, {"△", "permission"}},
		headings: []phrase{
			{"→ Edit ", "Edit"}, {"← Edit ", "Edit"}, {"← Write ", "Write"}, {"→ Write ", "Write"}, {"→ Read ", "Read"},
			{"→ List ", "LS"}, {"% WebFetch ", "WebFetch"}, {"✱ Glob ", "Glob"}, {"✱ Grep ", "Grep"},
			{"◈ ", "WebSearch"},
		},
	},
}

// isNoText reports whether the row does not begin in the colour of text. Without styles nothing tells.
func isNoText(l *Look, y int) bool {
	return !l.isStyled() || !isInk(l.cell(margin(l.line(y)), y)) || isMuted(l.firstLetter(0, y))
}

// isOpencodeTool reports whether the mark of the row is not part of a text: the blank behind it then has the style of
// the blanks before it.
func isOpencodeTool(l *Look, y int) bool {
	return l.isStyled() && l.cell(6, y).Fg == l.cell(0, y).Fg && !isInk(l.cell(5, y))
}

// isInvisibleBar reports whether the bar of the row cannot be seen, as beside the output of a tool.
func isInvisibleBar(l *Look, y int) bool {
	return l.cell(2, y).Fg != nil && l.cell(2, y).Fg == l.cell(0, y).Bg
}

// keyHints are the keys that a dialog of opencode names below its options.
var keyHints = []string{"enter confirm", "enter submit", "esc dismiss", "⇆ select", "↑↓ select"}

// findBarredOptions finds the options of opencode: below text, in rows at the bottom that start with ┃, numbers or
// buttons and the keys for them. There is no closing ╹, unlike below the input box.
func (d *Driver) findBarredOptions(l *Look) (f layout, ok bool) {
	first, end := l.barredRows()
	text := textRows(l, first, end)
	if len(text) == 0 {
		return f, false
	}
	if strings.Contains(text[len(text)-1], "esc dismiss") {
		f, ok = l.numberedIn(first, end, false, func(int) bool { return false })
	}
	for i := range f.options {
		o := &f.options[i]
		if o.Keys = ""; len(o.ID) == 1 && !o.isBox() {
			o.Keys = o.ID // although none is seen to be selected
		}
	}
	if !ok {
		f = layout{top: end}
		for y := end - 1; y >= max(first, end-5) && f.options == nil; y-- { // on a narrow screen the keys are below
			if f.options = l.buttonsIn(y); f.options != nil {
				f.top = y
			}
		}
		f.end = f.top
		ok = hasAny(strings.Join(text, " "), keyHints) || strings.HasPrefix(text[0], "△")
	}
	f.first, f.isWhole = first, first > 0 // at 0 a command may start above the screen
	return f, ok
}

// barredRows returns the lowest rows that start with ┃: the first, and the row after the last that is not blank.
func (l *Look) barredRows() (first, end int) {
	isBarred := func(y int) bool { return strings.HasPrefix(strings.TrimSpace(l.line(y)), "┃") }
	below := 0
	for end = len(l.Lines); end > 0 && (!isBarred(end-1) || len(textRows(l, end-1, end)) == 0); end-- {
		if !blank(l.line(end-1)) && !isBarred(end-1) {
			below++
		}
	}
	if below > 3 {
		return 0, 0
	}
	first = end
	for first > 0 && isBarred(first-1) && margin(l.line(first-1)) == margin(l.line(end-1)) {
		first--
	}
	return first, end
}

// fullDialog is the number of rows of the largest dialog, without the last, blank one. It may show only the start of a
// command.
const fullDialog = 14

// opencodeRequest reads a dialog of opencode: a heading, then "→ Tool input" or "$ command".
func (d *Driver) opencodeRequest(l *Look, first, end int) (tool, input string) {
	rows := textRows(l, first, end)
	if len(rows) < 2 || !strings.HasPrefix(rows[0], "△") || slices.ContainsFunc(rows, func(s string) bool { return strings.HasSuffix(s, "…") }) {
		return "", "" // empty or truncated
	}
	rows = rows[1:]
	isCommand := func(s string) bool { return strings.HasPrefix(s, "$ ") }
	if start := slices.IndexFunc(rows, isCommand); start >= 0 {
		if _, bottom := l.barredRows(); slices.ContainsFunc(rows[start+1:], isCommand) || bottom-first >= fullDialog {
			return "", "" // it is uncertain where the command starts or ends
		}
		return "Bash", strings.TrimPrefix(strings.Join(rows[start:], "\n"), "$ ")
	}
	for !strings.Contains(l.line(first), rows[0]) {
		first++
	}
	next := first + 1
	for next < end-1 && len(textRows(l, next, next+1)) == 0 {
		next++
	}
	t, ok := findPrefix(rows[0], d.dialogs.headings)
	if !ok || next < end && isWrapped(l, first, next) {
		return "", ""
	}
	return t.means, strings.TrimPrefix(rows[0], t.text)
}

// buttonLabels are the labels of opencode's buttons. They are drawn side by side, the selected one on another
// background.
var buttonLabels = []string{"Allow once", "Allow always", "Reject", "Confirm", "Cancel"}

var twoBlanks = regexp.MustCompile(`  +`)

// buttonsIn returns the buttons in row y.
func (l *Look) buttonsIn(y int) (buttons []Option) {
	text, _ := unframe(l.line(y))
	ground, selected := l.row(y).background(), -1
	highlighted := l.row(y).text(func(r row, i int) bool { return r[i].Bg != ground || r[i].Inverse })
	for _, label := range twoBlanks.Split(text, -1) {
		if !slices.Contains(buttonLabels, label) {
			continue
		}
		if strings.Contains(highlighted, label) {
			selected = len(buttons)
		}
		buttons = append(buttons, newOption(strings.ReplaceAll(strings.ToLower(label), " ", "-"), label))
	}
	for i := range buttons {
		if selected >= 0 {
			buttons[i].Keys = arrowKeys(l, "C", "D", i-selected)
		}
	}
	return buttons
}
