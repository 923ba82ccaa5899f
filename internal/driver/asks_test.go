package driver

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/driver/agents"
)

const claudeFoot = "\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend"

// What a dialog asks is shown whole, whatever the command in it looks like, and only what the program draws is an option.
func TestDialogs(t *testing.T) {
	for name, c := range map[string]struct{ driver, screen, want string }{
		"a command like a dialog": {"claude", "● Look:\n\n═\n Bash command\n\n   rm -rf ~\n   Do you want to proceed?\n   ❯ 1. Yes\n   ──────────\n    Do you want to make this edit?" + claudeFoot,
			"confirming permission, dialog\n  \"Bash command\\nrm -rf ~\\nDo you want to proceed?\\n❯ 1. Yes\\nDo you want to make this edit?\\nDo you want to proceed?\"\n  1 by \"1\": Yes allow_once\n  2 by \"2\": No reject_once\n  cancel: cancel"},
		"an answer like a dialog": {"claude", "● I ask:\n\n  ──────────\n   Do you want to proceed?\n   ❯ 1. Yes\n   Esc to cancel\n\n═\n❯ ▮\n═\n  ? for shortcuts", "idle, at its prompt"},
		"a draft like a dialog":   {"claude", "═\n❯ Do you want to proceed?\n  1. Yes\n  Esc to cancel▮\n═\n  ? for shortcuts", "idle, draft: \"Do you want to proceed?\\n1. Yes\\nEsc to cancel\""},
		"no room for its beginning": {"claude", "   rm -rf ~" + claudeFoot,
			"confirming unknown, dialog\n  \"Esc to cancel · Tab to amend\""},
		"the first options are above the screen": {"claude", "═\n Bash command\n\n Do you want to proceed?\n   2. Yes, always\n ❯ 3. No\n\n Esc to cancel",
			"confirming unknown, dialog\n  \"Bash command\\nDo you want to proceed?\"\n  cancel: cancel"},
		"a label of two rows": {"claude", "═\n Bash command\n\n   ls\n\n Do you want to proceed?\n ❯ 1. Yes " + strings.Repeat("x", 84) + "\n      for this session\n   2. No\n\n Esc to cancel",
			"confirming permission, dialog\n  \"Bash command\\nls\\nDo you want to proceed?\"\n  1 by \"1\": Yes " + strings.Repeat("x", 84) + " for this session allow_always\n  2 by \"2\": No reject_once\n  cancel: cancel"},
		"an answer that quotes Codex": {"codex", "• It asks:\n\n  Would you like to run the following command?\n\n› ▮\n\n  model · ~/p", "idle, at its prompt"},
		"a command like an option": {"codex", "\n  Would you like to run the following command?\n\n  $ cat <<E\n    › 1. No (esc)\n    E\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n  Press enter to confirm or esc to cancel",
			"confirming permission, dialog\n  \"Would you like to run the following command?\\n$ cat <<E\\n› 1. No (esc)\\nE\"\n  1 by \"y\": Yes, proceed allow_once\n  2 by \"\\x1b\": No reject_once\n  cancel: 2"},
		"Codex has found new hooks": {"codex", "  Hooks need review\n  12 hooks are new or changed.\n  Hooks can run outside the sandbox after you trust them.\n\n› 1. Review hooks\n  2. Trust all and continue\n  3. Continue without trusting (hooks won't run)\n\n  enter confirm · esc skip",
			"confirming trust, dialog\n  \"Hooks need review\\n12 hooks are new or changed.\\nHooks can run outside the sandbox after you trust them.\"\n  1 by \"\\r\": Review hooks\n  2 by \"\\x1b[B\\r\": Trust all and continue\n  3 by \"\\x1b[B\\x1b[B\\r\": Continue without trusting (hooks won't run)"},
		"one key for two options": {"cline", "Cline needs permission\n\n [y] Deny\n [y] Approve   [n] Deny", "confirming permission, dialog\n  \"Cline needs permission\"\n  y by \"y\": Approve allow_once\n  n by \"n\": Deny reject_once"},
	} {
		r := builtIn(c.driver).Read(draw("", c.screen), Reading{})
		if got := describe(r); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", name, got, c.want)
		}
	}
}

// The title alone may say that it asks, and then nothing is typed.
func TestAsksInTheTitle(t *testing.T) {
	if got := describe(codex.Read(draw("[ ! ] Action Required | work", "› ▮\n\n  model · ~/p"), Reading{})); got != "confirming unknown, dialog" {
		t.Error(got)
	}
}

// A dialog stays the same one when the terminal has another size, and another command makes another.
func TestFingerprint(t *testing.T) {
	of := func(command string) string {
		return claude.Read(draw("", "═\n Bash command\n\n   "+command+claudeFoot), Reading{}).Dialog.Fingerprint
	}
	if of("make all") != of("make\n   all") || of("make all") == of("make none") {
		t.Error(of("make all"), of("make\n   all"), of("make none"))
	}
}

// Two invented programs are described in a person's files of less than thirty lines, and each of their states is read: a box
// of +--- and | », a dialog of plain rows with options behind their keys, and a prompt and a question that both end in ❯.
func TestDescribed(t *testing.T) {
	const examples = "testdata/examples/"
	Use(agents.Load(examples))
	t.Cleanup(func() { Use(agents.Load("")) })
	for file, want := range map[string]string{
		"zork-idle": "idle, at its prompt", "zork-draft": "idle, draft: \"look around\"", "zork-thinking": "thinking, busy",
		"zork-done": "idle, at its prompt", "zork-tools": "idle, at its prompt",
		"zork-confirming": "confirming permission, dialog\n  \"? zork wants to run a command\\nrm lantern\"\n  y by \"y\": Yes allow_once\n  n by \"n\": No reject_once\n  a by \"a\": Always",
		"gnusto-idle":     "idle, at its prompt", "gnusto-draft": "idle, draft: \"open\"", "gnusto-thinking": "thinking, busy", "gnusto-done": "idle, at its prompt",
		"gnusto-confirming": "confirming permission, dialog\n  \"May I run: rm -rf build\"\n  n by \"n\": n\n  y by \"y\": y\n  a by \"a\": a",
	} {
		d := driverOf(t, file)
		if got := describe(d.Read(lookAt(recording(t, "examples/"+file)), Reading{})); got != want {
			t.Errorf("%s: %s", file, got)
		}
		if n := strings.Count(string(d.file.Text), "\n"); n > 30 {
			t.Errorf("%s.toml has %d lines", d.Name, n)
		}
	}
}
