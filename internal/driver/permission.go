package driver

import "strings"

// asked reads which tool a permission dialog is about and what it is about to
// do. Where the screen leaves that open, it says nothing: a rule must not allow
// what nobody has read.
func (d *Driver) asked(l *Look, first int, f list) (tool, input string) {
	switch {
	case d.asks.rule != "":
		return d.askedByHeading(l, first, f)
	case d.asks.frames:
		return d.askedInFrame(l, first, f)
	case d.asks.flush:
		return d.askedByCommand(l, first, f)
	}
	return "", ""
}

// askedByHeading is Claude Code's way: the tool's title, what it does indented
// below, then what it is for in grey, then the question.
func (d *Driver) askedByHeading(l *Look, first int, f list) (tool, input string) {
	for first < f.rows[0] && blank(l.line(first)) {
		first++
	}
	heading := strings.TrimSpace(l.line(first))
	tool, known := "", false
	for _, h := range d.asks.headings {
		if strings.HasPrefix(heading, h.has) {
			tool, known = h.why, true
			break
		}
	}
	if !known {
		return "", ""
	}
	var rows []int
	for y := first + 1; y < f.rows[0]; y++ {
		line := l.strong(y)
		if strings.HasPrefix(strings.TrimSpace(line), "╌╌╌") {
			break
		}
		deep := margin(line) >= 2 || tool != "Bash" && tool != ""
		if blank(line) || !deep || startsAny(strings.TrimSpace(line), []string{"Do you want to "}) && margin(line) < 2 {
			if len(rows) > 0 && !blank(line) {
				break
			}
			continue
		}
		rows = append(rows, y)
	}
	input = joined(l, rows, func(y int) string { return l.strong(y) })
	if heading != "Tool use" {
		return tool, input
	}
	// "server - tool(arguments) (MCP)"
	call, arguments, ok := strings.Cut(input, "(")
	server, name, two := strings.Cut(strings.TrimSpace(call), " - ")
	if !ok || !two {
		return "", ""
	}
	arguments, _, _ = strings.Cut(arguments, ") (MCP)")
	return "mcp__" + server + "__" + name, strings.TrimSuffix(arguments, ")")
}

// askedInFrame is Gemini CLI's way: "? Tool  what" in the first row, the
// command in a frame of its own.
func (d *Driver) askedInFrame(l *Look, first int, f list) (tool, input string) {
	heading, _ := unframe(l.line(first))
	rest, ok := strings.CutPrefix(heading, "? ")
	if !ok {
		return "", ""
	}
	rest = strings.TrimSpace(rest)
	for _, n := range d.asks.names {
		if what, ok := strings.CutPrefix(rest, n.has+" "); ok {
			tool, input = n.why, strings.TrimSpace(what)
			break
		}
	}
	if tool != "Bash" {
		return tool, strings.TrimPrefix(input, "Writing to ")
	}
	var rows []int
	inner := -1
	for y := first + 1; y < f.rows[0]; y++ {
		line := l.line(y)
		if inner < 0 {
			if s, column := unframe(line); strings.HasPrefix(s, "╭") {
				inner = column
			}
			continue
		}
		if at := runeAt(line, inner); at == "╰" {
			break
		} else if at != "│" || strings.Contains(line, "hidden (") {
			return "", "" // part of the command is not shown
		}
		rows = append(rows, y)
	}
	if len(rows) == 0 {
		return "", ""
	}
	return tool, joined(l, rows, l.line)
}

// askedByCommand is Codex's way: reasons, then "$ command". Rows of the reason,
// which the model writes, and rows of the command look alike: more than one
// that begins with "$ " leaves open where the command begins.
func (d *Driver) askedByCommand(l *Look, first int, f list) (tool, input string) {
	text := words(l, first, f.rows[0])
	heading := strings.Join(text[:min(3, len(text))], " ")
	for _, h := range d.asks.headings {
		if strings.HasPrefix(heading, h.has) {
			tool = h.why
			break
		}
	}
	if tool != "Bash" {
		if len(text) > 1 {
			input = strings.Join(text[1:], "\n")
		}
		return tool, input
	}
	var rows []int
	for y := first; y < f.rows[0]; y++ {
		line := l.line(y)
		starts := margin(line) == 2 && strings.HasPrefix(after(line, 2), "$ ")
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
	return tool, strings.TrimPrefix(joined(l, rows, l.line), "$ ")
}

// joined is the text of rows: a row that was only broken for want of room is
// joined to the next with a blank, others with a newline.
func joined(l *Look, rows []int, text func(y int) string) string {
	var b strings.Builder
	for i, y := range rows {
		s, _ := unframe(text(y))
		if i > 0 {
			if wraps(l, rows[i-1], y) && y == rows[i-1]+1 {
				b.WriteByte(' ')
			} else {
				b.WriteByte('\n')
			}
		}
		b.WriteString(s)
	}
	return clip(strings.Trim(b.String(), "\n "))
}
