package driver

import (
	"regexp"
	"strings"
)

// claudeRequest reads a dialog of Claude Code: a title for the tool, and its input. In versions up to 2.1.2xx the input
// is indented below, before a description in grey; later it is between two rules ╌╌╌, and above them is the description,
// or for a file the path, and perhaps a tip in bold.
func (d *Driver) claudeRequest(l *Look, first, end int) (tool, input string) {
	for blank(l.line(first)) { // the options are below
		first++
	}
	heading := strings.TrimSpace(l.line(first))
	known, ok := findPrefix(heading, d.screen.Dialog.Headings)
	if !ok || !l.isStyled() {
		return "", "" // without styles a description may be taken for input
	}
	tool = known.Means
	var rules []int
	for y := first + 1; y < end; y++ {
		if strings.HasPrefix(strings.TrimSpace(l.line(y)), "╌╌╌") {
			rules = append(rules, y)
		}
	}
	isFile := tool == "Edit" || tool == "Write" || tool == "NotebookEdit"
	switch {
	case len(rules) >= 2 && isFile:
		input = l.pathBetween(first+1, rules[0])
	case len(rules) >= 2:
		input = joinRows(l, rules[0]+1, rules[len(rules)-1], keepAll)
		if tool == "WebFetch" { // with a prompt, which the model writes
			m := append(fetchCall.FindStringSubmatch(input), "", "")
			input = m[1]
		}
	default:
		input, ok = d.indentedInput(l, tool, first+1, end)
	}
	switch {
	case !ok || input == "":
		return "", ""
	case heading != "Tool use":
		if m := namedCall.FindStringSubmatch(input); m != nil && m[1] == tool && tool != "Bash" {
			input = m[2]
		}
		return tool, input
	}
	if m := searchCall.FindStringSubmatch(input); m != nil {
		return "WebSearch", m[1]
	}
	m := mcpCall.FindStringSubmatch(input)
	if m == nil {
		return "", ""
	}
	return "mcp__" + m[1] + "__" + m[2], m[3]
}

// pathBetween returns the one row between a title and the rules that is no tip; "": there are more.
func (l *Look) pathBetween(first, end int) (path string) {
	for y := first; y < end; y++ {
		line := l.line(y)
		isTip := l.firstLetter(y).Bold
		if blank(line) || isTip {
			continue
		}
		if path != "" || isWrapped(l, y, y+1) {
			return ""
		}
		path = strings.TrimSpace(line)
	}
	return path
}

// indentedInput returns the rows of a tool's input between the title and the question, without those in grey; false:
// something else is there.
func (d *Driver) indentedInput(l *Look, tool string, first, end int) (input string, ok bool) {
	question := end // its row
	for y := end - 1; y >= first && question == end; y-- {
		if line := l.text(y, isStrong); strings.HasPrefix(strings.TrimSpace(line), "Do you want to ") && margin(line) < 2 {
			question = y
		}
	}
	start := question
	for y := first; y < question; y++ {
		line := l.text(y, isStrong)
		isInput := margin(line) >= 2 || tool != "Bash" && tool != ""
		switch {
		case blank(line):
		case isInput:
			start = min(start, y)
		case start < question: // a row that the terminal has wrapped, or something else
			return "", false
		}
	}
	return joinRows(l, start, question, isStrong), true
}

var (
	fetchCall  = regexp.MustCompile(`^url: (\S+)\nprompt: `)
	searchCall = regexp.MustCompile(`^Web Search\("(.*)"\)$`)
	namedCall  = regexp.MustCompile(`(?s)^(\w+)\((.*)\)$`)
	mcpCall    = regexp.MustCompile(`(?s)^ *([^(]+?) - ([^(]+?) *\((.*?)\)?( \(MCP\).*)?$`)
)
