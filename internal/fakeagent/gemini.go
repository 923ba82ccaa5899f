package fakeagent

import (
	"fmt"
	"time"
)

const (
	geminiGrey  = "\x1b[38;2;175;175;175m"
	geminiWhite = "\x1b[38;2;255;255;255m"
	geminiPink  = "\x1b[38;2;215;175;255m"
	geminiAmber = "\x1b[38;2;255;255;175m"
	geminiDark  = "\x1b[38;2;70;70;70m"
	geminiPick  = "\x1b[38;2;215;255;215m"
)

// gemini is Gemini CLI 0.61.0.
func gemini() *profile {
	return &profile{
		name:  "gemini",
		hello: "\x1b[8m\x1b[?u\x1b]11;?\x1b\\\x1b[>q\x1b[>4;?m\x1b[c\x1b[2K\r\x1b[0m\x1b[?25l\x1b[?1006l\x1b[?1002l\x1b[?1004h",
		bye:   "\x1b[?2004l\x1b[?1004l\x1b[?25h\x1b]0;\x07",
		asks:  "c",

		swallow:      50 * time.Millisecond,
		busy:         "queue",
		escs:         1,
		ctrlC:        "ask",
		digitsSelect: true,
		exits:        true,
		trustAnew:    true,

		title: func(a *agent) string {
			s := "◇  Ready (" + a.dir + ")"
			switch {
			case a.dialog != nil && !a.o.TitleLies && a.dialog.kind != "trust":
				s = "✋  Action Required (" + a.dir + ")"
			case a.turn != nil && a.dialog == nil:
				s = "✦  Working… (" + a.dir + ")"
			}
			return fit(s, max(textWidth(s), 80))
		},
		frame: geminiFrame,
		farewell: func(a *agent) string {
			return "\r\nAgent powering down. Goodbye!\r\n\r\nTo resume this session: gemini --resume " + a.session + "\r\n"
		},

		banner: func(a *agent) []entry {
			return []entry{{draw: func(int) []string {
				blue := "\x1b[38;2;102;136;217m"
				lines := []string{""}
				if a.again {
					lines = append(lines, "", " Gemini CLI is restarting to apply the trust changes...", "")
				}
				return append(lines,
					" "+blue+"▝▜▄"+reset+"     "+bold+geminiWhite+"Gemini CLI"+reset+geminiGrey+" v0.61.0",
					"   "+blue+"▝▜▄",
					"  "+blue+"▗▟▀"+reset+"    "+geminiWhite+"Authenticated with gemini-api-key"+geminiGrey+" /auth",
					" "+blue+"▝▀", "", "",
					geminiWhite+"Tips for getting started:",
					geminiWhite+"1. Create "+bold+"GEMINI.md"+reset+geminiWhite+" files to customize your interactions",
					geminiWhite+"2. "+geminiGrey+"/help"+geminiWhite+" for more information",
					geminiWhite+"3. Ask coding questions, edit code or run commands",
					geminiWhite+"4. Be specific for the best results")
			}}}
		},
		asked: func(text string) []entry {
			return []entry{{draw: func(w int) []string { return geminiBox("28", text, "", false, w) }}}
		},
		answer: func(text string) []entry {
			return []entry{{mark: geminiPink + "✦ " + reset, hang: "  ", text: text, sgr: geminiWhite}}
		},
		approved: func(string) []entry { return nil },
		ran:      func(command string) []entry { return geminiTool("✓", command) },
		refused:  func(command, reason string) []entry { return geminiTool("x", command+" ("+reason+")") },
		failed: func() []entry {
			return []entry{{gap: true, mark: "✕ ", hang: "  ", text: "[API Error: got status: UNAVAILABLE]"}}
		},
		stopped: func(*turn) []entry {
			return []entry{{gap: true, mark: geminiAmber + "ℹ ", text: "Request cancelled.", sgr: geminiAmber}}
		},
		denied: func(t *turn) []entry {
			return append(geminiTool("-", t.tool), entry{gap: true, mark: geminiAmber + "ℹ ", text: "Request cancelled.", sgr: geminiAmber})
		},
		completed: func(*turn) []entry { return nil },

		permission: func(a *agent, command string) *dialog {
			return &dialog{kind: "permission", about: command, next: "down", prev: "up", options: []option{
				{"yes", "Allow once", "", allow},
				{"always", "Allow for this session", "", allow},
				{"no", "No, suggest changes (esc)", "esc", deny},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{bold + geminiAmber + "? Shell  " + reset + geminiWhite + fit(command, min(textWidth(command), a.cols-14))}
				lines = append(lines, box(geminiDark, wrap(command, a.cols-8), a.cols-4)...)
				lines = append(lines, "Allow execution of "+bold+geminiAmber+"[Shell]"+reset+"?", "")
				lines = append(lines, d.list("", geminiPick+"●"+reset+" ")...)
				return append([]string{""}, append(box(geminiDark, lines, a.cols), "", "")...)
			}}
		},
		question: func(*agent) *dialog {
			return &dialog{kind: "question", about: "A potential loop was detected", next: "down", prev: "up", options: []option{
				{"keep", "Keep loop detection enabled (esc)", "esc", allow},
				{"disable", "Disable loop detection for this session", "", allow},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{bold + "A potential loop was detected" + reset, "", "This can happen due to repetitive tool calls or other model behavior. Do you want to", "keep loop detection enabled or disable it for this session?", ""}
				return append([]string{""}, box(geminiAmber, append(lines, d.list("", geminiPick+"●"+reset+" ")...), a.cols)...)
			}}
		},
		trust: func(a *agent) *dialog {
			return &dialog{kind: "trust", about: a.cwd, next: "down", prev: "up", options: []option{
				{"trust", "Trust folder (" + a.dir + ")", "", allow},
				{"parent", "Trust parent folder", "", allow},
				{"exit", "Don't trust", "esc", quit},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{"", bold + geminiWhite + "Do you trust the files in this folder?" + reset, ""}
				lines = append(lines, wrap("Trusting a folder allows Gemini CLI to load its local configurations, including custom commands, hooks, MCP servers, agent skills, and settings. These configurations could execute code on your behalf or change the behavior of the CLI.", a.cols-7)...)
				lines = append(append(append(lines, "", ""), d.list("", geminiPick+"●"+reset+" ")...), "")
				return append([]string{""}, append(indented(" ", box(geminiAmber, lines, a.cols-2)), "")...)
			}}
		},
	}
}

func geminiTool(mark, command string) []entry {
	return []entry{{draw: func(w int) []string {
		return box(geminiDark, []string{mark + "  " + bold + "Shell" + reset + " " + fit(command, min(textWidth(command), w-14)), ""}, w)
	}}}
}

// geminiBox is the box for a prompt: half blocks above and below.
func geminiBox(shade, text, hint string, cursor bool, w int) []string {
	edge := "\x1b[38;2;" + shade + ";" + shade + ";" + shade + "m"
	ground := paper(shade, shade, shade)
	out := []string{edge + rule("▄", w)}
	mark := " " + geminiPink + "> " + reset + ground
	lines := wrap(text, w-5)
	for i, l := range lines {
		n := textWidth(l) + 3
		line := ground + mark + l
		if cursor && i == len(lines)-1 {
			line += inverse + " " + upright
			n++
			if room := w - n - 1; text == "" && room > 0 {
				line += geminiGrey + " " + fit(hint, min(textWidth(hint), room))
				n += 1 + min(textWidth(hint), room)
			}
		}
		out = append(out, line+reset+ground+rule(" ", w-n))
		mark = "   "
	}
	return append(out, edge+rule("▀", w))
}

func geminiFrame(a *agent) frame {
	t := a.turn
	lines := a.unsaid()
	if t != nil && t.tool != "" && a.dialog == nil {
		lines = append(lines, geminiTool("⊷", t.tool)[0].draw(a.cols)...)
	}
	if d := a.dialog; d != nil {
		return atSelected(append(lines, d.draw(a, d)...), d)
	}
	for i, q := range a.queue {
		if i == 0 {
			lines = append(lines, "", "  "+geminiGrey+"Queued (press ↑ to edit):")
		}
		for _, l := range wrap(q, a.cols-4) {
			lines = append(lines, "    "+geminiGrey+l)
		}
	}
	left, right := "", geminiGrey+"? for shortcuts"
	if !a.draft.empty() {
		right = ""
	}
	if t != nil {
		what := "Thinking..."
		if t.phase == retrying {
			what = fmt.Sprintf("Trying to reach the model (Attempt %d/10)", t.attempt)
		}
		left = " " + geminiPink + cycle(braille, a.spin) + reset + " \x1b[3m" + geminiWhite + what + reset + " " + geminiGrey + "(esc to cancel, " + seconds(time.Since(t.began)) + ")"
	}
	if a.hint != "" {
		left = " " + geminiAmber + a.hint
	}
	lines = append(lines, "", "", apart(left, right, a.cols-1),
		dim+"\x1b[38;2;70;70;70m"+rule("─", a.cols), " "+geminiGrey+"Shift+Tab to accept edits")
	input := geminiBox("42", a.draft.shown(), "Type your message or @path/to/file", true, a.cols)
	f := frame{y: len(lines) + len(input) - 2}
	last := lastLines(wrap(a.draft.shown(), a.cols-5), 1)
	f.x = 3 + textWidth(last[0])
	f.lines = append(append(lines, input...),
		geminiFoot(a.cols, geminiGrey, "workspace (/directory)", geminiGrey, "sandbox", geminiGrey, "/model"),
		geminiFoot(a.cols, geminiWhite, a.shortDir, "\x1b[38;2;255;135;175m", "no sandbox", geminiWhite, "Auto"), "")
	return f
}

// geminiFoot is a row of three columns, each with its colour before it; what a
// narrow terminal has no room for is cut off, never wrapped.
func geminiFoot(w int, cells ...string) string {
	first := w * 52 / 100
	second := max(min(w*40/100, w-len(" /model")-first), 0)
	last := min(len("/model"), max(w-1-first-second, 0))
	return " " + cells[0] + fit(fit(cells[1], first-1), first) + cells[2] + fit(fit(cells[3], second-1), second) + cells[4] + fit(cells[5], last)
}
