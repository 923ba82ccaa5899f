package driver

import (
	"regexp"
	"strings"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

// gemini is the driver of Gemini CLI, which restarts itself after a folder was trusted and keeps its title. The mark of
// a tool without a frame is coloured.
var gemini = Driver{
	Name:                     "gemini",
	commands:                 []string{"gemini"},
	npmPackage:               "@google/gemini-cli",
	sign:                     pattern(`^(?:◇  Ready \(|✦  Working|✋  Action Required \()|(?s:▝▜▄.*Gemini CLI v)`),
	ForgetsInterruptedPrompt: true,
	triggers: &triggerStyle{
		escapes: []escaping{{pattern(`@`), `\@`, `\@ is an at sign`}}, // a file, resource or agent
		others:  []*regexp.Regexp{pattern(`\[Pasted Text: `)},         // stands for what was pasted before
	},
	titles: geminiTitles,
	box: boxStyle{
		shape:        halves,
		glyph:        ">",
		indent:       1,
		text:         2,
		modes:        []gatePhrase{{"! ", control.GateShellMode}},
		placeholders: geminiPlaceholders,
		maxBelow:     8,
	},
	foot:   geminiGates,
	indent: 2,
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`^ ?[` + spins + `] .*(?:etrying.*esc to cancel|esc to cancel.*etrying)`)},
		{kind: busyRow, re: pattern(`^ ?[` + spins + `] .*\(esc to cancel`)},
		{kind: hintRow, re: pattern(`^ *Queued \(`), has: isMutedRow},
		{kind: hintRow, re: pattern(`^ {20,}\? for shortcuts|^[▄▀]{8}`)},
		{kind: noteRow, re: pattern(`^ℹ Request cancelled`)},
		{kind: errorRow, re: pattern(`^✕ `)},
		{kind: runsRow, re: pattern(`^│ ⊷ +(\w+)`)},
		{kind: toolRow, re: pattern(`^│ [✓✗x?-] `)},
		{kind: runsRow, re: pattern(`^  ⊷ +(\w+)`), has: isColouredMark},
		{kind: toolRow, re: pattern(`^  [✓✗x?-]  \S`), has: isColouredMark},
		{kind: answerRow, re: pattern(`^✦ `)},
		{kind: userRow, re: pattern(`^ ?> `)},
	},
	dialogs: dialogStyle{
		request: (*Driver).geminiRequest,
		verbs:   geminiVerbs,
		kinds:   geminiKinds,
	},
	spoken: &geminiSpoken,
}

// geminiSpoken is the look for a screen reader. The rows of an answer are not indented.
var geminiSpoken = Driver{
	Name:   "gemini",
	sign:   pattern(`(?m)^(?:User:  |Model:  |You are currently in screen reader-friendly view|>  Type your message)`),
	titles: geminiTitles,
	box: boxStyle{
		shape:        flat,
		glyph:        ">",
		hasGlyph:     true,
		text:         3,
		placeholders: geminiPlaceholders,
		above:        pattern(`^(?:workspace \(|.* sandbox$|no sandbox|Auto$|\? for shortcuts|responding |.*Shift\+Tab to |.*Ctrl\+Y to |.*/model$)`),
		maxBelow:     8,
	},
	foot:       append([]gatePhrase{{"(esc to cancel", control.GateBusy}}, geminiGates...),
	answerMark: "Model: ",
	userMark:   "User:  ",
	rows: []rowPattern{
		{kind: hintRow, re: pattern(`^You are currently in screen reader-friendly view`)},
		{kind: errorRow, re: pattern(`^Error:  `)},
		{kind: runsRow, re: pattern(`^Executing:  *(\w+)`)},
		{kind: toolRow, re: pattern(`^(?:Success|Pending|Canceled): `)},
		{kind: answerRow, re: pattern(`^Model:  `)},
		{kind: userRow, re: pattern(`^User:  `)},
	},
	dialogs: dialogStyle{
		verbs:    geminiVerbs,
		kinds:    geminiKinds,
		headings: []phrase{{"? ", ""}},
		// Where the input ends cannot be told, so no rule answers.
		request: func(*Driver, *Look, int, int) (tool, input string) { return "", "" },
	},
}

var (
	geminiTitles = []title{
		{pattern(`^✋`), reducer.Confirming},
		{pattern(`^[✦⏲]`), reducer.Thinking},
		{pattern(`^◇`), reducer.Idle},
	}
	geminiPlaceholders = []string{"Type your message or @path/to/file", "Type your shell command", "Press 'Esc' for NORMAL mode."}
	geminiGates        = []gatePhrase{
		{"again to exit", control.GateExitKey},
		{"again to quit", control.GateExitKey},
		{"to navigate", control.GateMenu},
		{"[NORMAL]", control.GateVim},
	}
	geminiVerbs = map[string]string{
		"Shell": "Bash", "WriteFile": "Write", "Edit": "Edit", "ReadFile": "Read", "WebFetch": "WebFetch", "GoogleSearch": "WebSearch",
	}
	geminiKinds = []phrase{
		{"Do you trust the files in this folder?", "trust"},
		{"Apply this change?", "permission"}, {"Do you want to proceed?", "permission"},
		{"Allow execution", "permission"}, {"Answer Questions", "question"},
		{"Ready to start implementation?", "question"},
	}
)

// isColouredMark reports whether the row's first character is coloured.
func isColouredMark(l *Look, y int) bool { return isColoured(l.cell(margin(l.line(y)), y)) }

// geminiRequest reads a dialog of Gemini CLI: "? Tool  input" in the first row, a command in a frame of its own.
func (d *Driver) geminiRequest(l *Look, first, end int) (tool, input string) {
	heading, _ := unframe(l.line(first))
	rest, ok := strings.CutPrefix(heading, "? ")
	if !ok {
		return "", ""
	}
	verb, input, _ := strings.Cut(strings.TrimSpace(rest), " ")
	tool, input = d.dialogs.verbs[verb], strings.TrimSpace(input)
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
