package driver

import (
	"strings"
	"testing"
)

const mail = "[atm from bob id 01J8 · reply: atm reply 01J8]\nplease look at the build,\nit is red since noon"

func TestHasInBox(t *testing.T) {
	for _, c := range []struct {
		name, driver, screen, text string
		want                       bool
	}{
		{"as it is", "claude", "═\n❯ [atm from bob id 01J8 · reply: atm reply 01J8]\n  please look at the build,\n  it is red since noon▮\n═\n", mail, true},
		{"broken over rows", "claude", "═\n❯ [atm from bob\n  id 01J8 · reply: atm reply 01J8]\n  please▮\n═\n", mail, true},
		{"what stands for a paste", "claude", "═\n❯ [Pasted text #1 +12 lines]▮\n═\n", mail, true},
		{"longer than the screen", "claude", strings.Repeat("  one more line\n", 27) + "  look at the build,\n  it is red since noon▮\n═", mail, true},
		{"longer than the screen", "codex", strings.Repeat("  one more line\n", 26) + "  look at the build,\n  it is red since noon▮\n\n  model · ~/p", mail, true},
		{"an empty box", "claude", "❯ please\n\n═\n❯ ▮\n═\n", mail, false},
		{"somebody else's draft", "claude", "═\n❯ hello▮\n═\n", mail, false},
		{"what stands for a paste", "codex", "› [Pasted Content 1149 chars]▮\n\n  model · ~/proj", mail, true},
		{"Chinese", "gemini", "▄▄▄▄▄▄▄▄\n > 你好，请看一下构建▮\n▀▀▀▀▀▀▀▀\n ~/p", "你好，请看一下构建", true},
		{"a command", "plain", "bob@host:~$ make test▮", "make test", true},
		{"a command not yet echoed", "plain", "bob@host:~$ make▮", "make test", false},
	} {
		if got := builtIn(c.driver).HasInBox(draw("", c.screen), c.text); got != c.want {
			t.Errorf("%s, %s: %v", c.driver, c.name, got)
		}
	}
}

func TestHasAccepted(t *testing.T) {
	for _, c := range []struct {
		name, title, screen string
		want                bool
	}{
		{"still in the box", "✳ x", "═\n❯ [atm from bob id 01J8 · reply▮\n═\n", false},
		{"still in the box of a busy agent", "◐ x", "═\n❯ [atm from bob id 01J8 · reply▮\n═\n", false},
		{"busy", "◐ x", "═\n❯ ▮\n═\n", true},
		{"at its prompt, which tells nothing", "✳ x", "═\n❯ ▮\n═\n", false},
		{"it asks", "✳ x", "═\n Bash command\n\n   ls" + claudeFoot, true},
	} {
		if got := claude.HasAccepted(draw(c.title, c.screen), mail); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestIsTerminalAnswer(t *testing.T) {
	for s, want := range map[string]bool{"62;22c": true, "?62;1;4c": true, "24;80R": true, "62 c": false, "a;c": false, "": false, ";c": false, "1;2;3": false} {
		if claude.IsTerminalAnswer(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// Two pastes, or words beside one, are not what stands for one paste.
func TestIsPaste(t *testing.T) {
	for draft, want := range map[string]bool{
		"[Pasted text #1 +12 lines]": true, "[Pasted text #1 +12 lines][Pasted text #2 +5 lines]": false, "[Pasted text #1 +12 lines] please look [Image #1]": false,
	} {
		if IsPaste(draft) != want {
			t.Errorf("%q: %v", draft, !want)
		}
	}
}
