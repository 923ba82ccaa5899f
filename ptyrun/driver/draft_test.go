package driver

import (
	"strings"
	"testing"
)

const mail = "[atm from bob id 01J8 · reply: atm reply 01J8]\nplease look at the build,\nit is red since noon"

func TestTaken(t *testing.T) {
	for _, c := range []struct {
		name, driver, screen, text string
		want                       bool
	}{
		{"as it is", "claude", "═100\n❯ [atm from bob id 01J8 · reply: atm reply 01J8]\n  please look at the build,\n  it is red since noon▮\n═100\n", mail, true},
		{"broken over rows", "claude", "═40\n❯ [atm from bob\n  id 01J8 · reply: atm reply 01J8]\n  please▮\n═40\n", mail, true},
		{"a placeholder", "claude", "═100\n❯ [Pasted text #1 +12 lines]▮\n═100\n", mail, true},
		{"an empty box", "claude", "❯ " + strings.ReplaceAll(mail, "\n", "\n  ") + "\n\n═100\n❯ ▮\n═100\n", mail, false},
		{"somebody else's draft", "claude", "═100\n❯ hello▮\n═100\n", mail, false},
		{"a placeholder", "codex", "› [Pasted Content 1149 chars]▮\n\n  model · ~/proj", mail, true},
		{"Chinese", "gemini", "▄80\n > 你好，请看一下构建▮\n▀80\n ~/p", "你好，请看一下构建", true},
		{"a placeholder", "opencode", "  ┃\n  ┃  [Pasted ~13 lines]▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀", mail, true},
		{"a command", "plain", "bob@host:~$ make test▮", "make test", true},
		{"a command broken over rows", "plain", "bob@host:~$ make te\nst all▮", "make test all", true},
		{"a command not yet echoed", "plain", "bob@host:~$ make▮", "make test", false},
	} {
		d, _ := Named(c.driver)
		if got := d.HasInBox(sketch("", c.screen), c.text); got != c.want {
			t.Errorf("%s, %s: %v", c.driver, c.name, got)
		}
	}
}

func TestAccepted(t *testing.T) {
	inTranscript := "❯ " + strings.ReplaceAll(mail, "\n", "\n  ")
	for _, c := range []struct {
		name, driver, title, screen string
		want                        bool
	}{
		{"still in the box", "claude", claudeIdle, "═100\n" + inTranscript + "▮\n═100\n", false},
		{"still in the box of a busy agent", "claude", claudeBusy, "═100\n" + inTranscript + "▮\n═100\n", false},
		{"busy", "claude", claudeBusy, "═100\n❯ ▮\n═100\n", true},
		{"in the transcript, and answered", "claude", claudeIdle, inTranscript + "\n\n● Yes.\n\n═100\n❯ ▮\n═100\n", true},
		{"gone", "claude", claudeIdle, "❯ something else\n\n● Yes.\n\n═100\n❯ ▮\n═100\n", false},
		{"an older message from bob", "claude", claudeIdle, "❯ [atm from bob id 01J7 · reply: atm reply 01J7]\n  please\n\n● Yes.\n\n═100\n❯ ▮\n═100\n", false},
		{"queued", "claude", "", "● word\n\n✶ Wrangling…\n\n" + inTranscript + "\n\n═100\n❯ ▮\n═100\n", true},
		{"swallowed by a dialog", "claude", claudeIdle, "═100\n Bash command\n\n   ls\n" + claudeAsks, false},
		{"followed by a dialog", "claude", claudeIdle, inTranscript + "\n\n● Bash(ls)\n\n═100\n Bash command\n\n   ls\n" + claudeAsks, true},
		{"a placeholder that was sent", "claude", claudeIdle, "❯ [Pasted text #3 +12 lines]\n\n● Yes.\n\n═100\n❯ ▮\n═100\n", true},
		{"in the transcript", "codex", "p", strings.Replace(inTranscript, "❯", "›", 1) + "\n\n• Yes.\n\n› ▮\n\n  model · ~/p", true},
		{"in the transcript", "gemini", "◇  Ready (p)", "▄80\n > [atm from bob id 01J8 · reply: atm reply 01J8]\n   please look at the build,\n   it is red since noon\n▀80\n✦ Yes.\n\n▄80\n > ▮\n▀80\n ~/p", true},
		{"in the transcript", "opencode", "", "  ┃\n  ┃  [atm from bob id 01J8 · reply: atm reply 01J8]\n  ┃  please\n  ┃\n\n     Yes.\n\n  ┃\n  ┃  ▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab agents", true},
	} {
		d, _ := Named(c.driver)
		if got := d.HasAccepted(sketch(c.title, c.screen), mail); got != c.want {
			t.Errorf("%s, %s: %v", c.driver, c.name, got)
		}
	}
}

func TestJunk(t *testing.T) {
	for s, want := range map[string]bool{"62;22c": true, "?62;1;4c": true, "24;80R": true, "62 c": false, "a;c": false, "": false, ";c": false, "1;2;3": false} {
		if claude.IsTerminalAnswer(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
