package driver

import "testing"

const echoer = `
[command]
names = ["echoer"]
[keys]
interrupt = "Ctrl-X Esc"
[screen.busy]
pattern = '^working'
[screen.prompt]
pattern = '^> ?(?P<draft>.*)\z'
`

// A person's file adds an agent, which is read as the built-in ones are.
func TestOwnDriver(t *testing.T) {
	useOwn(t, map[string]string{"echoer.toml": echoer})
	d := ForCommand([]string{"/opt/echoer", "-x"})
	if d.Name != "echoer" || d.Plain || len(d.InterruptKeys()) != 2 || string(d.InterruptKeys()[0]) != "\x18" {
		t.Fatalf("it is %s, with the keys %q", d.Name, d.InterruptKeys())
	}
	for text, want := range map[string]string{
		"> hello\n\n* hi\n\n> ▮": "idle, at its prompt", "> hello\nworking\n\n> ▮": "thinking, busy", "> hel▮": `idle, draft: "hel"`,
		"Shall I?\n\n[y] Yes [n] No": "starting, no prompt on the screen", // nothing in the file says what it asks
	} {
		if got := describe(d.Read(draw("", text), Reading{})); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	if _, _, ok := d.AsData("see @x"); ok {
		t.Error("nothing is known of what it acts on, and an at sign is typed")
	}
}

// A person's file takes the place of a built-in one, unless it has mistakes.
func TestOwnDriverInPlaceOfOurs(t *testing.T) {
	useOwn(t, map[string]string{"claude.toml": echoer, "codex.toml": echoer + "x = 1\n"})
	if d, _ := Named("claude"); len(d.InterruptKeys()) != 2 {
		t.Errorf("claude is not the own one: %+v", d)
	}
	if d, _ := Named("codex"); len(d.InterruptKeys()) != 1 {
		t.Errorf("codex is the one with mistakes: %+v", d)
	}
	if d := ForCommand([]string{"echoer"}); d.Name != "claude" {
		t.Errorf("echoer is %s", d.Name)
	}
}

// A person's file changes what it says of the built-in one that it extends.
func TestExtends(t *testing.T) {
	useOwn(t, map[string]string{"claude.toml": `
extends = "claude"
[keys]
interrupt = "Ctrl-X Esc"
[parts]
foot = '^the end$'
[screen.busy]
pattern = 'the lamp is lit'
`})
	d := builtIn("claude")
	if len(d.InterruptKeys()) != 2 || !d.ForgetsInterruptedPrompt {
		t.Errorf("%+v", d)
	}
	if typed, _, ok := d.AsData("see @x"); !ok || typed != `see \@x` {
		t.Errorf("typed: %q", typed)
	}
	for screen, want := range map[string]string{
		"═\n❯ ▮\n═\n  the lamp is lit":     "thinking, busy",
		"═\n❯ ▮\n═\n  esc to interrupt":    "idle, at its prompt",
		"═\n Which?\n\n ❯ 1. Yes\nthe end": "confirming unknown, dialog\n  \"Which?\\n❯ 1. Yes\\nthe end\"",
	} {
		if got := describe(d.Read(draw("", screen), Reading{})); got != want {
			t.Errorf("%q: %s", screen, got)
		}
	}
}
