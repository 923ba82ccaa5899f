package driver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// opencode is the driver of opencode. Its title shows no state, and an interrupt takes two Escapes.
var opencode = Driver{
	Name:      "opencode",
	commands:  []string{"opencode"},
	packages:  []string{"opencode-ai"},
	interrupt: "\x1b\x1b",
	box: boxStyle{
		shape:        barred,
		text:         3,
		tailRows:     2,
		placeholders: []string{"Ask anything…", "Ask anything..."},
		maxBelow:     8,
	},
	foot: []phrase{
		{"esc interrupt", busyFoot},
		{"esc again to interrupt", busyFoot},
		{"⬝", busyFoot},
		{"■", busyFoot},
		{"exit shell mode", "bang mode"},
	},
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`\[retrying`)},
		{kind: doneRow, re: pattern(`^ *▣(?: .*)? · .* · `)},
		{kind: runsRow, re: pattern(`^ *(?:┃  [` + spins + `]|~) `)},
		{kind: toolRow, re: pattern(`^     [$→←✱%⚙◈] `)},
		{kind: userRow, re: pattern(`^  ┃  `)},
		{kind: answerRow, re: pattern(`^     [^▣]*$`)},
	},
	dialogs: dialogStyle{headings: []phrase{
		{"→ Edit ", "Edit"}, {"← Edit ", "Edit"}, {"← Write ", "Write"}, {"→ Write ", "Write"}, {"→ Read ", "Read"},
		{"→ List ", "LS"}, {"% WebFetch ", "WebFetch"}, {"✱ Glob ", "Glob"}, {"✱ Grep ", "Grep"},
		{"◈ ", "WebSearch"},
	}},
}

// buttonLabels are the labels of opencode's buttons. They are drawn side by side, the selected one on another
// background.
var buttonLabels = []string{"Allow once", "Allow always", "Reject", "Confirm", "Cancel"}

// buttonDialog reads a dialog of opencode: rows at the bottom that start with ┃, the last of them with buttons and
// keys. It has no closing ╹, unlike the input box.
func (d *Driver) buttonDialog(l *Look) *Dialog {
	rows, at, first := barredRows(l)
	if len(rows) == 0 {
		return nil
	}
	if q := d.numberedDialog(rows); q != nil {
		return q
	}
	// On a narrow screen the keys are in rows below the buttons.
	foot := len(rows) - 1
	for foot > max(0, len(rows)-4) && !hasButton(rows[foot]) {
		foot--
	}
	if !hasButton(rows[foot]) {
		foot = len(rows)
	}
	keys := strings.Join(rows[min(foot, len(rows)-1):], " ")
	isPermission := strings.HasPrefix(rows[0], "△ ") // on a small screen perhaps without its keys
	if !isPermission && !hasAny(keys, []string{"enter confirm", "enter submit", "esc dismiss", "⇆ select", "↑↓ select"}) {
		return nil
	}
	q := &Dialog{Kind: "unknown", Prompt: clip(strings.Join(rows[:min(foot, len(rows))], "\n"))}
	if foot < len(rows) {
		q.Options = d.buttonsIn(l, rows[foot], at[foot])
	}
	switch {
	case isPermission && len(q.Options) > 0:
		q.Kind = "permission"
		q.Tool, q.Input = d.opencodeRequest(rows[1:foot])
		isWrappedInput := q.Tool != "Bash" && foot > 2 && isWrapped(l, at[1], at[2])
		if isWrappedInput || first == 0 { // at 0 the command may start above the screen
			q.Tool, q.Input = "", ""
		}
	case strings.Contains(keys, "dismiss"):
		q.Kind = "question"
	}
	q.cancel = cancelKey([]string{keys})
	q.Fingerprint = d.fingerprint(q)
	return q
}

// barredRows returns the texts of the lowest rows that start with ┃ and their positions. first is the first such row,
// which may be blank.
func barredRows(l *Look) (rows []string, at []int, first int) {
	last, below := len(l.Lines)-1, 0
	for ; last >= 0 && !strings.HasPrefix(strings.TrimSpace(l.line(last)), "┃"); last-- {
		if !blank(l.line(last)) {
			below++
		}
	}
	if last < 0 || below > 3 {
		return nil, nil, 0
	}
	column := margin(l.line(last))
	first = last
	for first > 0 && margin(l.line(first-1)) == column && runeAt(l.line(first-1), column) == "┃" {
		first--
	}
	for y := first; y <= last; y++ {
		if s := strings.TrimSpace(skipRunes(l.line(y), column+1)); s != "" {
			rows, at = append(rows, s), append(at, y)
		}
	}
	return rows, at, first
}

// numberedDialog reads a question of opencode: numbered options, and "esc dismiss" at the end. If several may be
// chosen, a digit only marks its option.
func (d *Driver) numberedDialog(rows []string) *Dialog {
	foot := len(rows) - 1
	if !strings.Contains(rows[foot], "esc dismiss") {
		return nil
	}
	var options []Option
	first, want := foot, 0
	for y := foot - 1; y >= 0 && want != 1; y-- {
		n, label, _, _ := parseOption(rows[y])
		if n == 0 || want > 0 && n != want-1 {
			continue
		}
		o := newOption(strconv.Itoa(n), label)
		o.Keys = ""
		if n <= 9 && !hasAny(label, []string{"[ ]", "[✓]"}) {
			o.Keys = o.ID
		}
		options, first, want = append(options, o), y, n
	}
	if want != 1 {
		return nil
	}
	slices.Reverse(options)
	q := &Dialog{Kind: "question", Prompt: clip(strings.Join(rows[:first], "\n")), Options: options, cancel: cancelKey(rows[foot:])}
	q.Fingerprint = d.fingerprint(q)
	return q
}

// opencodeRequest reads the rows between heading and buttons in a dialog of opencode.
func (d *Driver) opencodeRequest(rows []string) (tool, input string) {
	if len(rows) == 0 || slices.ContainsFunc(rows, func(s string) bool { return strings.HasSuffix(s, "…") }) {
		return "", "" // empty or truncated
	}
	isCommand := func(s string) bool { return strings.HasPrefix(s, "$ ") }
	if start := slices.IndexFunc(rows, isCommand); start >= 0 {
		if slices.ContainsFunc(rows[start+1:], isCommand) {
			return "", "" // it is uncertain where the command starts
		}
		return "Bash", strings.TrimPrefix(strings.Join(rows[start:], "\n"), "$ ")
	}
	t, ok := findPrefix(rows[0], d.dialogs.headings)
	if !ok {
		return "", ""
	}
	return t.means, strings.TrimPrefix(rows[0], t.text)
}

func fields(row string) []string { return twoBlanks.Split(strings.TrimSpace(row), -1) }

var twoBlanks = regexp.MustCompile(`  +`)

func isButton(s string) bool { return slices.Contains(buttonLabels, s) }

func hasButton(row string) bool { return slices.ContainsFunc(fields(row), isButton) }

func (d *Driver) buttonsIn(l *Look, row string, y int) []Option {
	var out []Option
	highlighted, selected := l.highlighted(y), -1
	for _, label := range fields(row) {
		if !isButton(label) {
			continue
		}
		if strings.Contains(highlighted, label) {
			selected = len(out)
		}
		out = append(out, newOption(strings.ReplaceAll(strings.ToLower(label), " ", "-"), label))
	}
	for i := range out {
		if selected >= 0 {
			out[i].Keys = arrowKeys(l, "C", "D", i-selected)
		}
	}
	return out
}
