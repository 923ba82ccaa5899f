package testagent

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

var (
	codexPaper = ground(30, 30, 30)
	codexGrey  = rgb(153, 153, 153)
)

// codex is Codex 0.169.0.
var codex = skin{
	isFull: true,
	hello:  "\x1b[>7u\x1b[?1004h\x1b[?u\x1b[c\x1b[6n\x1b]11;?\x1b\\\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?25l\x1b[1;1H\x1b[J",
	bye:    "\x1b[1;1H\x1b[J\x1b]0;\x07\x1b[?1006l\x1b[?1000l\x1b[<1u\x1b[?1049l\x1b[?2004l\x1b[?1004l\x1b[?25h",

	swallow: 50 * time.Millisecond,
	placeholder: func(_ int, text string) string {
		if n := len([]rune(text)); n > 1000 {
			return fmt.Sprintf("[Pasted Content %d chars]", n)
		}
		return ""
	},
	steers:     true,
	escapes:    1,
	ctrlCExits: true,
	trustFirst: true,

	title: func(a *agent) string {
		switch {
		case a.dialog != nil && a.dialog.kind != "trust":
			return "[ " + cycle("!.", a.spin/5) + " ] Action Required | " + a.dir
		case a.turn != nil && a.dialog == nil:
			return cycle(braille, a.spin) + " " + a.dir
		}
		return a.dir
	},
	banner: func(a *agent) []block {
		return []block{func(int) []string {
			return []string{"", "  >_ " + bold + "OpenAI Codex" + reset + dim + " (v0.169.0)", "     " + dim + a.cwd, ""}
		}}
	},
	asked: func(text string) []block {
		return []block{func(w int) []string { return codexDraft(bold+dim+"› ", text, w) }}
	},
	answer: func(text string) []block { return []block{paragraph(dim+"• "+reset, "", text)} },
	approved: func(command string) []block {
		return []block{paragraph("✔ ", "", "You approved codex to run "+command+" this time")}
	},
	ran: func(command string) []block {
		return []block{paragraph("• ", "", "Ran "+command), func(int) []string { return []string{dim + "  └ (no output)"} }}
	},
	failed: "■ unexpected status 500 Internal Server Error",
	stopped: func(*turn) []block {
		return []block{paragraph(codexGrey+"■ ", codexGrey, "Conversation interrupted - use /feedback if something went wrong")}
	},
	denied: func(t *turn) []block {
		return []block{
			paragraph("✗ ", "", "You canceled the request to run "+t.tool),
			paragraph(codexGrey+"■ ", codexGrey, "Conversation interrupted - tell the model what to do differently. Something went wrong? Hit `/feedback` to report the issue."),
		}
	},
	ended: func(t *turn) []block {
		return []block{paragraph("  ", dim, "Worked for "+strings.Replace(t.took(), "0s", "<1s", 1)+" • "+time.Now().Format("15:04"))}
	},

	permission: func(_ *agent, command string) *dialog {
		return &dialog{kind: "permission", about: command, options: []option{
			{"yes", "Yes, proceed (y)", "y 1", allow},
			{"always", "Yes, and don't ask again for commands that start with `" + command + "` (p)", "p 2", allow},
			{"no", "No, and tell Codex what to do differently (esc)", "esc n 3", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{"", "  " + bold + "Would you like to run the following command?", "", "  Reason: \x1b[3mNeed to make a file", ""}
			for i, l := range wrap(d.about, a.cols-4) {
				lines = append(lines, map[bool]string{true: "  $ ", false: "    "}[i == 0]+l)
			}
			lines = append(append(lines, ""), codexList(a, d)...)
			return append(lines, "", "  "+dim+"Press "+reset+bold+"enter"+reset+dim+" to confirm or "+reset+bold+"esc"+reset+dim+" to cancel")
		}}
	},
	question: func(_ *agent, about string) *dialog {
		return &dialog{kind: "question", about: about, options: []option{
			{"first", "Small steps", "1", allow}, {"second", "All at once", "2", allow}, {"cancel", "None of the above", "3 esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := append([]string{"", "  " + dim + "Question 1/1 (1 unanswered)", "  " + d.about, ""}, codexList(a, d)...)
			return append(lines, "", "  "+dim+"tab to add notes | enter to submit answer | esc to interrupt")
		}}
	},
	trust: func(_ *agent, dir string) *dialog {
		return &dialog{kind: "trust", about: dir, options: []option{
			{"trust", "Trust and continue", "1", allow}, {"exit", "Back to Agent Command Center", "2 esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{codexPaper + fit("", a.cols), codexPaper + bold + "  Folder access", "  " + dim + d.about, ""}
			for _, l := range wrap("Trust this folder? Codex can read, edit, and run files here, subject to your permission settings. Folder settings can run code automatically, even without a model request. Continue only if you trust these files. Your trust decision will be saved.", a.cols-4) {
				lines = append(lines, "  "+l)
			}
			lines = append(append(lines, ""), codexList(a, d)...)
			return append(lines, "", "  "+bold+"enter"+reset+dim+" continue · "+reset+bold+"esc"+reset+dim+" back")
		}}
	},
}

// codexList draws the selected option on a bar as wide as the screen.
func codexList(a *agent, d *dialog) []string {
	lines := d.list("", "› ")
	for i, l := range lines {
		if lines[i] = fit(l, a.cols); i == d.at {
			lines[i] = bold + rgb(0, 0, 46) + ground(99, 168, 248) + lines[i]
		}
	}
	return lines
}

// codexDraft is a prompt on its own paper.
func codexDraft(mark, text string, w int) []string {
	edge := codexPaper + fit("", w)
	out := []string{edge}
	for _, l := range wrap(text, w-3) {
		out = append(out, codexPaper+mark+reset+codexPaper+fit(l, w-2))
		mark = "  "
	}
	return append(out, edge)
}

func codexFrame(a *agent) frame {
	t := a.turn
	var low []string
	if t != nil && t.tool != "" {
		low = append(low, "", bold+"• Running"+reset+" "+cut(t.tool, a.cols-10), "")
	}
	if d := a.dialog; d != nil {
		low = append(low, d.draw(a, d)...)
		if d.kind == "trust" {
			return frame{lines: low}
		}
		return frame{lines: append(a.above(a.rows-len(low)), low...)}
	}
	if t != nil && t.phase != responding {
		status := "Working"
		if t.phase == retrying {
			status = "Reconnecting... 1/5"
		}
		low = append(low, bold+"•"+reset+" "+status+dim+" ("+t.took()+" • "+reset+"esc"+dim+" to interrupt)")
	}
	low = append(low, "")
	f := frame{cursor: true, x: 2, y: len(low) + 1}
	left := "← for agents · ? for shortcuts"
	if a.draft.isEmpty() {
		edge := codexPaper + fit("", a.cols)
		low = append(low, edge, codexPaper+bold+"›"+reset+codexPaper+" "+dim+fit("Ask Codex to do anything", a.cols-2), edge)
	} else {
		lines := lastLines(wrap(a.draft.shown(), a.cols-3), a.rows-8)
		low = append(low, codexDraft(bold+"› ", strings.Join(lines, "\n"), a.cols)...)
		f.x, f.y, left = 2+ansi.StringWidth(lines[len(lines)-1]), len(low)-2, ""
	}
	if a.hint != "" {
		left = a.hint
	}
	low = append(low, "  fake-model default"+codexGrey+" · "+a.cwd, apart("  "+left, codexGrey+"⚠ 1 warning · f2 to view", a.cols-1))
	f.y += max(a.rows-len(low), 0)
	f.lines = append(a.above(a.rows-len(low)), low...)
	return f
}
