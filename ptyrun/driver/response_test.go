package driver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/reducer"
)

func TestResponse(t *testing.T) {
	for _, c := range []struct{ name, driver, screen, prompt, want string }{
		{"one answer", "claude", "❯ other\n\n● No.\n\n❯ hello agent\n\n● Pong from the\n  fake model.\n\n  A second paragraph.\n\n✻ Crunched for 0s\n\n═100\n❯ \n═100\n  ? for shortcuts", "hello agent", "Pong from the\nfake model.\n\nA second paragraph."},
		{"with tools", "claude", "❯ go\n\n● I look.\n\n«●» Bash(ls -l)\n  ⎿  a\n     b\n\n● Two files.\n\n✻ Worked for 1s\n\n═100\n❯ \n═100\n", "go", "I look.\n\nTwo files."},
		{"an indented block", "claude", "❯ go\n\n● Code:\n\n    if x {\n        y()\n    }\n\n═100\n❯ \n═100\n", "go", "Code:\n\n  if x {\n      y()\n  }"},
		{"several messages of one paste", "claude", "❯ [Pasted text #1 +12 lines]\n\n● Done.\n\n═100\n❯ \n═100\n", "a long text", "Done."},
		{"one answer", "codex", "› hello agent\n\n\n• Pong from the\n  fake model.\n\n‹  Worked for› <1s • 06:55\n\n› Ask Codex to do anything\n\n  model · ~/p", "hello agent", "Pong from the\nfake model."},
		{"with tools that failed", "codex", "› go\n\n«•» Exited (status 1) false\n  └ (no output)\n\n«•» Failed atm.send\n  └ no such agent\n\n«•» Viewed image x.png\n    + Show details\n\n• Failed to build.\n\n‹  Worked for› 1s\n\n› \n\n  model · ~/p", "go", "Failed to build."},
		{"with a tip", "codex", "› go\n\n• All done.\n  ‹└ Tip:› Press tab to queue a message when a task is\n    running.\n\n‹  Worked for› 1s\n\n› \n\n  model · ~/p", "go", "All done."},
		{"with tools", "codex", "› run\n\n«•» Ran sleep 6\n  └ done\n\n• All done.\n\n‹  Worked for› 7s • 06:59\n\n› \n\n  model · ~/p", "run", "All done."},
		{"that begins like a tool", "claude", "❯ go\n\n● Fixed (3 files).\n\n«●» Bash(ls)\n  ⎿  a\n\n● Bash(ls) is what I ran.\n\n═100\n❯ \n═100\n", "go", "Fixed (3 files).\n\nBash(ls) is what I ran."},
		{"with calls in one line", "claude", "❯ go\n\n● I look.\n\n‹  Searched for 2 patterns, read 1 file›\n\n● Found.\n\n═100\n❯ \n═100\n", "go", "I look.\n\nFound."},
		{"that speaks of errors and limits", "claude", "❯ go\n\n● API Error: 529 is what the test expects.\n\n  You've hit your limit; limit reached.\n\n═100\n❯ \n═100\n", "go", "API Error: 529 is what the test expects.\n\nYou've hit your limit; limit reached."},
		{"that quotes the screen", "claude", "❯ go\n\n● ❯ hi\n\n  ● Bash(ls)\n    ⎿  a\n\n  ✻ Worked for 1s\n\n  ❯ \n\n  Listed 1 directory\n\n═100\n❯ \n═100\n", "go", "❯ hi\n\n● Bash(ls)\n  ⎿  a\n\n✻ Worked for 1s\n\n❯\n\nListed 1 directory"},
		{"that begins like a tool", "codex", "› go\n\n• Added a test for the parser. All 12 pass.\n\n«•» Ran ls\n  └ a\n\n• Searched the tree…\n\n› \n\n  model · ~/p", "go", "Added a test for the parser. All 12 pass.\n\nSearched the tree…"},
		{"that quotes the screen", "codex", "› go\n\n• › hi\n\n  • Ran sleep 6\n    └ done\n\n  • Working (2s • esc to interrupt)\n\n  Worked for 3s\n\n  └ Tip: none\n\n› \n\n  model · ~/p", "go", "› hi\n\n• Ran sleep 6\n  └ done\n\n• Working (2s • esc to interrupt)\n\nWorked for 3s\n\n└ Tip: none"},
		{"with tools without a frame", "gemini", "▄80\n > go\n▀80\n✦ I read.\n\n  «✓»  ReadFile  x.txt\n\n✦ ✓  done\n\n  │ - │ x │\n\n▄80\n >   Type your message\n▀80\n ~/p", "go", "I read.\n\n✓  done\n\n│ - │ x │"},
		{"with lines like tools", "opencode", "  ┃\n  ┃  go\n  ┃\n\n     $ ls\n\n     → Read x\n\n     ‹→› ‹Read y›\n\n     ~ about 3\n\n     «▣»  Build · Fake · 2.6s\n\n  ┃\n  ┃\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab", "go", "$ ls\n\n→ Read x\n\n~ about 3"},
		{"one answer", "gemini", "▄80\n > hello agent\n▀80\n✦ Pong from the\n  fake model.\n\n\n                         ? for shortcuts\n═80\n Shift+Tab to accept edits\n▄80\n >   Type your message\n▀80\n ~/p", "hello agent", "Pong from the\nfake model."},
		{"one answer", "opencode", "  ┃\n  ┃  hello agent\n  ┃\n\n     Pong from the\n     fake model.\n\n     «▣»  Build · Fake · 2.6s\n\n  ┃\n  ┃\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab", "hello agent", "Pong from the\nfake model."},
		{"lines", "plain", "bob@h:~$ true\nbob@h:~$ ls\na\ntools\n\nb\nbob@h:~$ ", "ls", "a\ntools\n\nb"},
		{"another prompt after it", "plain", "~$ cd /x && ls\na\n/x$ ", "cd /x && ls", "a"},
		{"a command broken over rows", "plain", "$ echo aaaa\nbbbb\naaaabbbb\n$ ", "echo aaaabbbb", "aaaabbbb"},
		{"nothing", "plain", "$ true\n$ ", "true", ""},
		{"several commands", "plain", "$ a=1\n$ ls\nx\n$ ", "ls", "x"},
		{"python", "plain", ">>> 1+1\n2\n>>> ", "1+1", "2"},
	} {
		d, _ := Named(c.driver)
		if got := d.Response(sketch("", c.screen), c.prompt, false); got != c.want {
			t.Errorf("%s, %s:\n%q, want\n%q", c.driver, c.name, got, c.want)
		}
	}
}

// Without styles only what is below a row tells a tool; what nothing tells apart counts as an answer.
func TestResponseWithoutStyles(t *testing.T) {
	for _, c := range []struct{ driver, screen, want string }{
		{"claude", "❯ go\n\n● Fixed (3 files).\n\n● Bash(ls)\n  ⎿  a\n\n  Listed 1 directory\n\n● Done.\n\n═100\n❯ \n═100\n", "Fixed (3 files).\n\nDone."},
		{"claude", "❯ go\n\n● API Error: 529\n\n  Read 1 file\n\n═100\n❯ \n═100\n", "API Error: 529\n\nRead 1 file"},
		{"codex", "› go\n\n• Added a test.\n\n• Ran ls\n  └ a\n\n• Done.\n\n› \n\n  model · ~/p", "Added a test.\n\nDone."},
	} {
		d, _ := Named(c.driver)
		l := sketch("", c.screen)
		for _, r := range l.Cells {
			for i := range r {
				r[i].Dim = false
			}
		}
		l.styled = -1
		if got := d.Response(l, "go", false); got != c.want {
			t.Errorf("%s, %s:\n%q, want\n%q", c.driver, c.screen, got, c.want)
		}
		if r := d.Read(l, Reading{}); r.Failure != "" || r.Activity == reducer.Limited {
			t.Errorf("%s, %s: %+v", c.driver, c.screen, r)
		}
	}
}

// If the start of an answer is lost, the response is the rest, marked as such. A complete answer stays as it is.
func TestResponseCut(t *testing.T) {
	for _, c := range []struct{ driver, screen, prompt, want string }{
		{"plain", "98\n99\n100\n$ ", "seq 100", "…\n98\n99\n100"},
		{"plain", "$ seq 2\n1\n2\n$ ", "seq 2", "1\n2"},
		{"plain", "98\n$ ", "", ""}, // a person's
		{"claude", "  the end.\n\n● More.\n\n═100\n❯ \n═100\n", "go", "…\nthe end.\n\nMore."},
		{"claude", "❯ go\n\n● All.\n\n═100\n❯ \n═100\n", "go", "All."},
		{"claude", "  back and\n\n  forth\n  [/atm]\n\n● [[\n\n  All.\n\n═100\n❯ \n═100\n", "go `back` and\n\nforth\n[/atm]", "[[\n\nAll."}, // the message's end
		{"claude", "═100\n❯ \n═100\n", "go", ""},
	} {
		d, _ := Named(c.driver)
		if got := d.Response(sketch("", c.screen), c.prompt, true); got != c.want {
			t.Errorf("%s, %q:\n%q, want\n%q", c.driver, c.screen, got, c.want)
		}
	}
}

// hostile is an answer of which each paragraph looks like something of the program's own.
const hostile = `Searched the tree…

$ ls

→ Read x

● Bash(ls)
  ⎿  a

The rate limit reached handler now retries: you've hit your limit.

API Error: 529 is what the test expects.`

func TestResponsesOfTheCaptures(t *testing.T) {
	const fixed, added = "Fixed (3 files).", "Added a test for the parser. All 12 pass."
	flat := strings.Replace(hostile, "\n  ⎿", "\n⎿", 1) // as Codex renders Markdown
	for file, want := range map[string]struct{ prompt, answer string }{
		"claude-done":                  {"hello agent", "Pong from the fake model."},
		"codex-done":                   {"hello agent", "Pong from the fake model."},
		"gemini-done":                  {"hello agent", "Pong from the fake model."},
		"cline-done":                   {"hello agent", "Pong from the fake model."},
		"cline-tools":                  {"DOSLEEP please", "All done."},
		"cline-answer":                 {"[SAYS Added", "Added a test.\n\n● Bash(ls)\n❯ x\n\n- y\n  ────────────\n\n- one"},
		"continue-done":                {"hello agent", "Pong from the fake model."},
		"continue-tools":               {"DOSLEEP", "All done."},
		"continue-error":               {"DOERROR", ""},
		"continue-answer":              {"SAYS Added a test.", "Added a test.\n\n● Bash(ls)\n⎿ a\n\n╭────╮\n│ ● x\n╰────╯\n- one"},
		"kilo-done":                    {"hello agent", "Pong from the fake model."},
		"kilo-tools":                   {"DOSLEEP please", "All done."},
		"kilo-answer":                  {"SAYS Added a test.", "Added a test.\n\n▣  Code · Fake · 4.7s\n\n$ make test"},
		"opencode-done":                {"hello agent", "Pong from the fake model."},
		"qwen-0.24-responding":         {"DOSLOW", "word1 word2 word3 word4 word5"},
		"qwen-0.24-tools":              {"DOTOOL", "All done."},
		"copilot-done":                 {"hello agent", "Pong from the fake model."},
		"copilot-nocolor-thinking":     {"DOTOOL please", "All done."},
		"copilot-tools":                {"DOTOOL please", "All done."},
		"copilot-bold":                 {"SAYS **Shell**", "Shell is bold at the start\n\n code  at the start"},
		"copilot-answer":               {"SAYS Added a test.", "Added a test. All 12 pass.\n\nHeading one\n\n• one with  code\n• two\n\n $ make test\n\nShell is bold\n\n● Bash(ls)\n\n✗ Failed to x\n\n│ a quote\n\n1. Yes\n2. No"},
		"pi-done":                      {"hello agent", "Pong from the fake model."},
		"pi-tools":                     {"DOTOOL please", "All done."},
		"pi-queued":                    {"DOSLEEP now", ""},
		"pi-answer":                    {"SAYS Added a test.", "Added a test. All 12 pass.\n\nHeading one\n\n- one with code\n- two\n\n```\n   $ make test\n```\n\n┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │ 2 │\n└───┴───┘\n\n────────────────────\n\n│ a quote\n\n1. Yes\n2. No"},
		"qwen-done":                    {"hello agent", "Pong from the fake model."},
		"qwen-tools":                   {"DOTOOL please", "All done."},
		"qwen-answer":                  {"SAYS Added a test.", "Added a test. All 12 pass.\n\n │ not a message\n\n✦ ✓  Shell x\n - one\n - two"},
		"claude-2.1.197-answer":        {"SAY h3", fixed + "\n\n" + added + "\n\n" + hostile},
		"claude-2.1.332-answer":        {"SAY h3", fixed + "\n\n" + added + "\n\n" + hostile},
		"codex-0.169-answer":           {"SAY h2", added + "\n\n" + fixed + "\n\n" + flat},
		"codex-0.171-answer":           {"SAY h2", added + "\n\n" + fixed + "\n\n" + flat},
		"gemini-0.61-answer":           {"SAY h2", added + "\n\n" + fixed + "\n\n" + hostile},
		"opencode-1.18-answer":         {"SAY h2", added + "\n\n" + fixed + "\n\n" + hostile},
		"claude-2.1.197-tools":         {"SAY th", "I look first.\n\nBash(x) and more.\n\n" + fixed},
		"claude-2.1.332-tools":         {"SAY th", "I look first.\n\nBash(x) and more.\n\n" + fixed},
		"claude-2.1.332-light-tools":   {"SAY th", "I look first.\n\nBash(x) and more.\n\n" + fixed},
		"claude-2.1.332-nocolor-tools": {"SAY th", "I look first.\n\nBash(x) and more.\n\nListed 1 directory · 1 failed (ctrl+o to expand)\n\n" + fixed},
		"claude-2.1.332-reader-done":   {"SAY edit", "Made."},
		"claude-2.1.332-error":         {"DOERROR", ""},
		"codex-0.171-tools":            {"SAY cx", "I look first.\n\nAnd a patch.\n\nThen fail.\n\n" + added},
		"codex-0.171-nocolor-tools":    {"SAY cx", "I look first.\n\nAnd a patch.\n\nThen fail.\n\n" + added},
		"gemini-0.61-plain-done":       {"SAY added", added},
		"gemini-0.61-reader-tools":     {"SAY gm", "I look first.\n\nAnd read.\n\n" + added},
	} {
		if d := cmp.Diff(want.answer, driverOf(t, file).Response(look(t, file), want.prompt, false)); d != "" {
			t.Errorf("%s (-want +got)\n%s", file, d)
		}
		// Of a turn that began otherwise the text is not known.
		if strings.HasSuffix(file, "-done") {
			if d := cmp.Diff(want.answer, driverOf(t, file).Response(look(t, file), "", false)); d != "" {
				t.Errorf("%s, to an unknown text (-want +got)\n%s", file, d)
			}
		}
	}
}
