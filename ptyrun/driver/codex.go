package driver

import (
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// codex is the driver of Codex. While an answer streams it shows no busy line, only a spinner in the title.
var codex = Driver{
	Name:       "codex",
	commands:   []string{"codex"},
	npmPackage: "@openai/codex",
	sign:       pattern(`^.*\] Action Required \| |\n *>_ OpenAI Codex \(v|(?s:Trust this folder\? Codex.*\n *Folder access\n|\n *Folder access\n.*Trust this folder\? Codex)`),
	unshared:   "--no-daemon",
	triggers: &triggerStyle{
		escapes: []escaping{{pattern(`\$`), `$$\`, `$\ is a dollar sign`}}, // a skill or app; a backslash before the $ does not help
		others: []*regexp.Regexp{
			pattern(`\[@`), // a plugin, with a link behind it
			pattern(`(?i)\b(?:app|mcp|plugin|skill|thread)://`),
			pattern(`\[(?:Pasted Content|Image) `), // stands for what was pasted before
		},
	},
	titles: []title{
		{pattern(`^\[ [!.] \] Action Required`), reducer.Confirming},
		{pattern(`^[` + spins + `]`), reducer.Thinking},
	},
	box: boxStyle{
		shape:        unframed,
		glyph:        "›",
		text:         2,
		modes:        []phrase{{"! ", "bang mode"}},
		placeholders: []string{"Ask Codex to do anything"},
		maxBelow:     4,
		startingFoot: "? for shortcuts",
	},
	foot: []phrase{
		{"esc to interrupt", busyFoot},
		{"again to quit", "it waits for the same key again"}, // "esc again to edit" is over with the first letter
		{"for commands", "help is open"},
		{"to quit", "an overlay is open"},
		{"esc to close", "an overlay is open"},
		{"esc close", "help is open"},
		{"esc to go back", "an overlay is open"},
		{"to navigate", "a menu is open"},
		{"esc back", "a menu is open"},
		{"enter to confirm", notBox}, {"enter continue", notBox}, {"enter to continue", notBox}, {"codex resume", notBox},
	},
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`^• .*(?:econnecting.*esc to interrupt|esc to interrupt.*econnecting)`)},
		{kind: busyRow, re: pattern(`^[•◦] .*esc to interrupt\)`)},
		{kind: hintRow, re: pattern(`^• (?:Queued|Messages to be submitted)`)},
		{kind: doneRow, re: pattern(`^[ ─] Worked for `)},
		{kind: noteRow, re: pattern(`^■ Conversation interrupted`)},
		{kind: errorRow, re: pattern(`^■ `)},
		{kind: runsRow, re: pattern(`^• (Running|Exploring|Calling|Searching)\b`)},
		{kind: toolRow, re: pattern(`^(?:[✔✗] |• (?:(?:Ran|Called|Edited|Added|Deleted|Viewed image) |Exited \(status |Failed \S+\.\S+$|Explored|Searched|Updated Plan))`)},
		{kind: answerRow, re: pattern(`^• `)},
		{kind: hintRow, re: pattern(`^ *└ Tip: `)},
		{kind: userRow, re: pattern(`^› `)},
	},
	dialogs: dialogStyle{
		request: (*Driver).codexRequest,
		verbs:   map[string]string{"Running": "Bash", "Exploring": "Read", "Searching": "WebSearch", "Calling": "MCP"},
		kinds: []phrase{
			{"enter to submit answer", "question"}, {"enter to submit all", "question"}, {"Question ", "question"},
			{"Trust this folder?", "trust"}, {"Do you trust the contents", "trust"}, {"You are in ", "trust"},
			{"Folder access", "trust"}, {"Hooks need review", "trust"},
			{"Would you like to run", "permission"}, {"Would you like to make", "permission"}, {"Would you like to grant", "permission"},
			{"Do you want to approve", "permission"}, {"Would you like to allow", "permission"},
		},
		headings: []phrase{
			{"Would you like to run", "Bash"}, {"Would you like to make", "Edit"},
			{"Do you want to approve network access", "WebFetch"},
		},
	},
}

// codexRequest reads a dialog of Codex: the reason, then "$ command". The model writes the reason, so if several rows
// start with "$ " it is uncertain where the command starts.
func (d *Driver) codexRequest(l *Look, first, end int) (tool, input string) {
	text := textRows(l, first, end)
	heading, _ := findPrefix(strings.Join(text[:min(3, len(text))], " "), d.dialogs.headings)
	if heading.means != "Bash" {
		return heading.means, strings.Join(text[min(1, len(text)):], "\n")
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
