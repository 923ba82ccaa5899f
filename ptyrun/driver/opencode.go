package driver

import (
	"slices"
	"strings"
)

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
		if _, bottom, _ := d.lowestDialog(l); slices.ContainsFunc(rows[start+1:], isCommand) || bottom-first >= fullDialog {
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
	t, ok := findPrefix(rows[0], d.screen.Dialog.Headings)
	if !ok || next < end && isWrapped(l, first, next) {
		return "", ""
	}
	return t.Means, strings.TrimPrefix(rows[0], t.Text)
}
