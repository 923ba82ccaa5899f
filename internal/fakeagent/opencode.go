package fakeagent

import (
	"fmt"
	"strings"
	"time"
)

const (
	openBlue  = "\x1b[38;2;92;156;245m"
	openAmber = "\x1b[38;2;245;167;66m"
	openGrey  = "\x1b[38;2;128;128;128m"
	openWhite = "\x1b[38;2;238;238;238m"
	openPaper = "\x1b[48;2;30;30;30m"
	openDark  = "\x1b[48;2;20;20;20m"
)

// opencode is opencode 1.18.33.
func opencode() *profile {
	return &profile{
		name:  "opencode",
		full:  true,
		hello: "\x1b[?2031h\x1b]10;?\x07\x1b]11;?\x07\x1b[>0q\x1b[?25l\x1b[s\x1b[6n\x1bP+q4d73\x1b\\\x1b[?1016$p\x1b[?2027$p\x1b[?2004$p\x1b[?2026$p\x1b[?u\x1b[u\x1b[?1049h\x1b[>4;1m\x1b[?2027h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[14t\x1b]4;0;?\x07\x1b_Gi=31337,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c\x1b[?1004h",
		bye:   "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2027l\x1b[?1004l\x1b[?2004l\x1b[?1049l\x1b[?2031l\x1b[?25h\x1b]0;\x07",
		asks:  "cR",

		lines:       3,
		chars:       150,
		placeholder: func(_ int, text string) string { return fmt.Sprintf("[Pasted ~%d lines]", strings.Count(text, "\n")+1) },
		busy:        "queue",
		escs:        2,
		ctrlC:       "exit",

		title: func(a *agent) string { // it says nothing of the state
			if a.first == "" {
				return "OpenCode"
			}
			return "OC | " + fit(a.first, min(textWidth(a.first), 40))
		},
		frame:    opencodeFrame,
		farewell: func(a *agent) string { return "  Continue  opencode -s " + a.session + "\r\n" },

		banner: func(*agent) []entry { return nil },
		asked: func(text string) []entry {
			return []entry{{gap: true, draw: func(w int) []string { return openBox(wrap(text, w-7), w) }}}
		},
		answer:   func(text string) []entry { return []entry{{gap: true, mark: "     ", hang: "     ", text: text}} },
		approved: func(string) []entry { return nil },
		ran: func(command string) []entry {
			return []entry{{gap: true, draw: func(w int) []string { return openBox(wrap("$ "+command, w-7), w) }}}
		},
		refused: func(command, reason string) []entry {
			return []entry{{gap: true, mark: "     ", hang: "     ", text: "$ " + command + "\n" + reason}}
		},
		failed: func() []entry {
			return []entry{{gap: true, draw: func(w int) []string { return openBox([]string{"Internal Server Error"}, w) }}}
		},
		stopped: func(*turn) []entry {
			return []entry{{gap: true, mark: "     " + openBlue + "▣" + reset + "  ", text: "Build · Fake · interrupted"}}
		},
		denied: func(t *turn) []entry {
			return []entry{
				{gap: true, mark: "     ", hang: "     ", text: "$ " + t.tool},
				{gap: true, mark: "     " + openBlue + "▣" + reset + "  ", text: "Build · Fake · " + openTook(time.Since(t.began))},
			}
		},
		completed: func(t *turn) []entry {
			return []entry{{gap: true, mark: "     " + openBlue + "▣" + reset + "  ", text: "Build · Fake · " + openTook(time.Since(t.began))}}
		},

		permission: func(a *agent, command string) *dialog {
			return &dialog{kind: "permission", about: command, next: "right tab", prev: "left", options: []option{
				{"yes", "Allow once", "", allow},
				{"always", "Allow always", "", allow},
				{"no", "Reject", "esc", deny},
			}, draw: func(a *agent, d *dialog) []string {
				bar := "  " + openAmber + "┃" + openDark
				lines := []string{bar, bar + "  " + openAmber + "△ " + openWhite + "Permission required", bar + "    " + openGrey + "# Shell command", bar}
				for _, l := range wrap("$ "+command, a.cols-8) {
					lines = append(lines, bar+"  "+openWhite+l)
				}
				choice := bar + openPaper + "  "
				for i, o := range d.options {
					if i == d.at {
						choice += "\x1b[48;2;245;167;66m \x1b[38;2;10;10;10m" + o.label + " " + reset + openPaper
					} else {
						choice += " " + openGrey + o.label + " "
					}
					choice += " "
				}
				choice = apart(choice, openWhite+"ctrl+f "+openGrey+"fullscreen  "+openWhite+"⇆ "+openGrey+"select  "+openWhite+"enter "+openGrey+"confirm", a.cols-11)
				return append(lines, bar, bar, choice, bar, "")
			}}
		},
		question: func(*agent) *dialog {
			return &dialog{kind: "question", about: "Which approach should be taken?", next: "down tab", prev: "up", options: []option{
				{"first", "Small steps", "1", allow},
				{"second", "All at once", "2", allow},
				{"cancel", "Type your own answer", "3 esc", deny},
			}, draw: func(a *agent, d *dialog) []string {
				bar := "  " + openBlue + "┃" + openDark + openWhite
				lines := []string{bar, bar + "  Which approach should be taken?", bar}
				for _, l := range d.list("  ", "") {
					lines = append(lines, bar+l)
				}
				return append(lines, bar, bar+"  "+openWhite+"↑↓ "+openGrey+"select  "+openWhite+"enter "+openGrey+"submit  "+openWhite+"esc "+openGrey+"dismiss", bar, "")
			}}
		},
		// It has no such dialog; what asks for one gets a question.
		trust: func(a *agent) *dialog {
			d := opencode().question(a)
			d.kind, d.about = "trust", a.cwd
			return d
		},
	}
}

func openTook(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

func openBox(lines []string, w int) []string {
	bar := "  " + openBlue + "┃" + openDark + openWhite
	out := []string{bar + fit("", w-5)}
	for _, l := range lines {
		out = append(out, bar+"  "+fit(l, w-7))
	}
	return append(out, bar+fit("", w-5))
}

func opencodeFrame(a *agent) frame {
	t := a.turn
	if a.first == "" && a.dialog == nil {
		return opencodeHome(a)
	}
	var low []string
	if t != nil && t.tool != "" {
		if t.asks {
			low = append(low, "", "     $ "+fit(t.tool, min(textWidth(t.tool), a.cols-9)))
		} else {
			low = append(low, "")
			low = append(low, openBox([]string{cycle(braille, a.spin) + " " + fit(t.tool, min(textWidth(t.tool), a.cols-10))}, a.cols)...)
		}
	}
	if t != nil {
		low = append(low, "", "     "+openBlue+"▣"+reset+"  Build · Fake")
	}
	for _, q := range a.queue {
		low = append(append(low, ""), openBox(append(wrap(q, a.cols-7), " QUEUED "), a.cols)...)
	}
	var foot []string
	f := frame{cursor: true}
	if d := a.dialog; d != nil {
		foot, f.cursor = d.draw(a, d), false
	} else {
		bar := "  " + openBlue + "┃" + openPaper + openWhite
		foot = append(foot, bar)
		for _, l := range lastLines(wrap(a.draft.shown(), a.cols-8), a.rows-10) {
			foot = append(foot, bar+"  "+l)
			f.x, f.y = 5+textWidth(l), len(foot)-1
		}
		left := "   " + a.cwd
		if t != nil {
			left = "   " + openBlue + opencodeScanner(a.spin) + reset + "  " + openWhite + "esc " + openGrey + orElse(a.hint, "interrupt")
			if t.phase == retrying {
				left += fmt.Sprintf(" [retrying in 4s attempt #%d]", t.attempt)
			}
		}
		foot = append(foot, bar, bar+"  "+openBlue+"Build"+openGrey+" · "+openWhite+"Fake"+openGrey+" Fake",
			"  "+openBlue+"╹"+reset+"\x1b[38;2;30;30;30m"+rule("▀", a.cols-5),
			apart(left, openWhite+"tab "+openGrey+"agents  "+openWhite+"ctrl+p "+openGrey+"commands", a.cols-2), "")
	}
	// What the turn shows follows on the transcript; the box stays below.
	top := a.spoken(a.rows - len(foot) - len(low))
	top = append(top, low...)
	for len(top) < a.rows-len(foot) {
		top = append(top, "")
	}
	f.y += len(top)
	f.lines = append(top, foot...)
	return f
}

// opencodeScanner is the light that runs to and fro.
func opencodeScanner(n int) string {
	at := n % 14
	if at > 7 {
		at = 14 - at
	}
	var b strings.Builder
	for i := range 8 {
		if i >= at-3 && i <= at && n > 2 {
			b.WriteString("■")
		} else {
			b.WriteString("⬝")
		}
	}
	return b.String()
}

// opencodeHome is the screen before the first prompt.
func opencodeHome(a *agent) frame {
	left := max(a.cols/2-37, 0)
	pad := strings.Repeat(" ", left)
	width := min(a.cols-left-1, 74)
	logo := []string{
		"                                 ▄    ",
		"█▀▀█ █▀▀█ █▀▀█ █▀▀▄ █▀▀▀ █▀▀█ █▀▀█ █▀▀█",
		"█  █ █  █ █▀▀▀ █  █ █    █  █ █  █ █▀▀▀",
		"▀▀▀▀ █▀▀▀ ▀▀▀▀ ▀▀▀▀ ▀▀▀▀ ▀▀▀▀ ▀▀▀▀ ▀▀▀▀",
	}
	var lines []string
	for len(lines) < a.rows/2-7 {
		lines = append(lines, "")
	}
	for _, l := range logo {
		lines = append(lines, strings.Repeat(" ", max(a.cols/2-19, 0))+openGrey+l)
	}
	lines = append(lines, "", "")
	bar := pad + openBlue + "┃" + openPaper + openWhite
	lines = append(lines, bar+fit("", width))
	f := frame{cursor: true}
	if a.draft.empty() {
		lines = append(lines, bar+"  "+openGrey+fit(`Ask anything… "Fix broken tests"`, width-2))
		f.x, f.y = left+3, len(lines)-1
	} else {
		for _, l := range lastLines(wrap(a.draft.shown(), width-4), a.rows-16) {
			lines = append(lines, bar+"  "+fit(l, width-2))
			f.x, f.y = left+3+textWidth(l), len(lines)-1
		}
	}
	lines = append(lines, bar+fit("", width), bar+"  "+openBlue+"Build"+openGrey+" · "+openWhite+"Fake"+openGrey+fit(" Fake", width-14),
		pad+openBlue+"╹"+reset+"\x1b[38;2;30;30;30m"+rule("▀", width),
		apart("", openWhite+"tab "+openGrey+"agents  "+openWhite+"ctrl+p "+openGrey+"commands", left+width+1))
	for len(lines) < a.rows-2 {
		lines = append(lines, "")
	}
	f.lines = append(lines, apart("  "+openGrey+a.shortDir+":master", openGrey+"1.18.33", a.cols-2), "")
	return f
}
