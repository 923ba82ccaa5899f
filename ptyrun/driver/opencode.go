package driver

// opencode is the driver of opencode. Its title shows no state, and an interrupt takes two Escapes.
var opencode = Driver{
	Name:      "opencode",
	commands:  []string{"opencode"},
	packages:  []string{"opencode-ai"},
	interrupt: "\x1b\x1b",
	box: boxStyle{
		shape:        barred,
		text:         3,
		tailRows:     2,
		placeholders: []string{"Ask anything…", "Ask anything..."},
		maxBelow:     8,
	},
	foot: []phrase{
		{"esc interrupt", busyFoot},
		{"esc again to interrupt", busyFoot},
		{"⬝", busyFoot},
		{"■", busyFoot},
		{"exit shell mode", "bang mode"},
	},
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`\[retrying`)},
		{kind: doneRow, re: pattern(`^ *▣(?: .*)? · .* · `)},
		{kind: runsRow, re: pattern(`^ *(?:┃  [` + spins + `]|~) `)},
		{kind: toolRow, re: pattern(`^     [$→←✱%⚙◈] `)},
		{kind: userRow, re: pattern(`^  ┃  `)},
		{kind: answerRow, re: pattern(`^     [^▣]*$`)},
	},
	dialogs: dialogStyle{headings: []phrase{
		{"→ Edit ", "Edit"}, {"← Edit ", "Edit"}, {"← Write ", "Write"}, {"→ Write ", "Write"}, {"→ Read ", "Read"},
		{"→ List ", "LS"}, {"% WebFetch ", "WebFetch"}, {"✱ Glob ", "Glob"}, {"✱ Grep ", "Grep"},
		{"◈ ", "WebSearch"},
	}},
}
