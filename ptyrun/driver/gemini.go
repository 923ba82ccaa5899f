package driver

import "github.com/agentteammail/atm/reducer"

// gemini is Gemini CLI. It restarts itself inside its terminal after a folder was trusted; its title stays.
var gemini = Driver{
	Name:     "gemini",
	commands: []string{"gemini"},
	packages: []string{"@google/gemini-cli"},
	Undoes:   true,
	titles:   []title{{"✋", reducer.Confirming}, {"✦", reducer.Thinking}, {"⏲", reducer.Thinking}, {"◇", reducer.Idle}},
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
		{is: retryRow, trim: true, braille: true, has: "etrying", has2: "esc to cancel"},
		{is: busyRow, trim: true, braille: true, has: "(esc to cancel"},
		{is: queuedRow, trim: true, start: []string{"Queued ("}},
		{is: hintRow, trim: true, start: []string{"? for shortcuts"}},
		{is: noteRow, start: []string{"ℹ Request cancelled"}},
		{is: errorRow, start: []string{"✕ "}},
		{is: runsRow, trim: true, start: []string{"│ ⊷ "}},
		{is: toolRow, trim: true, start: []string{"│ ✓ ", "│ - ", "│ ✗ ", "│ x ", "│ ? "}},
		{is: answerRow, start: []string{"✦ "}},
		{is: userRow, start: []string{" > ", "▄▄▄▄▄▄▄▄"}},
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
