package testagent

import (
	"fmt"
	"strings"
	"time"
)

var (
	claudeRust = rgb(215, 119, 87)
	claudeGrey = rgb(153, 153, 153)
	claudeBlue = rgb(177, 185, 249)
)

// claude is Claude Code 2.1.197.
var claude = skin{
	hello: "\x1b[?25l\x1b[?1004h\x1b[?2031h\x1b[>0q\x1b[c",
	bye:   "\x1b[>4m\x1b[<u\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[?25h\x1b]0;\x07",

	placeholder: func(n int, text string) string {
		more := strings.Count(text, "\n")
		switch {
		case more >= 3:
			return fmt.Sprintf("[Pasted text #%d +%d lines]", n, more)
		case len(text) > 800:
			return fmt.Sprintf("[Pasted text #%d]", n)
		}
		return ""
	},
	escapes:        1,
	restores:       true,
	unqueues:       true,
	exitsOnSignals: true,
	trustFirst:     true,

	title: func(a *agent) string {
		if a.turn == nil || a.dialog != nil { // it looks idle in a dialog
			return "✳ Claude Code"
		}
		return cycle("⠂⠐", a.spin/10) + " Claude Code"
	},
	banner: func(a *agent) []block {
		return []block{func(int) []string {
			return []string{claudeRust + "✻ " + reset + bold + "Claude Code" + reset + claudeGrey + " v2.1.197", "  " + a.cwd, ""}
		}}
	},
	asked: func(text string) []block {
		return []block{func(w int) []string { return append([]string{""}, claudeAsked(text, w)...) }}
	},
	answer:   func(text string) []block { return []block{paragraph("● ", "", text)} },
	approved: func(string) []block { return nil },
	ran: func(command string) []block {
		out := "(No output)"
		if _, rest, ok := strings.Cut(command, "echo "); ok {
			out = rest
		}
		return claudeTool(command, "", out)
	},
	failed: "● API Error: Unable to connect to API (ConnectionRefused)",
	stopped: func(t *turn) []block {
		if t.tool == "" {
			return claudeTool("", claudeGrey, claudeStopped)[1:]
		}
		return claudeTool(t.tool, claudeGrey, claudeStopped)
	},
	denied: func(t *turn) []block { return claudeTool(t.tool, claudeGrey, claudeStopped) },
	ended: func(t *turn) []block {
		return []block{paragraph(claudeGrey+"✻ ", claudeGrey, "Crunched for "+t.took())}
	},

	permission: func(a *agent, command string) *dialog {
		return &dialog{kind: "permission", about: command, options: []option{
			{"yes", "Yes", "1 y", allow},
			{"always", "Yes, and always allow access to " + bold + a.dir + reset + "/ from this project", "2", allow},
			{"no", "No", "3 esc n", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{claudeBlue + rule("─", a.cols), " " + claudeBlue + bold + "Bash command", ""}
			for _, l := range wrap(d.about, a.cols-4) {
				lines = append(lines, "   "+l)
			}
			lines = append(lines, "   "+claudeGrey+"Make a file", "", " Do you want to proceed?")
			lines = append(lines, d.list(" ", claudeBlue+"❯"+reset+" ")...)
			return append(lines, "", " "+claudeGrey+"Esc to cancel · Tab to amend · ctrl+e to explain")
		}}
	},
	question: func(_ *agent, about string) *dialog {
		return &dialog{kind: "question", about: about, options: []option{
			{"first", "Small steps", "1", allow}, {"second", "All at once", "2", allow},
			{"other", "Type something.", "3", allow}, {"cancel", "Chat about this", "4 esc", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{claudeBlue + rule("─", a.cols), " ☐ Approach ", "", bold + d.about, ""}
			lines = append(lines, d.list("", claudeBlue+"❯"+reset+" ")...)
			return append(lines, "", claudeGrey+"Enter to select · ↑/↓ to navigate · Esc to cancel")
		}}
	},
	trust: func(_ *agent, dir string) *dialog {
		return &dialog{kind: "trust", about: dir, options: []option{
			{"trust", "Yes, I trust this folder", "1 y", allow}, {"exit", "No, exit", "2 esc n", deny},
		}, draw: func(a *agent, d *dialog) []string {
			lines := []string{"", rgb(255, 193, 7) + rule("─", a.cols), " " + bold + "Accessing workspace:", "", " " + d.about, ""}
			for _, l := range wrap("Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open source project, or work from your team). If not, take a moment to review what's in this folder first.", a.cols-2) {
				lines = append(lines, " "+l)
			}
			lines = append(lines, "", " Claude Code'll be able to read, edit, and execute files here.", "", " "+claudeGrey+"Security guide", "")
			lines = append(lines, d.list(" ", claudeBlue+"❯"+reset+" ")...)
			return append(lines, "", " "+claudeGrey+"Enter to confirm · Esc to cancel", "")
		}}
	},
}

const claudeStopped = "Interrupted · What should Claude do instead?"

func claudeTool(command, sgr, out string) []block {
	return []block{
		paragraph("● ", "", "Bash("+command+")"),
		func(w int) []string { return []string{sgr + "  ⎿ " + noBreak + cut(out, w-5)} },
	}
}

func claudeAsked(text string, w int) (out []string) {
	mark := "❯ "
	for _, l := range wrap(text, w-2) {
		out = append(out, ground(55, 55, 55)+rgb(80, 80, 80)+mark+rgb(255, 255, 255)+fit(l, w-2))
		mark = "  "
	}
	return out
}

// The frames refer to their skins.
func init() {
	claude.frame, codex.frame, gemini.frame, opencode.frame = claudeFrame, codexFrame, geminiFrame, opencodeFrame
}

// claudeFrame is what stands under the transcript.
func claudeFrame(a *agent) frame {
	lines := a.lines(a.unsaid())
	t := a.turn
	if t != nil && t.tool != "" {
		what := "Running…"
		if t.isAsking {
			what = "Waiting…"
		}
		lines = append(lines, "", "● "+bold+"Bash"+reset+"("+cut(t.tool, a.cols-8)+")", claudeGrey+"  ⎿ "+noBreak+what)
	}
	if d := a.dialog; d != nil {
		if d.kind != "trust" {
			lines = append(lines, "")
		}
		return atSelected(append(lines, d.draw(a, d)...), d)
	}
	if t != nil {
		status := "Brewing… "
		if t.phase == retrying {
			status = "Unable to connect to API (ConnectionRefused) · Retrying in 4s · attempt 1/10"
		} else if time.Since(t.began) > 2*time.Second {
			status += claudeGrey + "(" + t.took() + " · ↓ 25 tokens)"
		}
		lines = append(lines, "", claudeRust+cycle("·✢*✶✻✽✻✶*✢", a.spin)+" "+status)
	}
	for _, q := range a.queue {
		for _, l := range claudeAsked(q, a.cols-2) {
			lines = append(lines, "  "+l)
		}
	}
	shown, glyph, edge := a.draft.shown(), "❯", rgb(136, 136, 136)
	footer := "? for shortcuts · ← for agents"
	switch {
	case a.hint != "":
		footer = a.hint
	case strings.HasPrefix(shown, "!"):
		shown, glyph, edge, footer = shown[1:], "!", rgb(253, 93, 177), rgb(253, 93, 177)+"! for shell mode"
	case a.draft.shown() != a.draft.text():
		footer = "paste again to expand"
	case shown != "":
		footer = ""
	case t != nil:
		footer = "esc to interrupt · ← for agents"
	}
	edge += rule("─", a.cols)
	lines = append(lines, "", edge)
	f := frame{x: 2, y: len(lines)}
	if len(a.queue) > 0 && shown == "" {
		lines = append(lines, glyph+noBreak+inverse+"P"+upright+dim+"ress up to edit queued messages")
	} else {
		before := glyph + noBreak
		for _, l := range wrap(shown, a.cols-3) {
			f.x, f.y = 2+len([]rune(l)), len(lines)
			lines = append(lines, before+l)
			before = "  "
		}
		lines[f.y] += inverse + " " + upright
	}
	f.lines = append(lines, edge, apart("  "+claudeGrey+footer, claudeGrey+"● high · /effort", a.cols-1), "")
	return f
}
