package driver

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

// claude is the driver of Claude Code. During a dialog its title looks idle, and busy while only sub-agents work,
// though it accepts messages then. While there is a draft in its box it does not show "esc to interrupt".
//
// The bullet of an answer has the colour of text; that of a tool is grey while it runs, and coloured afterwards. A line
// about several calls has no bullet and is grey. Errors and warnings are coloured as a whole.
var claude = Driver{
	Name:                     "claude",
	commands:                 []string{"claude", "claude-code"},
	npmPackage:               "@anthropic-ai/claude-code",
	sign:                     pattern(`^[✳` + claudeTurns + `].*Claude Code\n|(?s:Quick safety check:.*Claude Code'll be able to)|WARNING: Claude Code running in Bypass Permissions mode|\n *╭─.*─ Claude Code`),
	titles:                   claudeTitles,
	declaresAs:               "claude-code",
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
		modes:        []gatePhrase{{"! ", control.GateShellMode}, {"# ", control.GateMemoryMode}},
		placeholders: claudePlaceholders,
		maxBelow:     12,
	},
	foot:      claudeGates,
	limitFoot: "⚠ Usage limit reached",
	notBox:    claudeEnds,
	views:     []string{"detailed transcript", "Settings  Status   Config"},
	indent:    2,
	rows: []rowPattern{
		{kind: hintRow, re: pattern(`Press up to edit queued message`)},
		{kind: retryRow, re: pattern(`^[` + claudeSpins + `] .*etrying in`)},
		{kind: retryRow, re: pattern(`^ *⎿.*(?:etrying in.*attempt|attempt.*etrying in)`), has: hasHook},
		{kind: busyRow, re: pattern(`^[` + claudeSpins + `] .*…`)},
		{kind: waitsRow, re: pattern(`^[` + claudeSpins + `] Waiting for .* to finish`)},
		{kind: doneRow, re: pattern(`^[` + claudeSpins + `](?: .*)? for `)},
		{kind: limitRow, re: pattern(`^  ⎿  (?:` + claudeLimits + `)`), has: isHookNotice},
		{kind: errorRow, re: pattern(`^  ⎿  .*(?:` + claudeErrors + `)`), has: isHookNotice},
		{kind: noteRow, re: pattern(`^ *⎿.*Interrupted`), has: hasHook},
		{kind: runsRow, re: pattern(`^ *⎿.*(?:Running|Waiting)…`), has: hasHook},
		{kind: runsRow, re: pattern(`^ *⎿  (\$) `), has: isMutedHook},
		{kind: hintRow, re: pattern(`^ *⎿`), has: hasHook},
		{kind: runsRow, re: pattern(`^ *\(ctrl[+-]b.*to run in background`), has: isMutedRow},
		{kind: limitRow, re: pattern(`^[●⏺] (?:` + claudeLimits + `)`), has: isColouredBullet},
		{kind: errorRow, re: pattern(`^[●⏺] .*(?:` + claudeErrors + `)`), has: isColouredBullet},
		{kind: noteRow, re: pattern(`^[●⏺] `), has: isColouredBullet},
		{kind: hintRow, re: pattern(`^[●⏺] `), has: isMutedBullet},
		{kind: runsRow, re: pattern(`^[●⏺ ] (?:` + claudeTool + `)?\S`), has: isRunningBullet},
		{kind: toolRow, re: pattern(`^[●⏺] (?:` + claudeTool + `)?`), has: isToolBullet},
		{kind: answerRow, re: pattern(`^[●⏺] `)},
		{kind: toolRow, re: pattern(`^  \S`), has: isMutedRow},
		{kind: hintRow, re: pattern(`^ {20,}\S`), has: isMutedRow},
		{kind: userRow, re: pattern(`^[❯>] `)},
	},
	dialogs: dialogStyle{
		headings:     claudeHeadings,
		kinds:        claudeKinds,
		verbs:        map[string]string{"$": "Bash"},
		digitsChoose: true,
		request:      (*Driver).claudeRequest,
	},
	drawsAnswersAsErrors: true,

	spoken: &claudeSpoken,
}

// claudeSpoken is the look for a screen reader. It has no styles, and the rows of an answer are not indented.
var claudeSpoken = Driver{
	Name:       "claude",
	sign:       pattern(`(?m)^(?:you: |claude: |tool: |error: |Permission Required: |\[.*creen [Rr]eader [Mm]ode: on|` + claudeFoot + `)`),
	titles:     claudeTitles,
	declaresAs: "claude-code",
	box: boxStyle{
		shape:        flat,
		glyph:        "$",
		text:         3,
		placeholders: claudePlaceholders,
		above:        pattern(`^(?:` + claudeFoot + `|\p{L}+ for \d+[hms])`),
		maxBelow:     12,
	},
	foot:       claudeGates,
	notBox:     claudeEnds,
	answerMark: "claude:",
	errorMark:  "error:",
	userMark:   "you: ",
	rows: []rowPattern{
		{kind: retryRow, re: pattern(`etrying in .*attempt`)},
		{kind: busyRow, re: pattern(`^\p{L}+…(?:  |$)`)},
		{kind: doneRow, re: pattern(`^\p{L}+ for \d+[hms]`)},
		{kind: limitRow, re: pattern(`^error: (?:` + claudeLimits + `)`)},
		{kind: errorRow, re: pattern(`^error: `)},
		{kind: toolRow, re: pattern(`^tool: (?:` + claudeTool + `)?`)},
		{kind: answerRow, re: pattern(`^claude: `)},
		{kind: userRow, re: pattern(`^you: `)},
	},
	dialogs: dialogStyle{
		kinds: append([]phrase{{"Permission Required", "permission"}, {"Question: ", "question"}, {"☐ ", "question"}}, claudeKinds...),
		// What is the input and what the model's description of it cannot be told, so no rule answers.
		request: func(*Driver, *Look, int, int) (tool, input string) { return "", "" },
	},
	drawsAnswersAsErrors: true,
}

var claudeTitles = []title{{pattern(`^[` + claudeTurns + `]`), reducer.Thinking}, {pattern(`^✳`), reducer.Idle}}

var claudePlaceholders = []string{"Press up to edit queued messages", "Resend your message to try again"}

var claudeGates = []gatePhrase{
	{"esc to interrupt", control.GateBusy},
	{"again to exit", control.GateExitKey},
	{"sc again to ", control.GateSameKey},
	{"! for shell mode", control.GateHelp},
	{"! for bash mode", control.GateHelp},
	{"double tap esc", control.GateHelp},
	{"nter to view", control.GateAgents},
	{"to navigate", control.GateMenu},
	{"to select", control.GateMenu},
	{"detailed transcript", control.GateTranscript},
	{"Esc to cancel", control.GateMenu},
	{"Pasting text", control.GatePaste},
	{"search prompts:", control.GateMenu},
}

// claudeEnds are the last words of the program, and what is below the box of its list of sessions.
var claudeEnds = []string{"claude --resume", "Resume this session", "enter to open", "enter to collapse", "enter to create"}

const (
	claudeTurns = `◐◓◑◒` + spins // in the title during a turn
	claudeSpins = "·✢✳✶✻✽*✺✦"

	// What the program says of itself above the input for a screen reader.
	claudeFoot = `.* mode on(?:$|  )|effort: |● \w+ · /effort|esc to interrupt|\? for shortcuts|[Cc]trl\+\w to |Resend your message`

	// A tool's name before its input.
	claudeTool = `([A-Z][\w:.-]*|[a-z]\w*_[\w:.-]*|[\w:. -]+ - [\w:. -]+?) ?\(`

	// Errors that end a turn, and notices of a usage limit, as the program words them.
	claudeErrors = `API Error|Please run /login|Not logged in|Credit balance|Prompt is too long`
	claudeLimits = `You['’]ve (?:hit|reached) your |You['’]re out of |Your org is out of |Claude (?:AI )?usage limit reached|\d-hour limit reached`
)

// The styles of Claude Code's rows. Without styles only the row below tells a tool from an answer; what nothing tells
// apart counts as an answer, so that none is lost.

// hasHook reports whether the row has the program's own ⎿, which is grey.
func hasHook(l *Look, y int) bool {
	return !l.isStyled() || isMuted(l.cell(margin(l.line(y)), y))
}

// isHookNotice reports whether the row is a coloured notice behind such a mark, and not the output of the tool above.
func isHookNotice(l *Look, y int) bool {
	if !l.isStyled() {
		return strings.HasPrefix(l.line(y-1), "❯ ")
	}
	return hasHook(l, y) && isColoured(l.firstLetter(5, y)) && kindOfBullet(l, y-1) == otherRow
}

// isMutedHook reports whether the whole row is grey: it shows the command that runs, and no output.
func isMutedHook(l *Look, y int) bool {
	return l.isStyled() && hasHook(l, y) && isMuted(l.firstLetter(5, y))
}

func isColouredBullet(l *Look, y int) bool {
	return isColoured(l.cell(0, y)) && l.cell(0, y).Fg == l.firstLetter(2, y).Fg
}

func isMutedBullet(l *Look, y int) bool { return isMuted(l.cell(0, y)) && isMuted(l.firstLetter(2, y)) }

// isRunningBullet reports whether the row is a call that runs. Its bullet blinks.
func isRunningBullet(l *Look, y int) bool { return kindOfBullet(l, y) == runsRow }

// isToolBullet reports whether the row is a call that has ended.
func isToolBullet(l *Look, y int) bool { return kindOfBullet(l, y) == toolRow }

// kindOfBullet returns runsRow or toolRow if the row is a call, else otherRow.
func kindOfBullet(l *Look, y int) rowKind {
	bullet, letter := l.cell(0, y), l.firstLetter(2, y)
	isBlank := blank(bullet.Text)
	hasOutput := strings.HasPrefix(l.line(y+1), "  ⎿")
	switch isBullet := bullet.Text == "●" || bullet.Text == "⏺"; {
	case !isBullet && !isBlank, isBlank && (margin(l.line(y)) != 2 || !hasOutput):
	case !l.isStyled() && hasOutput && !isBlank:
		return toolRow
	case !l.isStyled(), isMuted(letter):
	case isMuted(bullet):
		return runsRow
	case isColoured(bullet):
		return toolRow
	}
	return otherRow
}

// isMutedRow reports whether the row is grey, as one about several calls.
func isMutedRow(l *Look, y int) bool {
	return isMuted(l.firstLetter(0, y)) && !slices.ContainsFunc(l.row(y), func(c screen.Cell) bool { return !blank(c.Text) && isInk(c) })
}

var claudeHeadings = []phrase{
	{"Bash command", "Bash"}, {"Edit file", "Edit"}, {"Create file", "Write"}, {"Overwrite file", "Write"},
	{"Write file", "Write"}, {"Read file", "Read"}, {"Edit notebook", "NotebookEdit"}, {"Fetch", "WebFetch"},
	{"Web search", "WebSearch"}, {"Web Search", "WebSearch"}, {"Search", "Grep"}, {"Use skill", "Skill"},
	{"Tool use", ""}, {"Task", "Agent"},
}

var claudeKinds = []phrase{
	{"Accessing workspace", "trust"}, {"Quick safety check", "trust"}, {"Do you trust the files", "trust"},
	{"Bypass Permissions mode", "trust"}, {"WARNING: Claude Code running in Bypass Permissions mode", "trust"},
	{"MCP server", "trust"}, {"external imports", "trust"}, {"custom API key", "trust"},
	{"Do you want to proceed?", "permission"}, {"Do you want to make this edit", "permission"},
	{"Do you want to create", "permission"}, {"Do you want to overwrite", "permission"},
	{"Do you want to allow", "permission"}, {"Do you want to insert", "permission"},
	{"Do you want to read", "permission"}, {"Do you want to use this tool", "permission"},
	{"Ready to submit your answers?", "question"}, {"Exit plan mode?", "question"}, {"Claude has written up a plan", "question"},
	{"Would you like to proceed?", "question"}, {"Enter to select", "question"}, {"to navigate", "question"},
}

// claudeRequest reads a dialog of Claude Code: a title for the tool, and its input. In versions up to 2.1.2xx the input
// is indented below, before a description in grey; later it is between two rules ╌╌╌, and above them is the description,
// or for a file the path, and perhaps a tip in bold.
func (d *Driver) claudeRequest(l *Look, first, end int) (tool, input string) {
	for blank(l.line(first)) { // the options are below
		first++
	}
	heading := strings.TrimSpace(l.line(first))
	known, ok := findPrefix(heading, d.dialogs.headings)
	if !ok || !l.isStyled() {
		return "", "" // without styles a description may be taken for input
	}
	tool = known.means
	var rules []int
	for y := first + 1; y < end; y++ {
		if strings.HasPrefix(strings.TrimSpace(l.line(y)), "╌╌╌") {
			rules = append(rules, y)
		}
	}
	isFile := tool == "Edit" || tool == "Write" || tool == "NotebookEdit"
	switch {
	case len(rules) >= 2 && isFile:
		input = l.pathBetween(first+1, rules[0])
	case len(rules) >= 2:
		input = joinRows(l, rules[0]+1, rules[len(rules)-1], keepAll)
		if tool == "WebFetch" { // with a prompt, which the model writes
			m := append(fetchCall.FindStringSubmatch(input), "", "")
			input = m[1]
		}
	default:
		input, ok = d.indentedInput(l, tool, first+1, end)
	}
	switch {
	case !ok || input == "":
		return "", ""
	case heading != "Tool use":
		if m := namedCall.FindStringSubmatch(input); m != nil && m[1] == tool && tool != "Bash" {
			input = m[2]
		}
		return tool, input
	}
	m := mcpCall.FindStringSubmatch(input)
	if m == nil {
		return "", ""
	}
	return "mcp__" + m[1] + "__" + m[2], m[3]
}

// pathBetween returns the one row between a title and the rules that is no tip; "": there are more.
func (l *Look) pathBetween(first, end int) (path string) {
	for y := first; y < end; y++ {
		line := l.line(y)
		isTip := l.firstLetter(0, y).Bold
		if blank(line) || isTip {
			continue
		}
		if path != "" || isWrapped(l, y, y+1) {
			return ""
		}
		path = strings.TrimSpace(line)
	}
	return path
}

// indentedInput returns the rows of a tool's input between the title and the question, without those in grey; false:
// something else is there.
func (d *Driver) indentedInput(l *Look, tool string, first, end int) (input string, ok bool) {
	question := end // its row
	for y := end - 1; y >= first && question == end; y-- {
		if line := l.text(y, isStrong); strings.HasPrefix(strings.TrimSpace(line), "Do you want to ") && margin(line) < 2 {
			question = y
		}
	}
	start := question
	for y := first; y < question; y++ {
		line := l.text(y, isStrong)
		isInput := margin(line) >= 2 || tool != "Bash" && tool != ""
		switch {
		case blank(line):
		case isInput:
			start = min(start, y)
		case start < question: // a row that the terminal has wrapped, or something else
			return "", false
		}
	}
	return joinRows(l, start, question, isStrong), true
}

var (
	fetchCall = regexp.MustCompile(`^url: (\S+)\nprompt: `)
	namedCall = regexp.MustCompile(`(?s)^(\w+)\((.*)\)$`)
	mcpCall   = regexp.MustCompile(`(?s)^ *([^(]+?) - ([^(]+?) *\((.*?)\)?( \(MCP\).*)?$`)
)
