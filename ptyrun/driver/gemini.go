package driver

import "strings"

// geminiRequest reads a dialog of Gemini CLI: "? Tool  input" in the first row, a command in a frame of its own.
func (d *Driver) geminiRequest(l *Look, first, end int) (tool, input string) {
	heading, _ := unframe(l.line(first))
	rest, ok := strings.CutPrefix(heading, "? ")
	if !ok {
		return "", ""
	}
	verb, input, _ := strings.Cut(strings.TrimSpace(rest), " ")
	tool, input = d.screen.Tools[verb], strings.TrimSpace(input)
	if tool != "Bash" {
		if isWrapped(l, first, first+1) {
			return "", ""
		}
		return tool, strings.TrimPrefix(input, "Writing to ")
	}
	inFrame := func(y int, s string) bool { // in a frame inside the dialog's
		_, inner, _ := strings.Cut(l.line(y), "│")
		return strings.HasPrefix(strings.TrimLeft(inner, " "), s)
	}
	start := first + 1
	for start < end && !inFrame(start-1, "╭") {
		start++
	}
	y := start
	for ; y < end && !inFrame(y, "╰"); y++ {
		if !inFrame(y, "│") || strings.Contains(l.line(y), "hidden (") {
			return "", "" // part of the command is not shown
		}
	}
	if y == start {
		return "", ""
	}
	return tool, joinRows(l, start, y, keepAll)
}
