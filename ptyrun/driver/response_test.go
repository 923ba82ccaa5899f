package driver

import "testing"

func TestResponse(t *testing.T) {
	for _, c := range []struct{ name, driver, screen, prompt, want string }{
		{"one answer", "claude", "❯ other\n\n● No.\n\n❯ hello agent\n\n● Pong from the\n  fake model.\n\n  A second paragraph.\n\n✻ Crunched for 0s\n\n═100\n❯ \n═100\n  ? for shortcuts", "hello agent", "Pong from the\nfake model.\n\nA second paragraph."},
		{"with tools", "claude", "❯ go\n\n● I look.\n\n● Bash(ls -l)\n  ⎿  a\n     b\n\n● Two files.\n\n✻ Worked for 1s\n\n═100\n❯ \n═100\n", "go", "I look.\n\nTwo files."},
		{"an indented block", "claude", "❯ go\n\n● Code:\n\n    if x {\n        y()\n    }\n\n═100\n❯ \n═100\n", "go", "Code:\n\n  if x {\n      y()\n  }"},
		{"several messages of one paste", "claude", "❯ [Pasted text #1 +12 lines]\n\n● Done.\n\n═100\n❯ \n═100\n", "a long text", "Done."},
		{"one answer", "codex", "› hello agent\n\n\n• Pong from the\n  fake model.\n\n  Worked for <1s • 06:55\n\n› Ask Codex to do anything\n\n  model · ~/p", "hello agent", "Pong from the\nfake model."},
		{"with tools that failed", "codex", "› go\n\n• Exited (status 1) false\n  └ (no output)\n\n• Failed atm.send\n  └ no such agent\n\n• Viewed image x.png\n    + Show details\n\n• Failed to build.\n\n  Worked for 1s\n\n› \n\n  model · ~/p", "go", "Failed to build."},
		{"with a tip", "codex", "› go\n\n• All done.\n  └ Tip: Press tab to queue a message when a task is\n    running.\n\n  Worked for 1s\n\n› \n\n  model · ~/p", "go", "All done."},
		{"with tools", "codex", "› run\n\n• Ran sleep 6\n  └ done\n\n• All done.\n\n  Worked for 7s • 06:59\n\n› \n\n  model · ~/p", "run", "All done."},
		{"one answer", "gemini", "▄80\n > hello agent\n▀80\n✦ Pong from the\n  fake model.\n\n\n                         ? for shortcuts\n═80\n Shift+Tab to accept edits\n▄80\n >   Type your message\n▀80\n ~/p", "hello agent", "Pong from the\nfake model."},
		{"one answer", "opencode", "  ┃\n  ┃  hello agent\n  ┃\n\n     Pong from the\n     fake model.\n\n     ▣  Build · Fake · 2.6s\n\n  ┃\n  ┃\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab", "hello agent", "Pong from the\nfake model."},
		{"lines", "plain", "bob@h:~$ true\nbob@h:~$ ls\na\ntools\n\nb\nbob@h:~$ ", "ls", "a\ntools\n\nb"},
		{"another prompt after it", "plain", "~$ cd /x && ls\na\n/x$ ", "cd /x && ls", "a"},
		{"a command broken over rows", "plain", "$ echo aaaa\nbbbb\naaaabbbb\n$ ", "echo aaaabbbb", "aaaabbbb"},
		{"nothing", "plain", "$ true\n$ ", "true", ""},
		{"several commands", "plain", "$ a=1\n$ ls\nx\n$ ", "ls", "x"},
		{"python", "plain", ">>> 1+1\n2\n>>> ", "1+1", "2"},
	} {
		d, _ := Named(c.driver)
		if got := d.Response(sketch("", c.screen).Lines, c.prompt, false); got != c.want {
			t.Errorf("%s, %s:\n%q, want\n%q", c.driver, c.name, got, c.want)
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
		{"claude", "═100\n❯ \n═100\n", "go", ""},
	} {
		d, _ := Named(c.driver)
		if got := d.Response(sketch("", c.screen).Lines, c.prompt, true); got != c.want {
			t.Errorf("%s, %q:\n%q, want\n%q", c.driver, c.screen, got, c.want)
		}
	}
}

func TestResponsesOfTheCaptures(t *testing.T) {
	for _, file := range []string{"claude-done", "codex-done", "gemini-done", "opencode-done"} {
		if got := driverOf(t, file).Response(look(t, file).Lines, "hello agent", false); got != "Pong from the fake model." {
			t.Errorf("%s: %q", file, got)
		}
	}
}
