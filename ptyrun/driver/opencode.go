package driver

// opencode is opencode. Its title tells nothing; it takes two Escapes.
var opencode = Driver{
	Name:      "opencode",
	commands:  []string{"opencode"},
	packages:  []string{"opencode-ai"},
	interrupt: "\x1b\x1b",
	box: box{
		shape:        barred,
		text:         3,
		tail:         2,
		placeholders: []string{"Ask anything…", "Ask anything..."},
		below:        8,
	},
	foot: []note{
		{"esc interrupt", busyFoot},
		{"esc again to interrupt", busyFoot},
		{"⬝", busyFoot},
		{"■", busyFoot},
		{"exit shell mode", "bang mode"},
	},
	marks: []mark{
		{is: retryRow, has: "[retrying"},
		{is: doneRow, trim: true, start: []string{"▣ "}, twice: " · "},
		{is: runsRow, trim: true, start: []string{"┃  "}, braille: true},
		{is: runsRow, trim: true, start: []string{"~ "}},
		{is: toolRow, start: []string{"     $ ", "     → ", "     ← ", "     ✱ ", "     % ", "     ⚙ ", "     ◈ "}},
		{is: userRow, start: []string{"  ┃  "}},
		{is: answerRow, start: []string{"     "}, lacks: "▣"},
	},
	asks: asks{headings: []note{
		{"→ Edit ", "Edit"}, {"← Edit ", "Edit"}, {"← Write ", "Write"}, {"→ Write ", "Write"}, {"→ Read ", "Read"},
		{"→ List ", "LS"}, {"% WebFetch ", "WebFetch"}, {"✱ Glob ", "Glob"}, {"✱ Grep ", "Grep"},
		{"◈ ", "WebSearch"},
	}},
}
