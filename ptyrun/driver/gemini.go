package driver

import "github.com/agentteammail/atm/reducer"

// gemini is Gemini CLI. It restarts itself inside its terminal after a folder was trusted; its title stays.
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
	box: box{
		shape:        halves,
		glyph:        ">",
		indent:       1,
		text:         2,
		modes:        []note{{"! ", "bang mode"}},
		placeholders: []string{"Type your message or @path/to/file", "Type your shell command"},
		below:        8,
	},
	foot: []note{
		{"again to exit", "one more Ctrl-C would end it"},
		{"again to quit", "one more Ctrl-C would end it"},
		{"to navigate", "a menu is open"},
	},
	marks: []mark{
		{is: retryRow, on: pattern(`^ *[` + spins + `] .*(?:etrying.*esc to cancel|esc to cancel.*etrying)`)},
		{is: busyRow, on: pattern(`^ *[` + spins + `] .*\(esc to cancel`)},
		{is: queuedRow, on: pattern(`^ *Queued \(`)},
		{is: hintRow, on: pattern(`^ *\? for shortcuts`)},
		{is: noteRow, on: pattern(`^ℹ Request cancelled`)},
		{is: errorRow, on: pattern(`^✕ `)},
		{is: runsRow, on: pattern(`^ *│ ⊷ `)},
		{is: toolRow, on: pattern(`^ *│ [✓✗x?-] `)},
		{is: answerRow, on: pattern(`^✦ `)},
		{is: userRow, on: pattern(`^(?: > |▄{8})`)},
	},
	asks: asks{
		verbs: []note{
			{"Shell ", "Bash"}, {"WriteFile ", "Write"}, {"Edit ", "Edit"}, {"ReadFile ", "Read"},
			{"WebFetch ", "WebFetch"}, {"GoogleSearch ", "WebSearch"},
		},
		kinds: []note{
			{"Do you trust the files in this folder?", "trust"},
			{"Apply this change?", "permission"}, {"Do you want to proceed?", "permission"},
			{"Allow execution", "permission"},
		},
	},
}
