package driver

import (
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// claude is the driver of Claude Code. During a dialog its title looks idle, and busy while only sub-agents work,
// though it accepts messages then. While there is a draft in its box it does not show "esc to interrupt".
var claude = Driver{
	Name:                     "claude",
	commands:                 []string{"claude", "claude-code"},
	npmPackage:               "@anthropic-ai/claude-code",
	sign:                     pattern(`^[✳` + spins + `].*Claude Code\n|(?s:Quick safety check:.*Claude Code'll be able to)|\n *╭─.*─ Claude Code`),
	titles:                   []title{{pattern(`^[` + spins + `]`), reducer.Thinking}, {pattern(`^✳`), reducer.Idle}},
	ForgetsInterruptedPrompt: true,
	triggers: &triggerStyle{
		escapes: []escaping{
			{pattern(`@`), `\@`, `\@ is an at sign`},                         // a file, directory, resource, agent or session
			{pattern(`(^|[^0-9A-Za-z_.~:<*@/-])/`), `$1\/`, `\/ is a slash`}, // a skill, at the start of a word
		},
		others: []*regexp.Regexp{
			// A pasted line that is the path of an image attaches it, or part of a line up to another path.
			pattern(`(?im)\.(?:png|jpe?g|gif|webp)["']?\s*(?:$|["']?(?:/|[a-z]:))`),
			pattern(`(?i)ultra(?:think|code|plan|review)`),
			pattern(`\[(?:Pasted text|Image|\.\.\.Truncated text) #`), // stands for what was pasted before
		},
	},
	box: boxStyle{
		shape:        ruled,
		glyph:        "❯",
		text:         2,
		modes:        []phrase{{"! ", "bang mode"}, {"# ", "memory mode"}},
		placeholders: []string{"Press up to edit queued messages"},
		maxBelow:     12,
	},
	foot: []phrase{
		{"esc to interrupt", busyFoot},
		{"again to exit", "another Ctrl-C would end it"},
		{"sc again to ", "it waits for the same key again"},
		{"! for shell mode", "help is open"},
		{"! for bash mode", "help is open"},
		{"double tap esc", "help is open"},
		{"nter to view", "the list of agents is open"},
		{"to navigate", "a menu is open"},
		{"to select", "a menu is open"},
		{"detailed transcript", "the transcript is open"},
		{"Esc to cancel", "a menu is open"},
		{"Pasting text", "a paste is in progress"},
		{"claude --resume", notBox}, {"Resume this session", notBox},
		{"enter to open", notBox}, {"enter to collapse", notBox}, {"enter to create", notBox},
	},
	rows: []rowPattern{
		{kind: hintRow, re: pattern(`Press up to edit queued message`)},
		{kind: retryRow, re: pattern(`^[` + claudeSpins + `] .*etrying in`)},
		{kind: retryRow, re: pattern(`^ *⎿.*(?:etrying in.*attempt|attempt.*etrying in)`)},
		{kind: busyRow, re: pattern(`^[` + claudeSpins + `] .*…`)},
		{kind: waitsRow, re: pattern(`^[` + claudeSpins + `] Waiting for .* to finish`)},
		{kind: doneRow, re: pattern(`^[` + claudeSpins + `](?: .*)? for `)},
		{kind: errorRow, re: pattern(`^ *(?:[●⏺] |⎿).*(?:limit reached|hit your.*limit|limit.*hit your)`)},
		{kind: errorRow, re: pattern(`^ *(?:[●⏺] |⎿).*(?:API Error|Please run /login)`)},
		{kind: noteRow, re: pattern(`^ *⎿.*Interrupted`)},
		{kind: runsRow, re: pattern(`^ *⎿.*(?:Running|Waiting)…`)},
		{kind: hintRow, re: pattern(`^ *⎿`)},
		{kind: runsRow, re: pattern(`^ *\(ctrl[+-]b.*to run in background`)},
		{kind: toolRow, re: pattern(`^[●⏺] ([A-Z][\w:.-]*|[a-z]\w*_[\w:.-]*|[\w:. -]+ - [\w:. -]+?) ?\(`)},
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
			{"Ready to submit your answers?", "question"}, {"Exit plan mode?", "question"}, {"Claude has written up a plan", "question"},
			{"Would you like to proceed?", "question"}, {"Enter to select", "question"}, {"to navigate", "question"},
		},
		digitsChoose: true,
		request:      (*Driver).claudeRequest,
	},
}

const claudeSpins = "·✢✳✶✻✽*✺✦"

// claudeRequest reads a dialog of Claude Code: a title for the tool, its input indented below, a description in grey,
// then the question.
func (d *Driver) claudeRequest(l *Look, first, end int) (tool, input string) {
	for blank(l.line(first)) { // the options are below
		first++
	}
	heading := strings.TrimSpace(l.line(first))
	known, ok := findPrefix(heading, d.dialogs.headings)
	if !ok {
		return "", ""
	}
	tool = known.means
	question := end // its row
	for y := end - 1; y > first && question == end; y-- {
		if line := l.text(y, isStrong); strings.HasPrefix(strings.TrimSpace(line), "Do you want to ") && margin(line) < 2 {
			question = y
		}
	}
	start, y := question, first+1
	for ; y < question; y++ {
		line := l.text(y, isStrong)
		if strings.HasPrefix(strings.TrimSpace(line), "╌╌╌") {
			break
		}
		isInput := margin(line) >= 2 || tool != "Bash" && tool != ""
		switch {
		case blank(line):
		case isInput:
			start = min(start, y)
		case start < question: // a row that the terminal has wrapped, or something else
			return "", ""
		}
	}
	input = joinRows(l, start, y, isStrong)
	if heading != "Tool use" {
		return tool, input
	}
	m := mcpCall.FindStringSubmatch(input)
	if m == nil {
		return "", ""
	}
	return "mcp__" + m[1] + "__" + m[2], m[3]
}

var mcpCall = regexp.MustCompile(`(?s)^ *([^(]+?) - ([^(]+?) *\((.*?)\)?( \(MCP\).*)?$`)
