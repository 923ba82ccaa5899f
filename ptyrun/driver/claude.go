package driver

import "github.com/agentteammail/atm/reducer"

// claude is the driver of Claude Code. During a dialog its title looks idle. While there is a draft in its box it does
// not show "esc to interrupt".
var claude = Driver{
	Name:     "claude",
	commands: []string{"claude", "claude-code"},
	packages: []string{"@anthropic-ai/claude-code"},
	titles:   []title{{pattern(`^[` + spins + `]`), reducer.Thinking}, {pattern(`^✳`), reducer.Idle}},
	Undoes:   true,
	box: boxStyle{
		shape:        ruled,
		glyph:        "❯",
		text:         2,
		modes:        []phrase{{"! ", "bang mode"}, {"# ", "memory mode"}},
		placeholders: []string{"Press up to edit queued messages"},
		excludes:     []string{"claude --resume", "Resume this session"},
		maxBelow:     12,
	},
	foot: []phrase{
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
	rows: []rowPattern{
		{kind: queuedRow, re: pattern(`Press up to edit queued message`)},
		{kind: retryRow, re: pattern(`^[` + claudeSpins + `] .*etrying in`)},
		{kind: retryRow, re: pattern(`^ *⎿.*(?:etrying in.*attempt|attempt.*etrying in)`)},
		{kind: busyRow, re: pattern(`^[` + claudeSpins + `] .*…`)},
		{kind: doneRow, re: pattern(`^[` + claudeSpins + `](?: .*)? for `)},
		{kind: errorRow, re: pattern(`^ *(?:[●⏺] |⎿).*(?:limit reached|hit your.*limit|limit.*hit your)`)},
		{kind: errorRow, re: pattern(`^ *(?:[●⏺] |⎿).*(?:API Error|Please run /login)`)},
		{kind: noteRow, re: pattern(`^ *⎿.*Interrupted`)},
		{kind: runsRow, re: pattern(`^ *⎿.*(?:Running|Waiting)…`)},
		{kind: runsRow, re: pattern(`^ *\(ctrl[+-]b.*to run in background`)},
		{kind: toolRow, re: pattern(`^[●⏺] `), isCall: true},
		{kind: answerRow, re: pattern(`^[●⏺] `)},
		{kind: userRow, re: pattern(`^[❯>] `)},
	},
	dialogs: dialogStyle{
		headings: []phrase{
			{"Bash command", "Bash"}, {"Edit file", "Edit"}, {"Create file", "Write"}, {"Overwrite file", "Write"},
			{"Write file", "Write"}, {"Read file", "Read"}, {"Edit notebook", "NotebookEdit"}, {"Fetch", "WebFetch"},
			{"Web search", "WebSearch"}, {"Web Search", "WebSearch"}, {"Search", "Grep"}, {"Use skill", "Skill"},
			{"Tool use", ""}, {"Task", "Agent"},
		},
		kinds: []phrase{
			{"Accessing workspace", "trust"}, {"Quick safety check", "trust"}, {"Do you trust the files", "trust"},
			{"Bypass Permissions mode", "trust"}, {"MCP server", "trust"}, {"external imports", "trust"},
			{"custom API key", "trust"},
			{"Do you want to proceed?", "permission"}, {"Do you want to make this edit", "permission"},
			{"Do you want to create", "permission"}, {"Do you want to overwrite", "permission"},
			{"Do you want to allow", "permission"}, {"Do you want to insert", "permission"},
			{"Do you want to read", "permission"}, {"Do you want to use this tool", "permission"},
			{"Would you like to proceed?", "question"}, {"Enter to select", "question"}, {"to navigate", "question"},
		},
		digitsChoose: true,
	},
}

const claudeSpins = "·✢✳✶✻✽*✺✦"
