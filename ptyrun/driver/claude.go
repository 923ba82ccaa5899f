package driver

import "github.com/agentteammail/atm/reducer"

// claude is Claude Code. While it asks, its title is the idle one; while a person's draft stands in its
// box, it does not say "esc to interrupt".
var claude = Driver{
	Name:     "claude",
	commands: []string{"claude", "claude-code"},
	packages: []string{"@anthropic-ai/claude-code"},
	titles:   []title{{pattern(`^[` + spins + `]`), reducer.Thinking}, {pattern(`^✳`), reducer.Idle}},
	Undoes:   true,
	box: box{
		shape:        ruled,
		glyph:        "❯",
		text:         2,
		modes:        []note{{"! ", "bang mode"}, {"# ", "memory mode"}},
		placeholders: []string{"Press up to edit queued messages"},
		lacks:        []string{"claude --resume", "Resume this session"},
		below:        12,
	},
	foot: []note{
		{"esc to interrupt", busyFoot},
		{"again to exit", "one more Ctrl-C would end it"},
		{"sc again to ", "a key was pressed half"},
		{"! for shell mode", "help is open"},
		{"! for bash mode", "help is open"},
		{"double tap esc", "help is open"},
		{"nter to view", "the list of agents is open"},
		{"to navigate", "a menu is open"},
		{"to select", "a menu is open"},
		{"detailed transcript", "the transcript is open"},
		{"Esc to cancel", "a menu is open"},
		{"Pasting text", "a paste is under way"},
	},
	marks: []mark{
		{is: queuedRow, on: pattern(`Press up to edit queued message`)},
		{is: retryRow, on: pattern(`^[` + claudeSpins + `] .*etrying in`)},
		{is: retryRow, on: pattern(`^ *⎿.*(?:etrying in.*attempt|attempt.*etrying in)`)},
		{is: busyRow, on: pattern(`^[` + claudeSpins + `] .*…`)},
		{is: doneRow, on: pattern(`^[` + claudeSpins + `](?: .*)? for `)},
		{is: errorRow, on: pattern(`^ *(?:[●⏺] |⎿).*(?:limit reached|hit your.*limit|limit.*hit your)`)},
		{is: errorRow, on: pattern(`^ *(?:[●⏺] |⎿).*(?:API Error|Please run /login)`)},
		{is: noteRow, on: pattern(`^ *⎿.*Interrupted`)},
		{is: runsRow, on: pattern(`^ *⎿.*(?:Running|Waiting)…`)},
		{is: runsRow, on: pattern(`^ *\(ctrl[+-]b.*to run in background`)},
		{is: toolRow, on: pattern(`^[●⏺] `), call: true},
		{is: answerRow, on: pattern(`^[●⏺] `)},
		{is: userRow, on: pattern(`^[❯>] `)},
	},
	asks: asks{
		headings: []note{
			{"Bash command", "Bash"}, {"Edit file", "Edit"}, {"Create file", "Write"}, {"Overwrite file", "Write"},
			{"Write file", "Write"}, {"Read file", "Read"}, {"Edit notebook", "NotebookEdit"}, {"Fetch", "WebFetch"},
			{"Web search", "WebSearch"}, {"Web Search", "WebSearch"}, {"Search", "Grep"}, {"Use skill", "Skill"},
			{"Tool use", ""}, {"Task", "Agent"},
		},
		kinds: []note{
			{"Accessing workspace", "trust"}, {"Quick safety check", "trust"}, {"Do you trust the files", "trust"},
			{"Bypass Permissions mode", "trust"}, {"MCP server", "trust"}, {"external imports", "trust"},
			{"custom API key", "trust"},
			{"Do you want to proceed?", "permission"}, {"Do you want to make this edit", "permission"},
			{"Do you want to create", "permission"}, {"Do you want to overwrite", "permission"},
			{"Do you want to allow", "permission"}, {"Do you want to insert", "permission"},
			{"Do you want to read", "permission"}, {"Do you want to use this tool", "permission"},
			{"Would you like to proceed?", "question"}, {"Enter to select", "question"}, {"to navigate", "question"},
		},
		digits: true,
	},
}

const claudeSpins = "·✢✳✶✻✽*✺✦"
