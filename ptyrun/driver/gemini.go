package driver

import (
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// gemini is the driver of Gemini CLI, which restarts itself after a folder was trusted and keeps its title.
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
	titles: []title{
		{pattern(`^✋`), reducer.Confirming},
		{pattern(`^[✦⏲]`), reducer.Thinking},
		{pattern(`^◇`), reducer.Idle},
	},
	box: boxStyle{
		shape:        halves,
		glyph:        ">",
		indent:       1,
		text:         2,
		modes:        []phrase{{"! ", "bang mode"}},
		placeholders: []string{"Type your message or @path/to/file", "Type your shell command", "Press 'Esc' for NORMAL mode."},
		maxBelow:     8,
	},
	foot: []phrase{
		{"again to exit", "another Ctrl-C would end it"},
		{"again to quit", "another Ctrl-C would end it"},
		{"to navigate", "a menu is open"},
		{"[NORMAL]", "vim is in normal mode"},
	},
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`^ *[` + spins + `] .*(?:etrying.*esc to cancel|esc to cancel.*etrying)`)},
		{kind: busyRow, re: pattern(`^ *[` + spins + `] .*\(esc to cancel`)},
		{kind: hintRow, re: pattern(`^ *Queued \(`)},
		{kind: hintRow, re: pattern(`^ *\? for shortcuts`)},
		{kind: noteRow, re: pattern(`^ℹ Request cancelled`)},
		{kind: errorRow, re: pattern(`^✕ `)},
		{kind: runsRow, re: pattern(`^ *│ ⊷ +(\w+)`)},
		{kind: toolRow, re: pattern(`^ *│ [✓✗x?-] `)},
		{kind: answerRow, re: pattern(`^✦ `)},
		{kind: userRow, re: pattern(`^(?: > |▄{8})`)},
	},
	dialogs: dialogStyle{
		request: (*Driver).geminiRequest,
		verbs: map[string]string{
			"Shell": "Bash", "WriteFile": "Write", "Edit": "Edit", "ReadFile": "Read", "WebFetch": "WebFetch", "GoogleSearch": "WebSearch",
		},
		kinds: []phrase{
			{"Do you trust the files in this folder?", "trust"},
			{"Apply this change?", "permission"}, {"Do you want to proceed?", "permission"},
			{"Allow execution", "permission"}, {"Answer Questions", "question"},
			{"Ready to start implementation?", "question"},
		},
	},
}

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
