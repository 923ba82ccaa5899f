package driver

import "github.com/agentteammail/atm/reducer"

// gemini is the driver of Gemini CLI, which restarts itself after a folder was trusted and keeps its title.
var gemini = Driver{
	Name:     "gemini",
	commands: []string{"gemini"},
	packages: []string{"@google/gemini-cli"},
	Undoes:   true,
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
		placeholders: []string{"Type your message or @path/to/file", "Type your shell command"},
		maxBelow:     8,
	},
	foot: []phrase{
		{"again to exit", "one more Ctrl-C would end it"},
		{"again to quit", "one more Ctrl-C would end it"},
		{"to navigate", "a menu is open"},
	},
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`^ *[` + spins + `] .*(?:etrying.*esc to cancel|esc to cancel.*etrying)`)},
		{kind: busyRow, re: pattern(`^ *[` + spins + `] .*\(esc to cancel`)},
		{kind: queuedRow, re: pattern(`^ *Queued \(`)},
		{kind: hintRow, re: pattern(`^ *\? for shortcuts`)},
		{kind: noteRow, re: pattern(`^ℹ Request cancelled`)},
		{kind: errorRow, re: pattern(`^✕ `)},
		{kind: runsRow, re: pattern(`^ *│ ⊷ `)},
		{kind: toolRow, re: pattern(`^ *│ [✓✗x?-] `)},
		{kind: answerRow, re: pattern(`^✦ `)},
		{kind: userRow, re: pattern(`^(?: > |▄{8})`)},
	},
	dialogs: dialogStyle{
		verbs: []phrase{
			{"Shell ", "Bash"}, {"WriteFile ", "Write"}, {"Edit ", "Edit"}, {"ReadFile ", "Read"},
			{"WebFetch ", "WebFetch"}, {"GoogleSearch ", "WebSearch"},
		},
		kinds: []phrase{
			{"Do you trust the files in this folder?", "trust"},
			{"Apply this change?", "permission"}, {"Do you want to proceed?", "permission"},
			{"Allow execution", "permission"},
		},
	},
}
