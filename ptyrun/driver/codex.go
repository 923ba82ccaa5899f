package driver

import (
	"regexp"
	"strings"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

// codex is the driver of Codex. While an answer streams it shows no busy line, only a spinner in the title, and without
// animations not even that; but it says outright whether it works.
//
// The bullet of an answer is dim together with the blank behind it. A tool's is not, or the blank is not, and its verb
// is bold.
var codex = Driver{
	Name:       "codex",
	commands:   []string{"codex"},
	npmPackage: "@openai/codex",
	sign:       pattern(`^.*\] Action Required \| |\n *>_ OpenAI Codex \(v|(?s:Trust this folder\? Codex.*\n *Folder access\n|\n *Folder access\n.*Trust this folder\? Codex)`),
	unshared:   "--no-daemon",
	triggers: &triggerStyle{
		escapes: []escaping{{pattern(`\$`), `$$\`, `$\ is a dollar sign`}}, // a skill or app; a backslash before the $ does not help
		others: []*regexp.Regexp{
			pattern(`\[@`), // a plugin, with a link behind it
			pattern(`(?i)\b(?:app|mcp|plugin|skill|thread)://`),
			pattern(`\[(?:Pasted Content|Image) `), // stands for what was pasted before
		},
	},
	others: strings.Fields("agents exec e review login logout mcp plugin app-server remote-control completion update doctor sandbox " +
		"debug apply a queue archive delete unarchive migrate-rollouts migrate-nfs-db cloud exec-server features help"),
	valueFlags: strings.Fields("-c --config --enable --disable --remote-auth-token-env -i --image -m --model --local-provider " +
		"-p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval"),
	titles: []title{
		{pattern(`^\[ [!.] \] Action Required`), reducer.Confirming},
		{pattern(`^[` + spins + `]`), reducer.Thinking},
	},
	declaresAs: "codex",
	box: boxStyle{
		shape:        unframed,
		glyph:        "›",
		text:         2,
		modes:        []gatePhrase{{"! ", control.GateShellMode}},
		placeholders: []string{"Ask Codex to do anything"},
		maxBelow:     4,
		startingFoot: "? for shortcuts",
	},
	foot: []gatePhrase{
		{"esc to interrupt", control.GateBusy},
		{"again to quit", control.GateSameKey}, // "esc again to edit" is over with the first letter
		{"for commands", control.GateHelp},
		{"to quit", control.GateOverlay},
		{"esc to close", control.GateOverlay},
		{"esc close", control.GateHelp},
		{"esc to go back", control.GateOverlay},
		{"to navigate", control.GateMenu},
		{"esc back", control.GateMenu},
	},
	notBox: []string{"enter to confirm", "enter continue", "enter to continue", "codex resume"},
	indent: 2,
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`^(?:• )?\S.*(?:econnecting.*esc to interrupt|esc to interrupt.*econnecting)`)},
		{kind: busyRow, re: pattern(`^(?:[•◦] )?\S.*esc to interrupt\)`)},
		{kind: hintRow, re: pattern(`^• (?:Queued|Messages to be submitted)`), has: isCodexTool},
		{kind: doneRow, re: pattern(`^[ ─] Worked for `), has: isMutedText},
		{kind: noteRow, re: pattern(`^■ Conversation interrupted`)},
		{kind: limitRow, re: pattern(`^■ (?:You['’]ve (?:hit|reached) your |You hit your spend cap|Your workspace is out of credits|Usage limit reached|Quota exceeded)`)},
		{kind: errorRow, re: pattern(`^■ `)},
		{kind: runsRow, re: pattern(`^• (Running|Exploring|Calling|Searching)\b`), has: isCodexTool},
		{kind: toolRow, re: pattern(`^[✔✗] `)},
		{kind: toolRow, re: pattern(`^• `), has: isCodexTool},
		{kind: answerRow, re: pattern(`^• `)},
		{kind: hintRow, re: pattern(`^ *└ Tip: `), has: isMutedTip},
		{kind: userRow, re: pattern(`^› `)},
	},
	dialogs: dialogStyle{
		request: (*Driver).codexRequest,
		verbs:   map[string]string{"Running": "Bash", "Exploring": "Read", "Searching": "WebSearch", "Calling": "MCP"},
		kinds: []phrase{
			{"enter to submit answer", "question"}, {"enter to submit all", "question"}, {"Question ", "question"},
			{"Trust this folder?", "trust"}, {"Do you trust the contents", "trust"}, {"You are in ", "trust"},
			{"Folder access", "trust"}, {"Hooks need review", "trust"},
			{"Would you like to run", "permission"}, {"Would you like to make", "permission"}, {"Would you like to grant", "permission"},
			{"Do you want to approve", "permission"}, {"Would you like to allow", "permission"},
		},
		headings: []phrase{
			{"Would you like to run", "Bash"}, {"Would you like to make", "Edit"},
			{"Do you want to approve network access", "WebFetch"},
		},
	},
}

// isCodexTool reports whether a row with a bullet is not the start of an answer. Without styles the row below tells.
func isCodexTool(l *Look, y int) bool {
	if !l.isStyled() {
		return strings.HasPrefix(l.line(y+1), "  └") && !strings.HasPrefix(l.line(y+1), "  └ Tip: ")
	}
	return !l.cell(0, y).Dim || !l.cell(1, y).Dim || l.firstLetter(2, y).Dim
}

// isMutedTip reports whether the row's mark is grey, as that of a tip below an answer.
func isMutedTip(l *Look, y int) bool { return !l.isStyled() || isMuted(l.cell(margin(l.line(y)), y)) }

// codexRequest reads a dialog of Codex: the reason, then "$ command". The model writes the reason, so if several rows
// start with "$ " it is uncertain where the command starts.
func (d *Driver) codexRequest(l *Look, first, end int) (tool, input string) {
	text := textRows(l, first, end)
	heading, _ := findPrefix(strings.Join(text[:min(3, len(text))], " "), d.dialogs.headings)
	if heading.means != "Bash" {
		return heading.means, strings.Join(text[min(1, len(text)):], "\n")
	}
	start := end
	for y := first; y < end; y++ {
		if strings.HasPrefix(l.line(y), "  $ ") {
			if start < end {
				return "", ""
			}
			start = y
		}
	}
	if start == end {
		return "", ""
	}
	command := strings.TrimPrefix(joinRows(l, start, end, keepAll), "$ ")
	if hiddenLines.MatchString(command) {
		return "", ""
	}
	return "Bash", command
}

// hiddenLines matches the row in place of the end of a long command: "[… 48 lines] ^a view all".
var hiddenLines = regexp.MustCompile(`(?m)^ *\[… \d+ lines?\]`)
