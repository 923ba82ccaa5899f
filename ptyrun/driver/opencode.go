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
		{is: retryRow, on: pattern(`\[retrying`)},
		{is: doneRow, on: pattern(`^ *▣(?: .*)? · .* · `)},
		{is: runsRow, on: pattern(`^ *(?:┃  [` + spins + `]|~) `)},
		{is: toolRow, on: pattern(`^     [$→←✱%⚙◈] `)},
		{is: userRow, on: pattern(`^  ┃  `)},
		{is: answerRow, on: pattern(`^     [^▣]*$`)},
	},
	asks: asks{headings: []note{
		{"→ Edit ", "Edit"}, {"← Edit ", "Edit"}, {"← Write ", "Write"}, {"→ Write ", "Write"}, {"→ Read ", "Read"},
		{"→ List ", "LS"}, {"% WebFetch ", "WebFetch"}, {"✱ Glob ", "Glob"}, {"✱ Grep ", "Grep"},
		{"◈ ", "WebSearch"},
	}},
}
