package testagent

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

var (
	openBlue  = rgb(92, 156, 245)
	openAmber = rgb(245, 167, 66)
	openGrey  = rgb(128, 128, 128)
	openWhite = rgb(238, 238, 238)
	openPaper = ground(30, 30, 30)
	openDark  = ground(20, 20, 20)
	openBar   = "  " + openBlue + "┃" + openDark + openWhite
)

// opencode is opencode 1.18.33.
var opencode = skin{
	isFull: true,
	hello:  "\x1b]11;?\x07\x1b[>0q\x1b[?25l\x1b[6n\x1b[?2026$p\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[c\x1b[?1004h",
	bye:    "\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?1049l\x1b[?25h\x1b]0;\x07",

	placeholder: func(_ int, text string) string {
		if n := strings.Count(text, "\n"); n >= 3 || len(text) > 150 {
			return fmt.Sprintf("[Pasted ~%d lines]", n+1)
		}
		return ""
	},
	escapes:    2,
	ctrlCExits: true,

	title: func(a *agent) string { // it says nothing of the state
		if a.first == "" {
			return "OpenCode"
		}
		return "OC | " + cut(a.first, 40)
	},
	banner:   func(*agent) []block { return []block{} },
	asked:    openBox,
	answer:   func(text string) []block { return []block{paragraph("     ", "", text)} },
	approved: func(string) []block { return nil },
	ran:      func(command string) []block { return openBox("$ " + command) },
	failed:   "  ┃  Internal Server Error",
	stopped:  func(*turn) []block { return openDone("interrupted") },
	denied: func(t *turn) []block {
		return append([]block{paragraph("     ", "", "$ "+t.tool)}, openDone(openTook(t))...)
	},
	ended: func(t *turn) []block { return openDone(openTook(t)) },

	permission: func(_ *agent, command string) *dialog {
		return &dialog{kind: "permission", about: command, options: []option{
			{"yes", "Allow once", "", allow}, {"always", "Allow always", "", allow}, {"no", "Reject", "esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			bar := "  " + openAmber + "┃" + openDark
			lines := []string{bar, bar + "  " + openAmber + "△ " + openWhite + "Permission required", bar + "    " + openGrey + "# Shell command", bar}
			for _, l := range wrap("$ "+d.about, a.cols-8) {
				lines = append(lines, bar+"  "+openWhite+l)
			}
			choice := bar + openPaper + "  "
			for i, o := range d.options {
				if i == d.at {
					choice += ground(245, 167, 66) + " " + rgb(10, 10, 10) + o.label + " " + reset + openPaper + " "
				} else {
					choice += " " + openGrey + o.label + "  "
				}
			}
			choice = apart(choice, openWhite+"ctrl+f "+openGrey+"fullscreen  "+openWhite+"⇆ "+openGrey+"select  "+openWhite+"enter "+openGrey+"confirm", a.cols-11)
			return append(lines, bar, bar, choice, bar, "")
		}}
	},
	question: func(_ *agent, about string) *dialog {
		return &dialog{kind: "question", about: about, options: []option{
			{"first", "Small steps", "1", allow}, {"second", "All at once", "2", allow}, {"cancel", "Type your own answer", "3 esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{openBar, openBar + "  " + d.about, openBar}
			for _, l := range d.list("  ", "") {
				lines = append(lines, openBar+l)
			}
			return append(lines, openBar, openBar+"  "+openWhite+"↑↓ "+openGrey+"select  "+openWhite+"enter "+openGrey+"submit  "+openWhite+"esc "+openGrey+"dismiss", openBar, "")
		}}
	},
}

// It has no trust dialog; what asks for one gets a question.
func init() {
	opencode.trust = func(a *agent, dir string) *dialog {
		d := opencode.question(a, dir)
		d.kind = "trust"
		return d
	}
}

func openTook(t *turn) string { return fmt.Sprintf("%.1fs", time.Since(t.began).Seconds()) }

func openDone(what string) []block {
	return []block{paragraph("     "+openBlue+"▣"+reset+"  ", "", "Build · Fake · "+what)}
}

func openBox(text string) []block {
	return []block{func(w int) []string {
		out := []string{"", openBar + fit("", w-5)}
		for _, l := range wrap(text, w-7) {
			out = append(out, openBar+"  "+fit(l, w-7))
		}
		return append(out, openBar+fit("", w-5))
	}}
}

func opencodeFrame(a *agent) frame {
	t := a.turn
	var low []string
	if t != nil && t.tool != "" {
		low = a.lines(openBox(cycle(braille, a.spin) + " " + cut(t.tool, a.cols-10)))
		if t.isAsking {
			low = []string{"", "     $ " + cut(t.tool, a.cols-9)}
		}
	}
	if t != nil {
		low = append(low, "", "     "+openBlue+"▣"+reset+"  Build · Fake")
	}
	for _, q := range a.queue {
		low = append(low, a.lines(openBox(q+"\n QUEUED "))...)
	}
	f := frame{cursor: true}
	if d := a.dialog; d != nil {
		f.cursor = false
		low = append(low, d.draw(a, d)...)
	} else {
		bar := "  " + openBlue + "┃" + openPaper + openWhite
		low = append(low, bar)
		for _, l := range lastLines(wrap(a.draft.shown(), a.cols-8), a.rows-10) {
			f.x, f.y = 5+ansi.StringWidth(l), len(low)
			if a.first == "" && l == "" {
				l = openGrey + `Ask anything… "Fix broken tests"`
			}
			low = append(low, bar+"  "+l)
		}
		left := "   " + a.cwd
		if t != nil {
			left = "   " + openBlue + cycle("■⬝", a.spin) + "■■⬝⬝⬝⬝⬝" + reset + "  " + openWhite + "esc " + openGrey + "interrupt"
			if a.hint != "" {
				left = strings.TrimSuffix(left, "interrupt") + a.hint
			}
			if t.phase == retrying {
				left += " [retrying in 4s attempt #1]"
			}
		}
		low = append(low, bar, bar+"  "+openBlue+"Build"+openGrey+" · "+openWhite+"Fake"+openGrey+" Fake",
			"  "+openBlue+"╹"+reset+rgb(30, 30, 30)+rule("▀", a.cols-5),
			apart(left, openWhite+"tab "+openGrey+"agents  "+openWhite+"ctrl+p "+openGrey+"commands", a.cols-2), "")
	}
	above := a.above(a.rows - len(low))
	f.y += len(above)
	f.lines = append(above, low...)
	return f
}
