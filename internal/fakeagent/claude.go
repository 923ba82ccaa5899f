package fakeagent

import (
	"fmt"
	"strings"
	"time"
)

const (
	claudeRust  = "\x1b[38;2;215;119;87m"
	claudeGrey  = "\x1b[38;2;153;153;153m"
	claudeRule  = "\x1b[38;2;136;136;136m"
	claudeBlue  = "\x1b[38;2;177;185;249m"
	claudePink  = "\x1b[38;2;253;93;177m"
	claudeAmber = "\x1b[38;2;255;193;7m"
	noBreak     = "\u00a0"
)

// claude is Claude Code 2.1.197.
func claude() *profile {
	return &profile{
		name:  "claude",
		hello: "\x1b7\x1b[r\x1b8\x1b[?25h\x1b[?25l\x1b[?1004h\x1b[?2031h\x1b[>0q\x1b[c",
		bye:   "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[>4m\x1b[<u\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[?25h\x1b7\x1b[r\x1b8\x1b]0;\x07",
		asks:  "c",

		guess: 800,
		lines: 3,
		chars: 800,
		placeholder: func(n int, text string) string {
			if more := strings.Count(text, "\n"); more > 0 {
				return fmt.Sprintf("[Pasted text #%d +%d lines]", n, more)
			}
			return fmt.Sprintf("[Pasted text #%d]", n)
		},
		busy:       "queue",
		escs:       1,
		ctrlC:      "ask",
		restores:   true,
		unqueues:   true,
		exits:      true,
		titleFirst: true,
		trustFirst: true,

		title: func(a *agent) string {
			if a.turn == nil || a.dialog != nil { // it looks idle in a dialog
				return "✳ Claude Code"
			}
			if time.Since(a.turn.began)/(960*time.Millisecond)%2 == 0 {
				return "⠂ Claude Code"
			}
			return "⠐ Claude Code"
		},
		frame: claudeFrame,
		farewell: func(a *agent) string {
			return "\r\n" + dim + "Resume this session with:\r\nclaude --resume " + a.session + reset + "\r\n"
		},

		banner: func(a *agent) []entry { return []entry{{draw: func(w int) []string { return claudeBanner(a, w) }}, {}} },
		asked: func(text string) []entry {
			return []entry{{gap: true, draw: func(w int) []string {
				return claudeAsked(text, w)
			}}}
		},
		answer:   func(text string) []entry { return []entry{{gap: true, mark: "● ", hang: "  ", text: text}} },
		approved: func(string) []entry { return nil },
		ran: func(command string) []entry {
			out := "(No output)"
			if _, rest, ok := strings.Cut(command, "echo "); ok {
				out = rest
			}
			return append(claudeTool(command), entry{mark: "  ⎿ " + noBreak, hang: "     ", text: out})
		},
		refused: func(command, reason string) []entry {
			return append(claudeTool(command), entry{mark: "  ⎿ " + noBreak, hang: "     ", text: "Error: " + reason})
		},
		failed: func() []entry {
			return []entry{{gap: true, mark: "● ", hang: "  ", text: "API Error: Unable to connect to API (ConnectionRefused)"}}
		},
		stopped: func(t *turn) []entry {
			var es []entry
			if t.tool != "" {
				es = claudeTool(t.tool)
			}
			return append(es, entry{mark: claudeGrey + "  ⎿ " + noBreak, text: "Interrupted · What should Claude do instead?", sgr: claudeGrey})
		},
		denied: func(t *turn) []entry {
			return append(claudeTool(t.tool), entry{mark: claudeGrey + "  ⎿ " + noBreak, text: "Interrupted · What should Claude do instead?", sgr: claudeGrey})
		},
		completed: func(t *turn) []entry {
			verb := t.a.oneOf("Crunched", "Worked", "Brewed", "Sautéed", "Baked")
			return []entry{{gap: true, text: "✻ " + verb + " for " + seconds(time.Since(t.began)), sgr: claudeGrey}}
		},

		permission: func(a *agent, command string) *dialog {
			return &dialog{kind: "permission", about: command, next: "down ctrl-n", prev: "up ctrl-p", options: []option{
				{"yes", "Yes", "1 y", allow},
				{"always", "Yes, and always allow access to " + bold + a.dir + reset + "/ from this project", "2", allow},
				{"no", "No", "3 esc n", deny},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{
					claudeBlue + rule("─", a.cols),
					" " + claudeBlue + bold + "Bash command",
					"",
				}
				for _, l := range wrap(command, a.cols-4) {
					lines = append(lines, "   "+l)
				}
				lines = append(lines, "   "+claudeGrey+"Make a file", "", " Do you want to proceed?")
				lines = append(lines, d.list(" ", claudeBlue+"❯"+reset+" ")...)
				return append(lines, "", " "+claudeGrey+"Esc to cancel · Tab to amend · ctrl+e to explain")
			}}
		},
		question: func(*agent) *dialog {
			return &dialog{kind: "question", about: "Which approach should be taken?", next: "down tab", prev: "up", options: []option{
				{"first", "Small steps", "1", allow},
				{"second", "All at once", "2", allow},
				{"other", "Type something.", "3", allow},
				{"cancel", "Chat about this", "4 esc", deny},
			}, draw: func(a *agent, d *dialog) []string {
				lines := []string{claudeBlue + rule("─", a.cols), " ☐ Approach ", "", bold + "Which approach should be taken?", ""}
				lines = append(lines, d.list("", claudeBlue+"❯"+reset+" ")...)
				return append(lines, "", claudeGrey+"Enter to select · ↑/↓ to navigate · Esc to cancel")
			}}
		},
		trust: func(a *agent) *dialog {
			return &dialog{kind: "trust", about: a.cwd, next: "down", prev: "up", options: []option{
				{"trust", "Yes, I trust this folder", "1 y", allow},
				{"exit", "No, exit", "2 esc n", quit},
			}, draw: claudeTrust}
		},
	}
}

func claudeTool(command string) []entry {
	return []entry{{gap: true, mark: "● ", hang: "      ", text: "Bash(" + command + ")"}}
}

func claudeAsked(text string, w int) []string {
	var out []string
	mark := "❯ "
	for _, l := range wrap(text, w-2) {
		out = append(out, paper("55", "55", "55")+rgb("80", "80", "80")+mark+rgb("255", "255", "255")+fit(l, w-2))
		mark = "  "
	}
	return out
}

func claudeBanner(a *agent, w int) []string {
	if w < 70 {
		return []string{claudeRust + "✻ " + reset + bold + "Claude Code" + reset + claudeGrey + " v2.1.197", "  " + a.shortDir}
	}
	right := w - 51
	row := func(left, text string) string {
		pad := max(47-textWidth(left), 0)
		left = strings.Repeat(" ", pad/2) + left + strings.Repeat(" ", pad-pad/2)
		return claudeRust + "│" + reset + left + claudeRust + dim + "│" + reset + " " + fit(text, right) + claudeRust + "│"
	}
	title := "╭─── Claude Code v2.1.197 "
	return []string{
		claudeRust + title + rule("─", w-1-textWidth(title)) + "╮",
		row("", "Tips for getting started"),
		row("Welcome back!", "Run /init to create a CLAUDE.md file with instr…"),
		row("", rule("─", right-1)),
		row("▐▛███▜▌", "What's new"),
		row("▝▜█████▛▘", "Check the Claude Code changelog for updates"),
		row("▘▘ ▝▝  ", ""),
		row("", ""),
		row("Opus 4.8 (1M context) · API Usage Billing", ""),
		row(a.shortDir, ""),
		claudeRust + "╰" + rule("─", w-2) + "╯",
	}
}

func claudeTrust(a *agent, d *dialog) []string {
	lines := []string{
		"",
		claudeAmber + rule("─", a.cols),
		" " + claudeAmber + bold + "Accessing workspace:",
		"",
		" " + bold + a.cwd,
		"",
	}
	for _, l := range wrap("Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open source project, or work from your team). If not, take a moment to review what's in this folder first.", a.cols-2) {
		lines = append(lines, " "+l)
	}
	lines = append(lines, "", " Claude Code'll be able to read, edit, and execute files here.", "", " "+claudeGrey+"Security guide", "")
	lines = append(lines, d.list(" ", claudeBlue+"❯"+reset+" ")...)
	return append(lines, "", " "+claudeGrey+"Enter to confirm · Esc to cancel", "")
}

// claudeFrame is what stands under the transcript.
func claudeFrame(a *agent) frame {
	lines := a.unsaid()
	t := a.turn
	if t != nil && t.tool != "" {
		mark := "● "
		if !t.asks && a.spin/5%2 == 1 { // it blinks while it runs
			mark = "  "
		}
		lines = append(lines, "", mark+bold+"Bash"+reset+"("+fit(t.tool, min(textWidth(t.tool), a.cols-8))+")")
		switch ran := time.Since(t.toolAt); {
		case t.asks:
			lines = append(lines, claudeGrey+"  ⎿ "+noBreak+"Waiting…")
		case ran < 2*time.Second:
			lines = append(lines, claudeGrey+"  ⎿ "+noBreak+"Running…")
		default:
			lines = append(lines, claudeGrey+"  ⎿ "+noBreak+"Running… ("+seconds(ran)+")", claudeGrey+"     (ctrl+b to run in background)")
		}
	}
	if d := a.dialog; d != nil {
		if d.kind != "trust" {
			lines = append(lines, "")
		}
		return atSelected(append(lines, d.draw(a, d)...), d)
	}
	if t != nil {
		lines = append(lines, "", claudeSpinner(a, t))
	}
	for i, q := range a.queue {
		if i == 0 {
			lines = append(lines, "")
		}
		for _, l := range claudeAsked(q, a.cols-2) {
			lines = append(lines, "  "+l)
		}
	}

	shown := a.draft.shown()
	glyph, colour := "❯", ""
	bang := strings.HasPrefix(shown, "!")
	if bang {
		glyph, colour, shown = "!", claudePink, shown[1:]
	} else if t != nil {
		colour = claudeGrey
	}
	edge := orElse(map[bool]string{true: claudePink}[bang], claudeRule) + rule("─", a.cols)
	lines = append(lines, "", edge)
	x, y := 2, len(lines)
	if len(a.queue) > 0 && a.draft.empty() {
		lines = append(lines, colour+glyph+noBreak+reset+inverse+"P"+upright+dim+"ress up to edit queued messages")
	} else {
		before := colour + glyph + noBreak + reset
		for _, l := range wrap(shown, a.cols-3) {
			lines = append(lines, before+l)
			x, y = 2+textWidth(l), len(lines)-1
			before = "  "
		}
		lines[y] += inverse + " " + upright
	}
	return frame{lines: append(lines, edge, claudeFooter(a, bang), ""), x: x, y: y}
}

func claudeFooter(a *agent, bang bool) string {
	left := "? for shortcuts · ← for agents"
	switch {
	case a.hint != "":
		left = a.hint
	case bang:
		left = claudePink + "! for shell mode"
	case a.draft.placeholder():
		left = "paste again to expand"
	case !a.draft.empty():
		left = "" // so even during a turn
	case a.turn != nil:
		left = "esc to interrupt · ← for agents"
	}
	return apart("  "+claudeGrey+left, claudeGrey+"● high · /effort", a.cols-1)
}

func claudeSpinner(a *agent, t *turn) string {
	glyph := claudeRust + cycle("·✢*✶✻✽✻✶*✢", a.spin) + reset + " "
	took := time.Since(t.began)
	if t.phase == retrying {
		return glyph + claudeRust + fmt.Sprintf("Unable to connect to API (ConnectionRefused) · Retrying in 4s · attempt %d/10", t.attempt)
	}
	line := glyph + claudeRust + t.verb + "… "
	if took > 2*time.Second {
		line += claudeGrey + "(" + seconds(took) + " · ↓ " + fmt.Sprint(5*int(took.Seconds())) + " tokens)"
	}
	return line
}

// atSelected is the frame of a dialog: the cursor stands at what is selected.
func atSelected(lines []string, d *dialog) frame {
	f := frame{lines: lines, y: len(lines) - 1}
	want := string(rune('1'+d.at)) + ". " + plainText(d.options[d.at].label)
	for i, line := range lines {
		if strings.Contains(plainText(line), want) {
			f.x, f.y = 1, i
		}
	}
	return f
}
