package testagent

import (
	"fmt"
	"time"

	"github.com/charmbracelet/x/ansi"
)

var (
	geminiGrey  = rgb(175, 175, 175)
	geminiPink  = rgb(215, 175, 255)
	geminiAmber = rgb(255, 255, 175)
	geminiDark  = rgb(70, 70, 70)
)

// gemini is Gemini CLI 0.61.0.
var gemini = skin{
	hello: "\x1b[?u\x1b]11;?\x1b\\\x1b[>q\x1b[c\x1b[?25l\x1b[?1004h",
	bye:   "\x1b[?2004l\x1b[?1004l\x1b[?25h\x1b]0;\x07",

	swallow:        50 * time.Millisecond,
	placeholder:    func(int, string) string { return "" },
	escapes:        1,
	digitsSelect:   true,
	exitsOnSignals: true,

	title: func(a *agent) string {
		s := "◇  Ready (" + a.dir + ")"
		switch {
		case a.dialog != nil && a.dialog.kind != "trust":
			s = "✋  Action Required (" + a.dir + ")"
		case a.turn != nil && a.dialog == nil:
			s = "✦  Working… (" + a.dir + ")"
		}
		return fit(s, max(ansi.StringWidth(s), 80))
	},
	banner: func(a *agent) []block {
		return []block{func(int) []string {
			return []string{"", " ▝▜▄     " + bold + "Gemini CLI" + reset + geminiGrey + " v0.61.0", "", "Tips for getting started:", geminiGrey + "/help for more information"}
		}}
	},
	asked: func(text string) []block {
		return []block{func(w int) []string { return geminiBox(28, text, false, w) }}
	},
	answer:   func(text string) []block { return []block{paragraph(geminiPink+"✦ "+reset, "", text)} },
	approved: func(string) []block { return nil },
	ran:      func(command string) []block { return geminiTool("✓", command) },
	failed:   "✕ [API Error: got status: UNAVAILABLE]",
	stopped:  func(*turn) []block { return []block{paragraph(geminiAmber+"ℹ ", geminiAmber, "Request cancelled.")} },
	denied: func(t *turn) []block {
		return append(geminiTool("-", t.tool), paragraph(geminiAmber+"ℹ ", geminiAmber, "Request cancelled."))
	},
	ended: func(*turn) []block { return nil },

	permission: func(_ *agent, command string) *dialog {
		return &dialog{kind: "permission", about: command, options: []option{
			{"yes", "Allow once", "", allow}, {"always", "Allow for this session", "", allow}, {"no", "No, suggest changes (esc)", "esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := append([]string{bold + geminiAmber + "? Shell  " + reset + cut(d.about, a.cols-14)}, box(geminiDark, wrap(d.about, a.cols-8), a.cols-4)...)
			lines = append(lines, "Allow execution of "+bold+geminiAmber+"[Shell]"+reset+"?", "")
			lines = append(lines, d.list("", "● ")...)
			return append([]string{""}, append(box(geminiDark, lines, a.cols), "", "")...)
		}}
	},
	question: func(*agent, string) *dialog {
		return &dialog{kind: "question", about: "A potential loop was detected", options: []option{
			{"keep", "Keep loop detection enabled (esc)", "esc", allow}, {"disable", "Disable loop detection for this session", "", allow},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{bold + d.about + reset, "", "This can happen due to repetitive tool calls or other model behavior. Do you want to", "keep loop detection enabled or disable it for this session?", ""}
			return append([]string{""}, box(geminiAmber, append(lines, d.list("", "● ")...), a.cols)...)
		}}
	},
	trust: func(_ *agent, dir string) *dialog {
		return &dialog{kind: "trust", about: dir, options: []option{
			{"trust", "Trust folder (here)", "", allow}, {"parent", "Trust parent folder", "", allow}, {"exit", "Don't trust", "esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{"", bold + "Do you trust the files in this folder?" + reset, ""}
			lines = append(lines, wrap("Trusting a folder allows Gemini CLI to load its local configurations, including custom commands, hooks, MCP servers, agent skills, and settings. These configurations could execute code on your behalf or change the behavior of the CLI.", a.cols-7)...)
			lines = append(append(append(lines, "", ""), d.list("", "● ")...), "")
			return append([]string{""}, append(box(geminiAmber, lines, a.cols), "")...)
		}}
	},
}

func geminiTool(mark, command string) []block {
	return []block{func(w int) []string {
		return box(geminiDark, []string{mark + "  " + bold + "Shell" + reset + " " + cut(command, w-14), ""}, w)
	}}
}

// geminiBox is the box for a prompt: half blocks above and below.
func geminiBox(shade int, text string, isInput bool, w int) []string {
	edge, paper := rgb(shade, shade, shade), ground(shade, shade, shade)
	out := []string{edge + rule("▄", w)}
	mark := " " + geminiPink + "> " + reset + paper
	lines := wrap(text, w-5)
	for i, l := range lines {
		if isInput && i == len(lines)-1 {
			l += inverse + " " + upright
			if text == "" {
				l += geminiGrey + " Type your message or @path/to/file"
			}
		}
		out = append(out, paper+fit(mark+l, w))
		mark = "   "
	}
	return append(out, edge+rule("▀", w))
}

func geminiFrame(a *agent) frame {
	t := a.turn
	lines := a.lines(a.unsaid())
	if t != nil && t.tool != "" && a.dialog == nil {
		lines = append(lines, a.lines(geminiTool("⊷", t.tool))...)
	}
	if d := a.dialog; d != nil {
		return atSelected(append(lines, d.draw(a, d)...), d)
	}
	if len(a.queue) > 0 {
		lines = append(lines, "", "  "+geminiGrey+"Queued (press ↑ to edit):")
	}
	for _, q := range a.queue {
		for _, l := range wrap(q, a.cols-4) {
			lines = append(lines, "    "+geminiGrey+l)
		}
	}
	left, right := "", geminiGrey+"? for shortcuts"
	if !a.draft.isEmpty() {
		right = ""
	}
	if t != nil {
		what := "Thinking..."
		if t.phase == retrying {
			what = "Trying to reach the model (Attempt 1/10)"
		}
		left = fmt.Sprintf(" %s%s%s \x1b[3m%s%s %s(esc to cancel, %s)", geminiPink, cycle(braille, a.spin), reset, what, reset, geminiGrey, t.took())
	}
	if a.hint != "" {
		left = " " + geminiAmber + a.hint
	}
	lines = append(lines, "", "", apart(left, right, a.cols-1), dim+geminiDark+rule("─", a.cols), " "+geminiGrey+"Shift+Tab to accept edits")
	input := geminiBox(42, a.draft.shown(), true, a.cols)
	draft := wrap(a.draft.shown(), a.cols-5)
	return frame{
		x: 3 + ansi.StringWidth(draft[len(draft)-1]), y: len(lines) + len(input) - 2,
		lines: append(append(lines, input...),
			cut(fmt.Sprintf(" %s%-52s%-40s%s", geminiGrey, "workspace (/directory)", "sandbox", "/model"), a.cols-1),
			cut(fmt.Sprintf(" %-52s%-40s%s", a.cwd, "no sandbox", "Auto"), a.cols-1), ""),
	}
}
