package fakeagent

import (
	"fmt"
	"strings"
	"time"
)

const (
	codexPaper = "\x1b[48;2;30;30;30m"
	codexGrey  = "\x1b[38;2;153;153;153m"
	codexPick  = "\x1b[1m\x1b[38;2;0;0;46;48;2;99;168;248m"
	codexTag   = bold + "\x1b[38;2;255;255;255m"
)

// codex is Codex 0.169.0.
func codex() *profile {
	return &profile{
		name:  "codex",
		full:  true,
		hello: "\x1b[>4;0m\x1b[>7u\x1b[?1004h\x1b[?u\x1b[c\x1b[6n\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[?1049h\x1b[>4;0m\x1b[>7u\x1b[?1007l\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?25l\x1b[1;1H\x1b[J",
		bye:   "\x1b[1;1H\x1b[J\x1b]0;\x07\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[<1u\x1b[?1007l\x1b[?1049l\x1b[<u\x1b[>4;0m\x1b[?2004l\x1b[?1004l\x1b[0 q\x1b[?25h",
		asks:  "cR",

		swallow:     50 * time.Millisecond,
		chars:       1000,
		placeholder: func(_ int, text string) string { return fmt.Sprintf("[Pasted Content %d chars]", len([]rune(text))) },
		busy:        "steer",
		escs:        1,
		ctrlC:       "exit",
		trustFirst:  true,

		title: func(a *agent) string {
			switch {
			case a.dialog != nil && !a.o.TitleLies && a.dialog.kind != "trust":
				return "[ " + cycle("!.", a.spin/5) + " ] Action Required | " + a.dir
			case a.turn != nil && a.dialog == nil:
				return cycle(braille, a.spin) + " " + a.dir
			}
			return a.dir
		},
		frame: codexFrame,
		farewell: func(a *agent) string {
			return "Disconnected from this task. Any running work continues.\r\nTo reconnect, run:\r\n  \x1b[36mcodex resume " + a.session + "\x1b[39m\r\nStop the current turn: run \x1b[36mcodex agents\x1b[39m, select this task, and press x.\r\nToken usage so far: total=75 input=50 output=25\r\n"
		},

		banner: func(a *agent) []entry {
			return []entry{{draw: func(int) []string {
				return []string{
					"", "  \x1b[38;2;99;168;248m>_ \x1b[39m" + bold + "OpenAI Codex" + reset + dim + " (v0.169.0)", "     " + dim + a.shortDir, "",
					"  " + dim + "To get started, describe a task or try one of these commands:", "",
					"  /init" + dim + " - create an AGENTS.md file with instructions for Codex",
					"  /status" + dim + " - show current session configuration",
					"  /permissions" + dim + " - choose what Codex is allowed to do",
					"  /model" + dim + " - choose what model and reasoning effort to use",
					"  /review" + dim + " - review any changes and find issues", "",
				}
			}}}
		},
		asked: func(text string) []entry {
			return []entry{{draw: func(w int) []string {
				out := []string{codexPaper + fit("", w)}
				mark := bold + dim + "› " + reset + codexPaper
				for _, l := range wrap(text, w-2) {
					out = append(out, codexPaper+mark+fit(l, w-2))
					mark = "  "
				}
				return append(out, codexPaper+fit("", w))
			}}}
		},
		answer: func(text string) []entry {
			return []entry{{gap: true, mark: dim + "• " + reset, hang: "  ", text: text}}
		},
		approved: func(command string) []entry {
			return []entry{{gap: true, mark: "\x1b[32m✔\x1b[39m ", hang: "  ", text: "You approved codex to run " + command + " this time"}}
		},
		ran: func(command string) []entry {
			out := "(no output)"
			if _, rest, ok := strings.Cut(command, "echo "); ok {
				out = rest
			}
			return []entry{
				{gap: true, mark: "\x1b[1m\x1b[38;5;2m•" + reset + " ", hang: "  │ ", text: "Ran " + command},
				{mark: dim + "  └ ", hang: "    ", text: out, sgr: dim},
			}
		},
		refused: func(command, reason string) []entry {
			return []entry{{gap: true, mark: "\x1b[31m✗\x1b[39m ", hang: "  ", text: "Hook blocked " + command + ": " + reason}}
		},
		failed: func() []entry {
			return []entry{{gap: true, mark: "\x1b[31m■ ", hang: "  ", text: "unexpected status 500 Internal Server Error"}}
		},
		stopped: func(*turn) []entry {
			return []entry{{gap: true, mark: codexGrey + "■ ", text: "Conversation interrupted - use /feedback if something went wrong", sgr: codexGrey}}
		},
		denied: func(t *turn) []entry {
			return []entry{
				{gap: true, mark: "\x1b[31m✗\x1b[39m ", hang: "  ", text: "You canceled the request to run " + t.tool},
				{gap: true, mark: codexGrey + "■ ", text: "Conversation interrupted - tell the model what to do differently. Something went wrong? Hit `/feedback` to report the issue.", sgr: codexGrey},
			}
		},
		completed: func(t *turn) []entry {
			took := seconds(time.Since(t.began))
			if took == "0s" {
				took = "<1s"
			}
			return []entry{{gap: true, mark: "  ", text: "Worked for " + took + " • " + time.Now().Format("15:04"), sgr: dim}, {}}
		},

		permission: func(a *agent, command string) *dialog {
			return &dialog{kind: "permission", about: command, next: "down ctrl-n", prev: "up ctrl-p", options: []option{
				{"yes", "Yes, proceed (y)", "y 1", allow},
				{"always", "Yes, and don't ask again for commands that start with `" + command + "` (p)", "p 2", allow},
				{"no", "No, and tell Codex what to do differently (esc)", "esc n 3", deny},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{"", "  " + bold + "Would you like to run the following command?", "", "  Environment: " + bold + "local", "", "  Reason: \x1b[3mNeed to make a file", ""}
				for i, l := range wrap(command, a.cols-4) {
					lines = append(lines, map[bool]string{true: "  $ ", false: "    "}[i == 0]+l)
				}
				lines = append(lines, "", "")
				lines = append(lines, codexList(a, d)...)
				return append(lines, "", "  "+dim+"Press "+reset+codexTag+"enter"+reset+dim+" to confirm or "+reset+codexTag+"esc"+reset+dim+" to cancel")
			}}
		},
		question: func(*agent) *dialog {
			return &dialog{kind: "question", about: "Which approach should be taken?", next: "down", prev: "up", options: []option{
				{"first", "Small steps", "1", allow},
				{"second", "All at once", "2", allow},
				{"cancel", "None of the above", "3 esc", deny},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{"", "  " + dim + "Question 1/1 (1 unanswered)", "  Which approach should be taken?", ""}
				lines = append(lines, codexList(a, d)...)
				return append(lines, "", "  "+dim+"tab to add notes | enter to submit answer | esc to interrupt")
			}}
		},
		trust: func(a *agent) *dialog {
			return &dialog{kind: "trust", about: a.cwd, next: "down", prev: "up", options: []option{
				{"trust", "Trust and continue", "1", allow},
				{"exit", "Back to Agent Command Center", "2 esc", quit},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{codexPaper + fit("", a.cols), codexPaper + bold + "  Folder access", "  " + dim + a.cwd, ""}
				for _, l := range wrap("Trust this folder? Codex can read, edit, and run files here, subject to your permission settings. Folder settings can run code automatically, even without a model request. Continue only if you trust these files. Your trust decision will be saved.", a.cols-4) {
					lines = append(lines, "  "+l)
				}
				lines = append(append(lines, ""), codexList(a, d)...)
				return append(lines, "", "  "+codexTag+"enter"+reset+dim+" continue · "+reset+codexTag+"esc"+reset+dim+" back")
			}}
		},
	}
}

// codexList draws the selected option on a bar as wide as the screen.
func codexList(a *agent, d *dialog) []string {
	lines := d.list("", "› ")
	for i, l := range lines {
		if l = fit(l, max(a.cols, 1)); i == d.at {
			l = codexPick + l
		}
		lines[i] = l
	}
	return lines
}

func codexFrame(a *agent) frame {
	t := a.turn
	var low []string
	f := frame{}
	if d := a.dialog; d != nil {
		if d.kind == "trust" {
			return frame{lines: d.draw(a, d)}
		}
		low = d.draw(a, d)
		if t != nil && t.tool != "" {
			low = append([]string{"", bold + "• " + reset + bold + "Running" + reset + " " + fit(t.tool, min(textWidth(t.tool), a.cols-10)), ""}, low...)
		}
		f.lines = append(a.above(a.rows-len(low)), low...)
		return f
	}
	if t != nil && t.phase != responding {
		status := "Working"
		if t.phase == retrying {
			status = fmt.Sprintf("Reconnecting... %d/5", t.attempt)
		}
		low = append(low, bold+"•"+reset+" "+status+dim+" ("+seconds(time.Since(t.began))+" • "+reset+"esc"+dim+" to interrupt)", "")
	} else {
		low = append(low, "")
	}
	if t != nil && t.tool != "" {
		low = append([]string{"", bold + "•" + reset + " " + bold + "Running" + reset + " " + fit(t.tool, min(textWidth(t.tool), a.cols-10)), ""}, low...)
	}
	low = append(low, codexPaper+fit("", a.cols))
	if a.draft.empty() {
		low = append(low, codexPaper+bold+"›"+reset+codexPaper+" "+dim+fit("Ask Codex to do anything", a.cols-2))
		f.x, f.y = 2, len(low)-1
	} else {
		mark := bold + "›" + reset + codexPaper + " "
		for _, l := range lastLines(wrap(a.draft.shown(), a.cols-3), a.rows-8) {
			low = append(low, codexPaper+mark+fit(l, a.cols-2))
			f.x, f.y = 2+textWidth(l), len(low)-1
			mark = "  "
		}
	}
	left := ""
	switch {
	case a.hint != "":
		left = a.hint
	case a.draft.empty():
		left = codexTag + "←" + reset + codexGrey + " for agents · " + codexTag + "?" + reset + codexGrey + " for shortcuts"
	}
	low = append(low, codexPaper+fit("", a.cols),
		"  \x1b[38;2;246;226;183mfake-model default"+codexGrey+" · \x1b[38;2;171;223;167m"+a.shortDir,
		apart("  "+left, codexGrey+"⚠ 1 warning · "+codexTag+"f2"+reset+codexGrey+" to view", a.cols-1))
	f.y += max(a.rows-len(low), 0)
	f.lines, f.cursor = append(a.above(a.rows-len(low)), low...), true
	return f
}

// lastLines are the last n, at least one.
func lastLines(lines []string, n int) []string {
	return lines[max(len(lines)-max(n, 1), 0):]
}
