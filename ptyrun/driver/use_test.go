package driver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

const echoer = `
[command]
names = ["echoer"]
[keys]
submit = "Ctrl-S"
interrupt = "Ctrl-X Esc"
[screen]
rows = [
  { kind = "busy", pattern = '^working' },
  { kind = "answer", pattern = '^\* ' },
  { kind = "message", pattern = '^> ' },
]
[screen.box]
text = '^> (.*)'
`

// useOwn makes this process use a person's files until the test ends.
func useOwn(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Use(agents.Load(dir))
	t.Cleanup(func() { Use(agents.Load("")) })
}

// A person's file adds an agent, which is read as the built-in ones are.
func TestOwnDriver(t *testing.T) {
	useOwn(t, map[string]string{"echoer.toml": echoer})
	for _, argv := range [][]string{{"echoer"}, {"/opt/echoer", "-x"}} {
		if d := ForCommand(argv); d.Name != "echoer" || d.Plain {
			t.Errorf("%q is %s", argv, d.Name)
		}
	}
	for _, argv := range [][]string{{"bash"}, {"/bin/bash"}} {
		if d := ForCommand(argv); d.Name != "plain" {
			t.Errorf("%q is %s", argv, d.Name)
		}
	}
	d, _ := Named("echoer")
	if len(d.InterruptKeys()) != 2 || string(d.InterruptKeys()[0]) != "\x18" {
		t.Fatalf("it is %s, with the keys %q", d.Name, d.InterruptKeys())
	}
	if d.SubmitKeys() != "\x13" || builtIn("claude").SubmitKeys() != "\r" {
		t.Errorf("a text is sent with %q", d.SubmitKeys())
	}
	for text, want := range map[string]Reading{
		"> hello\n\n* hi\n\n> ▮":        {Activity: reducer.Idle, Prompt: true},
		"> hello\nworking\n\n> ▮":       {Activity: reducer.Thinking},
		"> hel▮":                        {Activity: reducer.Idle, HasDraft: true},
		"Shall I?\n\n> 1. Yes\n  2. No": {Activity: reducer.Confirming},
	} {
		if r := d.Read(sketch("", text), Reading{}); r.Activity != want.Activity || r.Prompt != want.Prompt || r.HasDraft != want.HasDraft {
			t.Errorf("%q: %+v", text, r)
		}
	}
	if got := d.Response(sketch("", "> hello\n\n* hi\n\n> "), "hello", false); got != "hi" {
		t.Errorf("the answer is %q", got)
	}
	if _, _, ok := d.AsData("see @x"); ok {
		t.Error("nothing is known of what it acts on, and an at sign is typed")
	}
	// A dialog of it is answered by a person: nothing in the file says what it asks for.
	if q := d.Read(sketch("", "Shall I?\n\n> 1. Yes\n  2. No"), Reading{}).Dialog; q == nil {
		t.Errorf("%+v", q)
	} else if o, err := q.Pick(ask.Answer{}); err == nil {
		t.Errorf("%+v is allowed", o)
	}
}

// A person's file takes the place of a built-in one, unless it has mistakes.
func TestOwnDriverInPlaceOfOurs(t *testing.T) {
	useOwn(t, map[string]string{"claude.toml": echoer, "codex.toml": echoer + "x = 1\n"})
	if d, _ := Named("claude"); len(d.InterruptKeys()) != 2 || d.spoken != nil {
		t.Errorf("claude is not the own one: %+v", d)
	}
	if d, _ := Named("codex"); len(d.InterruptKeys()) != 1 {
		t.Errorf("codex is the one with mistakes: %+v", d)
	}
	if d := ForCommand([]string{"echoer"}); d.Name != "claude" {
		t.Errorf("echoer is %s", d.Name)
	}
}
