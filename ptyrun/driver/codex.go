package driver

import (
	"regexp"
	"strings"
)

// codexRequest reads a dialog of Codex: the reason, then "$ command". The model writes the reason, so if several rows
// start with "$ " it is uncertain where the command starts.
func (d *Driver) codexRequest(l *Look, first, end int) (tool, input string) {
	text := textRows(l, first, end)
	heading, _ := findPrefix(strings.Join(text[:min(3, len(text))], " "), d.screen.Dialog.Headings)
	if heading.Means != "Bash" {
		return heading.Means, strings.Join(text[min(1, len(text)):], "\n")
	}
	start := end
	for y := first; y < end; y++ {
		if strings.HasPrefix(l.line(y), "  $ ") {
			if start < end {
				return "", ""
			}
			start = y
		}
	}
	if start == end {
		return "", ""
	}
	command := strings.TrimPrefix(joinRows(l, start, end, keepAll), "$ ")
	if hiddenLines.MatchString(command) {
		return "", ""
	}
	return "Bash", command
}

// hiddenLines matches the row in place of the end of a long command: "[… 48 lines] ^a view all".
var hiddenLines = regexp.MustCompile(`(?m)^ *\[… \d+ lines?\]`)
