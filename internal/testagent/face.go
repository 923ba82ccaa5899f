package testagent

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// face is what tells one agent from another: how it takes input, and what it shows. Its rows are
// templates, see block; the exact screens of the real programs are in the tests of the drivers.
type face struct {
	isFull bool // it draws on the alternate screen

	swallow      time.Duration // a Return so soon after text is a line break
	pasted       string        // how a long paste is shown; "": as it is
	pasteLines   int           // so many line breaks, or
	pasteChars   int           // more characters than this make it long
	steers       bool          // Return during a turn goes into the turn; else it waits
	again        string        // what the foot says after an Escape; "": one interrupts
	restores     bool          // a prompt that was interrupted before any answer, and what waited, comes back
	digitsSelect bool          // a digit only selects in its dialogs

	idle, busy, asks string // titles
	selector         string // before the option that Return would choose
	placeholder      string // in the empty box
	foot, busyFoot   string

	banner, asked, answer, ran, failed, stopped, denied, ended []string // in the transcript

	// Below the transcript: a tool that waits for its permission, a turn, a message that waits, and the box.
	waiting, working, queued, box []string

	permission, question, trust prompt
}

// prompt is what stands in place of the box until it is answered.
type prompt struct {
	rows    []string
	options []option
}

// option is one answer: what the log calls it, and the keys that choose it at once, by name.
type option struct{ id, label, keys string }

func (o option) denies() bool { return o.id == "no" || o.id == "exit" || o.id == "cancel" }

const (
	dim     = "\x1b[2m"
	inverse = "\x1b[7m"
	reset   = "\x1b[0m"
)

var faces = map[string]*face{
	"claude": { // Claude Code 2.1.197
		pasted: "[Pasted text #{n} +{lines} lines]", pasteLines: 3, pasteChars: 800,
		restores: true,
		idle:     "✳ Claude Code", busy: "{braille} Claude Code", asks: "✳ Claude Code", // it looks idle in a dialog
		selector: "❯ ", foot: "? for shortcuts · ← for agents", busyFoot: "esc to interrupt · ← for agents",
		banner:  []string{"✻ Claude Code v2.1.197", "  {cwd}", ""},
		asked:   []string{"", "❯ {text}"},
		answer:  []string{"", "● {text}"},
		ran:     []string{"", "● Bash({text})", "  ⎿  (No output)"},
		failed:  []string{"", "● API Error: Unable to connect to API (ConnectionRefused)"},
		stopped: []string{"  ⎿  Interrupted · What should Claude do instead?"},
		denied:  []string{"", "● Bash({text})", "  ⎿  Interrupted · What should Claude do instead?"},
		ended:   []string{"", "✻ Crunched for {took}"},
		waiting: []string{"", "● Bash({text})", "  ⎿  Waiting…"},
		working: []string{"", "{star} Brewing… ({took} · ↓ 25 tokens)"},
		queued:  []string{"  ❯ {text}"},
		box:     []string{"", "{─}", "❯ {draft}", "{─}", "  {foot}"},
		permission: prompt{
			[]string{"", "{─}", " Bash command", "", "   {text}", "", " Do you want to proceed?", " {list}", "", " Esc to cancel · Tab to amend · ctrl+e to explain"},
			[]option{{"yes", "Yes", "1 y"}, {"always", "Yes, and always allow access to {dir}/ from this project", "2"}, {"no", "No", "3 esc n"}},
		},
		question: prompt{
			[]string{"", "{─}", " ☐ Approach ", "", "{text}", "", "{list}", "", "Enter to select · ↑/↓ to navigate · Esc to cancel"},
			[]option{{"first", "Small steps", "1"}, {"second", "All at once", "2"}, {"other", "Type something.", "3"}, {"cancel", "Chat about this", "4 esc"}},
		},
		trust: prompt{
			[]string{"{─}", " Accessing workspace:", "", " {text}", "", " Quick safety check: Is this a project you created or one you trust?", "", " Claude Code'll be able to read, edit, and execute files here.", "", " {list}", "", " Enter to confirm · Esc to cancel"},
			[]option{{"trust", "Yes, I trust this folder", "1 y"}, {"exit", "No, exit", "2 esc n"}},
		},
	},

	"codex": { // Codex 0.169.0
		isFull: true, swallow: 50 * time.Millisecond,
		pasted: "[Pasted Content {chars} chars]", pasteLines: 1 << 30, pasteChars: 1000,
		steers: true,
		idle:   "{dir}", busy: "{braille} {dir}", asks: "[ ! ] Action Required | {dir}",
		selector: "› ", placeholder: "Ask Codex to do anything", foot: "← for agents · ? for shortcuts",
		banner:  []string{"", "  >_ OpenAI Codex (v0.169.0)", "     {cwd}", ""},
		asked:   []string{"", "› {text}", ""},
		answer:  []string{"", "• {text}"},
		ran:     []string{"", "• Ran {text}", "  └ (no output)"},
		failed:  []string{"", "■ unexpected status 500 Internal Server Error"},
		stopped: []string{"", "■ Conversation interrupted - use /feedback if something went wrong"},
		denied:  []string{"", "✗ You canceled the request to run {text}", "", "■ Conversation interrupted - tell the model what to do differently."},
		ended:   []string{"", "  Worked for {took} • 06:55"},
		waiting: []string{"", "• Running {text}", ""},
		working: []string{"• Working ({took} • esc to interrupt)"},
		box:     []string{"", "› {draft}", "", "  fake-model default · {cwd}", "  {foot}"},
		permission: prompt{
			[]string{"", "  Would you like to run the following command?", "", "  Reason: Need to make a file", "", "  $ {text}", "", "{list}", "", "  Press enter to confirm or esc to cancel"},
			[]option{{"yes", "Yes, proceed (y)", "y 1"}, {"always", "Yes, and don't ask again for commands that start with `{text}` (p)", "p 2"}, {"no", "No, and tell Codex what to do differently (esc)", "esc n 3"}},
		},
		question: prompt{
			[]string{"", "  Question 1/1 (1 unanswered)", "  {text}", "", "{list}", "", "  tab to add notes | enter to submit answer | esc to interrupt"},
			[]option{{"first", "Small steps", "1"}, {"second", "All at once", "2"}, {"cancel", "None of the above", "3 esc"}},
		},
		trust: prompt{
			[]string{"", "  Folder access", "  {text}", "", "  Trust this folder? Codex can read, edit, and run files here.", "", "{list}", "", "  enter continue · esc back"},
			[]option{{"trust", "Trust and continue", "1"}, {"exit", "Back to Agent Command Center", "2 esc"}},
		},
	},

	"gemini": { // Gemini CLI 0.61.0
		swallow: 50 * time.Millisecond, digitsSelect: true,
		idle: "◇  Ready ({dir})", busy: "✦  Working… ({dir})", asks: "✋  Action Required ({dir})",
		selector: "● ", placeholder: "  Type your message or @path/to/file", foot: "? for shortcuts",
		banner:  []string{"", " ▝▜▄     Gemini CLI v0.61.0", "", "Tips for getting started:", "/help for more information"},
		asked:   []string{"{▄}", " > {text}", "{▀}"},
		answer:  []string{"", "✦ {text}"},
		ran:     []string{"╭{─}", "│ ✓  Shell {text}", "╰{─}"},
		failed:  []string{"", "✕ [API Error: got status: UNAVAILABLE]"},
		stopped: []string{"", "ℹ Request cancelled."},
		denied:  []string{"╭{─}", "│ -  Shell {text}", "╰{─}", "", "ℹ Request cancelled."},
		working: []string{"", " {braille} Thinking... (esc to cancel, {took})"},
		queued:  []string{"", "  Queued (press ↑ to edit):", "    {text}"},
		box:     []string{"", "  {foot}", "{▄}", " > {draft}", "{▀}", " workspace (/directory)", " {cwd}"},
		permission: prompt{
			[]string{"", "╭{─}", "│ ? Shell  {text}", "│ ╭{─}", "│ │ {text}", "│ ╰{─}", "│ Allow execution of [Shell]?", "│", "│ {list}", "╰{─}"},
			[]option{{"yes", "Allow once", ""}, {"always", "Allow for this session", ""}, {"no", "No, suggest changes (esc)", "esc"}},
		},
		question: prompt{
			[]string{"", "╭{─}", "│ A potential loop was detected", "│", "│ {list}", "╰{─}"},
			[]option{{"keep", "Keep loop detection enabled (esc)", "esc"}, {"disable", "Disable loop detection for this session", ""}},
		},
		trust: prompt{
			[]string{"", "╭{─}", "│ Do you trust the files in this folder?", "│", "│ {list}", "╰{─}"},
			[]option{{"trust", "Trust folder (here)", ""}, {"parent", "Trust parent folder", ""}, {"exit", "Don't trust", "esc"}},
		},
	},

	"opencode": { // opencode 1.18.33
		isFull: true, pasted: "[Pasted ~{lines} lines]", pasteLines: 3, pasteChars: 150,
		again: "⬝⬝■■  esc again to interrupt",
		idle:  "OpenCode", busy: "OpenCode", asks: "OpenCode", // its title says nothing
		placeholder: `Ask anything… "Fix broken tests"`, foot: "tab agents  ctrl+p commands", busyFoot: "■■⬝⬝  esc interrupt",
		asked:   []string{"", "  ┃", "  ┃  {text}", "  ┃"},
		answer:  []string{"", "     {text}"},
		ran:     []string{"", "     $ {text}"},
		failed:  []string{"", "  ┃  Internal Server Error"},
		stopped: []string{"", "     ▣  Build · Fake · interrupted"},
		denied:  []string{"", "     $ {text}", "", "     ▣  Build · Fake · {took}"},
		ended:   []string{"", "     ▣  Build · Fake · {took}"},
		waiting: []string{"", "     $ {text}"},
		working: []string{"", "     ▣  Build · Fake"},
		queued:  []string{"", "  ┃", "  ┃  {text}", "  ┃   QUEUED"},
		box:     []string{"", "  ┃", "  ┃  {draft}", "  ┃", "  ┃  Build · Fake", "  ╹{▀}", "   {foot}"},
		permission: prompt{
			[]string{"", "  ┃", "  ┃  △ Permission required", "  ┃    # Shell command", "  ┃", "  ┃  $ {text}", "  ┃", "  ┃  {buttons}  ⇆ select  enter confirm", "  ┃", ""},
			[]option{{"yes", "Allow once", ""}, {"always", "Allow always", ""}, {"no", "Reject", "esc"}},
		},
		question: opencodeAsks,
		trust:    opencodeAsks, // it has no other
	},
}

var opencodeAsks = prompt{
	[]string{"", "  ┃", "  ┃  {text}", "  ┃", "  ┃  {list}", "  ┃", "  ┃  ↑↓ select  enter submit  esc dismiss", "  ┃", ""},
	[]option{{"first", "Small steps", "1"}, {"second", "All at once", "2"}, {"cancel", "Type your own answer", "3 esc"}},
}

// block is rows and what stands in them for {text}, {draft} and {took}. {─}, {▄} and {▀} fill a row;
// {list} and {buttons} are the options of the dialog.
type block struct {
	rows []string
	text string
	took string
}

// draw is a block as it is shown now. A row whose text is broken begins like the first one, with blanks
// for all but its frame.
func (a *agent) draw(b block) (lines []string) {
	for _, row := range b.rows {
		before, after, isText := strings.Cut(strings.ReplaceAll(row, "{draft}", "{text}"), "{text}")
		before, after = a.fill(before, b), a.fill(after, b)
		if indent, _, ok := strings.Cut(row, "{list}"); ok {
			for _, option := range a.list() {
				lines = append(lines, indent+option)
			}
			continue
		}
		if !isText {
			lines = append(lines, before)
			continue
		}
		for _, line := range strings.Split(ansi.Wrap(b.text, max(a.cols-ansi.StringWidth(before)-2, 1), ""), "\n") {
			lines = append(lines, before+line)
			before = strings.Map(func(r rune) rune {
				if r == '┃' || r == '│' {
					return r
				}
				return ' '
			}, before)
		}
		lines[len(lines)-1] += after
	}
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, a.cols, "")
	}
	return lines
}

// fill puts in all but texts.
func (a *agent) fill(row string, b block) string {
	cycle := func(glyphs string) string { return string([]rune(glyphs)[a.spin%len([]rune(glyphs))]) }
	return strings.NewReplacer(
		"{─}", strings.Repeat("─", a.cols), "{▄}", strings.Repeat("▄", a.cols), "{▀}", strings.Repeat("▀", a.cols),
		"{cwd}", a.cwd, "{dir}", a.dir, "{took}", b.took, "{foot}", a.footer(), "{buttons}", a.buttons(),
		"{braille}", cycle("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"), "{star}", cycle("·✢✳✶✻✽"),
	).Replace(row)
}

func (a *agent) footer() string {
	switch {
	case a.hint != "":
		return a.hint
	case a.turn != nil:
		return a.busyFoot
	case a.draft == "":
		return a.foot
	}
	return ""
}

func (a *agent) list() (lines []string) {
	for i, o := range a.dialog.options {
		mark := a.selector
		if i != a.dialog.selected {
			mark = strings.Repeat(" ", ansi.StringWidth(mark))
		}
		label := strings.ReplaceAll(a.fill(o.label, block{}), "{text}", a.dialog.about)
		lines = append(lines, mark+strconv.Itoa(i+1)+". "+label)
	}
	return lines
}

// buttons are the options side by side, the selected one on another ground.
func (a *agent) buttons() (row string) {
	if a.dialog == nil {
		return ""
	}
	for i, o := range a.dialog.options {
		if i == a.dialog.selected {
			row += inverse + " " + o.label + " " + reset + " "
		} else {
			row += " " + o.label + "  "
		}
	}
	return row
}

// frame is what changes on the screen: on the alternate screen all of it, on the main one what stands
// below the transcript.
func (a *agent) frame() (f frame) {
	var low []string
	t := a.turn
	add := func(rows []string, text string) { low = append(low, a.draw(block{rows, text, t.took()})...) }
	if t != nil && t.tool != "" {
		add(a.waiting, t.tool)
	}
	if a.dialog != nil {
		add(a.dialog.rows, a.dialog.about)
	} else {
		if t != nil && (!a.isFull || t.saying == "") { // Codex has no busy line while it answers
			add(a.working, "")
		}
		for _, q := range a.queue {
			add(a.queued, q)
		}
		for _, row := range a.box {
			add([]string{row}, a.draft)
			if !strings.Contains(row, "{draft}") {
				continue
			}
			f.y = len(low) - 1
			f.x, f.cursor = ansi.StringWidth(low[f.y]), a.isFull
			if a.draft == "" {
				low[f.y] += dim + a.placeholder
			}
		}
	}
	above := a.draw(a.pending)
	if t != nil && t.saying != "" {
		above = append(above, a.draw(block{a.answer, t.said(), ""})...)
	}
	if a.isFull {
		var all []string
		for _, b := range a.transcript[max(len(a.transcript)-a.rows, 0):] {
			all = append(all, a.draw(b)...)
		}
		above = append(all, above...)
		room := max(a.rows-len(low), 0)
		above = append(above[max(len(above)-room, 0):], make([]string, max(room-len(above), 0))...)
	}
	f.y += len(above)
	f.lines = append(above, low...)
	return f
}
