package driver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
	if !hasAny(keys, []string{"enter confirm", "enter submit", "esc dismiss", "⇆ select", "↑↓ select"}) {
		return nil
	}
	q := &Dialog{Kind: "unknown", Prompt: clip(strings.Join(rows[:min(foot, len(rows))], "\n"))}
	if foot < len(rows) {
		q.Options = d.buttonsIn(l, rows[foot], at[foot])
	}
	switch {
	case strings.HasPrefix(rows[0], "△ ") && len(q.Options) > 0:
		q.Kind = "permission"
		q.Tool, q.Input = d.opencodeRequest(rows[1:foot])
		if q.Tool != "Bash" && foot > 2 && isWrapped(l, at[1], at[2]) {
			q.Tool, q.Input = "", ""
		}
		if first == 0 {
			q.Tool, q.Input = "", "" // the command may start above the screen
		}
	case strings.Contains(keys, "dismiss"):
		q.Kind = "question"
	}
	q.Cancel = cancelKey([]string{keys})
	q.Print = d.fingerprint(q)
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
	q := &Dialog{Kind: "question", Prompt: clip(strings.Join(rows[:first], "\n")), Options: options, Cancel: cancelKey(rows[foot:])}
	q.Print = d.fingerprint(q)
	return q
}

func fields(row string) []string { return twoBlanks.Split(strings.TrimSpace(row), -1) }

var twoBlanks = regexp.MustCompile(`  +`)

func isButton(s string) bool { return slices.Contains(buttonLabels, s) }

func hasButton(row string) bool { return slices.ContainsFunc(fields(row), isButton) }

func (d *Driver) buttonsIn(l *Look, row string, y int) []Option {
	var out []Option
	lit := l.highlighted(y)
	selected := -1
	for _, label := range fields(row) {
		if !isButton(label) {
			continue
		}
		if strings.Contains(lit, label) {
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
