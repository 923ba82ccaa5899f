package driver

import (
	"regexp"
	"slices"
	"strings"
)

// requested reads the tool and its input in a permission dialog. It returns nothing if the screen leaves them open: a
// rule must not allow a request that was not read completely.
func (d *Driver) requested(l *Look, first int, f optionList) (tool, input string) {
	switch d.box.shape {
	case ruled:
		return d.claudeRequest(l, first, f)
	case halves:
		return d.geminiRequest(l, first, f)
	case unframed:
		return d.codexRequest(l, first, f)
	}
	return "", ""
}

// claudeRequest reads a dialog of Claude Code: a title for the tool, its input indented below, a description in grey,
// then the question.
func (d *Driver) claudeRequest(l *Look, first int, f optionList) (tool, input string) {
	for first < f.rows[0] && blank(l.line(first)) {
		first++
	}
	heading := strings.TrimSpace(l.line(first))
	known, ok := findPrefix(heading, d.dialogs.headings)
	if !ok {
		return "", ""
	}
	tool = known.means
	end := f.rows[0] // the question's row
	for y := end - 1; y > first && end == f.rows[0]; y-- {
		if line := l.text(y, isStrong); strings.HasPrefix(strings.TrimSpace(line), "Do you want to ") && margin(line) < 2 {
			end = y
		}
	}
	var rows []int
	for y := first + 1; y < end; y++ {
		line := l.text(y, isStrong)
		if strings.HasPrefix(strings.TrimSpace(line), "╌╌╌") {
			break
		}
		switch isInput := margin(line) >= 2 || tool != "Bash" && tool != ""; {
		case blank(line):
		case !isInput && len(rows) > 0: // a row that the terminal has wrapped, or something else
			return "", ""
		case isInput:
			rows = append(rows, y)
		}
	}
	input = joinRows(l, rows, isStrong)
	if heading != "Tool use" {
		return tool, input
	}
	m := mcpCall.FindStringSubmatch(input)
	if m == nil {
		return "", ""
	}
	return "mcp__" + m[1] + "__" + m[2], m[3]
}

var mcpCall = regexp.MustCompile(`(?s)^ *([^(]+?) - ([^(]+?) *\((.*?)\)?( \(MCP\).*)?$`)

// geminiRequest reads a dialog of Gemini CLI: "? Tool  input" in the first row, a command in a frame of its own.
func (d *Driver) geminiRequest(l *Look, first int, f optionList) (tool, input string) {
	heading, _ := unframe(l.line(first))
	rest, ok := strings.CutPrefix(heading, "? ")
	if !ok {
		return "", ""
	}
	rest = strings.TrimSpace(rest)
	if name, ok := findPrefix(rest, d.dialogs.verbs); ok {
		tool, input = name.means, strings.TrimSpace(strings.TrimPrefix(rest, name.text))
	}
	if tool != "Bash" {
		if isWrapped(l, first, first+1) {
			return "", ""
		}
		return tool, strings.TrimPrefix(input, "Writing to ")
	}
	y, inner := first+1, -1
	for ; y < f.rows[0] && inner < 0; y++ {
		if s, column := unframe(l.line(y)); strings.HasPrefix(s, "╭") {
			inner = column
		}
	}
	var rows []int
	for ; y < f.rows[0] && runeAt(l.line(y), inner) != "╰"; y++ {
		if runeAt(l.line(y), inner) != "│" || strings.Contains(l.line(y), "hidden (") {
			return "", "" // part of the command is not shown
		}
		rows = append(rows, y)
	}
	if rows == nil {
		return "", ""
	}
	return tool, joinRows(l, rows, keepAll)
}

// codexRequest reads a dialog of Codex: the reason, then "$ command". The model writes the reason, so if several rows
// start with "$ " it is uncertain where the command starts.
func (d *Driver) codexRequest(l *Look, first int, f optionList) (tool, input string) {
	text := textRows(l, first, f.rows[0])
	heading := strings.Join(text[:min(3, len(text))], " ")
	known, _ := findPrefix(heading, d.dialogs.headings)
	tool = known.means
	if tool != "Bash" {
		return tool, strings.Join(text[min(1, len(text)):], "\n")
	}
	var rows []int
	for y := first; y < f.rows[0]; y++ {
		line := l.line(y)
		starts := margin(line) == 2 && strings.HasPrefix(skipRunes(line, 2), "$ ")
		if starts && rows != nil {
			return "", ""
		}
		if starts || rows != nil {
			rows = append(rows, y)
		}
	}
	if rows == nil {
		return "", ""
	}
	return tool, strings.TrimPrefix(joinRows(l, rows, keepAll), "$ ")
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
