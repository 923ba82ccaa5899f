package driver

import "github.com/agentteammail/atm/reducer"

// codex is Codex. While an answer streams it shows no busy line, only its title turns.
var codex = Driver{
	Name:     "codex",
	commands: []string{"codex"},
	packages: []string{"@openai/codex"},
	titles: []title{
		{pattern(`^\[ [!.] \] Action Required`), reducer.Confirming},
		{pattern(`^[` + spins + `]`), reducer.Thinking},
	},
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
		{is: retryRow, on: pattern(`^• .*(?:econnecting.*esc to interrupt|esc to interrupt.*econnecting)`)},
		{is: busyRow, on: pattern(`^[•◦] .*esc to interrupt\)`)},
		{is: queuedRow, on: pattern(`^• (?:Queued|Messages to be submitted)`)},
		{is: doneRow, on: pattern(`^[ ─] Worked for `)},
		{is: noteRow, on: pattern(`^■ Conversation interrupted`)},
		{is: errorRow, on: pattern(`^■ `)},
		{is: runsRow, on: pattern(`^• (?:Running |Exploring|Calling |Searching)`)},
		{is: toolRow, on: pattern(`^(?:[✔✗] |• (?:(?:Ran|Called|Edited|Added|Deleted) |Explored|Searched|Updated Plan))`)},
		{is: answerRow, on: pattern(`^• `)},
		{is: userRow, on: pattern(`^› `)},
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
