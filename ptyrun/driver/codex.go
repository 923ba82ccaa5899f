package driver

import "github.com/agentteammail/atm/reducer"

// codex is Codex. While an answer streams it shows no busy line, only its title turns.
var codex = Driver{
	Name:     "codex",
	commands: []string{"codex"},
	packages: []string{"@openai/codex"},
	titles:   []title{{"[ ! ] Action Required", reducer.Confirming}, {"[ . ] Action Required", reducer.Confirming}, {braille, reducer.Thinking}},
	box: box{
		shape:        unframed,
		glyph:        "›",
		text:         2,
		modes:        []note{{"! ", "bang mode"}},
		placeholders: []string{"Ask Codex to do anything"},
		lacks:        []string{"enter to confirm", "enter continue", "enter to continue", "codex resume"},
		below:        4,
		early:        "? for shortcuts",
	},
	foot: []note{
		{"esc to interrupt", busyFoot},
		{"again to ", "a key was pressed half"},
		{"for commands", "help is open"},
		{"to quit", "an overlay is open"},
		{"esc to close", "an overlay is open"},
		{"esc to go back", "an overlay is open"},
		{"to navigate", "a menu is open"},
		{"esc back", "a menu is open"},
	},
	marks: []mark{
		{is: retryRow, start: []string{"• "}, has: "econnecting", has2: "esc to interrupt"},
		{is: busyRow, start: []string{"• ", "◦ "}, has: "esc to interrupt)"},
		{is: queuedRow, start: []string{"• Queued", "• Messages to be submitted"}},
		{is: doneRow, start: []string{"  Worked for ", "─ Worked for "}},
		{is: noteRow, start: []string{"■ Conversation interrupted"}},
		{is: errorRow, start: []string{"■ "}},
		{is: runsRow, start: []string{"• Running ", "• Exploring", "• Calling ", "• Searching"}},
		{is: toolRow, start: []string{
			"• Ran ", "• Explored", "• Called ", "• Edited ", "• Added ", "• Deleted ", "• Searched",
			"• Updated Plan", "✔ ", "✗ ",
		}},
		{is: answerRow, start: []string{"• "}},
		{is: userRow, start: []string{"› "}},
	},
	asks: asks{
		verbs: []note{{"Running ", "Bash"}, {"Exploring", "Read"}, {"Searching", "WebSearch"}, {"Calling ", "MCP"}},
		kinds: []note{
			{"enter to submit answer", "question"}, {"enter to submit all", "question"},
			{"Trust this folder?", "trust"}, {"Do you trust the contents", "trust"}, {"You are in ", "trust"},
			{"Folder access", "trust"}, {"Hooks need review", "trust"},
			{"Would you like to run the following command?", "permission"},
			{"Would you like to make the following edits?", "permission"}, {"Would you like to grant", "permission"},
			{"Do you want to approve", "permission"}, {"Would you like to allow", "permission"},
		},
		headings: []note{
			{"Would you like to run the following command?", "Bash"},
			{"Would you like to make the following edits?", "Edit"},
			{"Do you want to approve network access", "WebFetch"},
		},
	},
}
