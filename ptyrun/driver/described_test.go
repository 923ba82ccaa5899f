package driver

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

const examples = "testdata/examples/"

// example returns the screen of a recording of an invented program.
func example(t *testing.T, file string) Look {
	t.Helper()
	b, err := os.ReadFile(examples + file + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	s := screen.New(100, 30, 100)
	s.Write(b)
	return LookAt(s)
}

// Two invented programs are described in a person's files of less than thirty lines, and each of their states is read: a box
// of +--- and | », a dialog of plain rows with options behind their keys, and a prompt and a question that both end in ❯.
func TestDescribed(t *testing.T) {
	Use(agents.Load(examples))
	t.Cleanup(func() { Use(agents.Load("")) })
	for _, c := range []struct{ file, want, dialog string }{
		{"zork-idle", `idle, prompt true, draft "", answer ""`, ""},
		{"zork-draft", `idle, prompt false, draft "look around", answer ""`, ""},
		{"zork-thinking", `thinking, prompt false, draft "", answer ""`, ""},
		{"zork-done", `idle, prompt true, draft "", answer "You said: look around\nIt is pitch black."`, ""},
		{"zork-tools", `idle, prompt true, draft "", answer "You said: ASK lantern\nIt is pitch black."`, ""},
		{"zork-confirming", `confirming, prompt false, draft "", answer ""`,
			"permission\ny \"y\" Yes allow_once\nn \"n\" No reject_once\na \"a\" Always allow_always"},
		{"gnusto-idle", `idle, prompt true, draft "", answer ""`, ""},
		{"gnusto-draft", `idle, prompt false, draft "open", answer ""`, ""},
		{"gnusto-thinking", `thinking, prompt false, draft "", answer ""`, ""},
		{"gnusto-done", `idle, prompt true, draft "", answer "It is done."`, ""},
		{"gnusto-confirming", `confirming, prompt false, draft "", answer ""`,
			"permission\nn \"n\" n reject_once\ny \"y\" y allow_once\na \"a\" a allow_always"},
	} {
		d := driverOf(t, c.file)
		l := example(t, c.file)
		r := d.Read(l, Reading{})
		if got := fmt.Sprintf("%s, prompt %v, draft %q, answer %q", r.Activity, r.Prompt, r.Draft, d.Response(l, "", false)); got != c.want {
			t.Errorf("%s: %s", c.file, got)
		}
		if got := brief(r.Dialog); c.dialog != "" && got != c.dialog || c.dialog == "" && r.Dialog != nil {
			t.Errorf("%s: %s", c.file, got)
		}
		if text := string(d.file.Text); strings.Count(text, "\n") > 30 {
			t.Errorf("%s.toml has %d lines", d.Name, strings.Count(text, "\n"))
		}
	}
}

// A dialog that a file does not describe is no state: not the one before it.
func TestUndescribedDialog(t *testing.T) {
	for _, name := range []string{"zork", "gnusto"} {
		text, err := os.ReadFile(examples + name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		bare, _, _ := strings.Cut(string(text), "[screen.dialog]")
		file, mistakes := agents.Parse(name, []byte(bare))
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		for _, before := range []reducer.Activity{reducer.Idle, reducer.Thinking, reducer.Responding} {
			if r := newDriver(file).Read(example(t, name+"-confirming"), Reading{Activity: before}); r.Activity != reducer.Unknown || r.Prompt {
				t.Errorf("%s, after %s: %s, prompt %v", name, before, r.Activity, r.Prompt)
			}
		}
	}
}

// A question that fits the pattern of a prompt is no prompt.
func TestQuestionLikeAPrompt(t *testing.T) {
	text, err := os.ReadFile(examples + "gnusto.toml")
	if err != nil {
		t.Fatal(err)
	}
	file, mistakes := agents.Parse("gnusto", []byte(strings.Replace(string(text), "'^spells ❯ (.*)'", "'❯ (.*)'", 1)))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	d := newDriver(file)
	for name, want := range map[string]string{"confirming": "confirming false", "idle": "idle true", "done": "idle true", "draft": "idle false"} {
		if r := d.Read(example(t, "gnusto-"+name), Reading{}); fmt.Sprint(r.Activity, " ", r.Prompt) != want {
			t.Errorf("%s: %s %v", name, r.Activity, r.Prompt)
		}
	}
}

// Two options with one key were not drawn as options: a command may look like one.
func TestKeyTwice(t *testing.T) {
	useOwn(t, map[string]string{"cline.toml": "extends = \"cline\"\n"})
	cline := builtIn("cline")
	for screen, want := range map[string]string{
		"Cline needs permission\n\n x\n\n [y] Approve   [n] Deny":      "permission\ny \"y\" Approve allow_once\nn \"n\" Deny reject_once",
		"Cline needs permission\n\n x\n\n [y] Approve\n [n] Deny":      "permission\ny \"y\" Approve allow_once\nn \"n\" Deny reject_once",
		"Cline needs permission\n\n [y] Deny\n [y] Approve\n [n] Deny": "permission",
		"Cline needs permission\n\n [y] Deny\n [y] Approve   [n] Deny": "permission\ny \"y\" Approve allow_once\nn \"n\" Deny reject_once",
	} {
		if got := brief(cline.Read(sketch("", screen), Reading{}).Dialog); got != want {
			t.Errorf("%s:\n%s", screen, got)
		}
	}
}

// A person's file changes what it says of the built-in one that it extends.
func TestExtends(t *testing.T) {
	useOwn(t, map[string]string{"claude.toml": `
extends = "claude"
[keys]
submit = "Ctrl-S"
[parts]
limits = 'The well is dry'
[screen]
rows = [{ kind = "note", pattern = '^● Moved' }]
[screen.box]
text = '^(?:❯|»») (.*)'
below = [{ text = "the lamp is out", means = "help is open" }]
`})
	d := builtIn("claude")
	if d.SubmitKeys() != "\x13" || len(d.InterruptKeys()) != 1 || !d.ForgetsInterruptedPrompt || d.spoken == nil {
		t.Errorf("%+v", d)
	}
	if typed, _, ok := d.AsData("see @x"); !ok || typed != `see \@x` {
		t.Errorf("typed: %q", typed)
	}
	for screen, want := range map[string]string{
		"❯ hi\n\n● Moved\n\n═100\n»» dig▮\n═100\n":      `idle "dig" draft`,
		"❯ hi\n\n═100\n❯ ▮\n═100\n the lamp is out":     `idle "" help is open`,
		"❯ hi\n\n═100\n❯ ▮\n═100\n esc to interrupt":    `thinking "" busy`,
		"═100\n Bash command\n\n   ls\n" + claudeAsks:   `confirming "" dialog`,
		"❯ hi\n  ⎿  The well is dry\n\n═100\n❯ ▮\n═100": `limited "" `,
	} {
		l := sketch("", screen)
		l.styled = -1
		if r := d.Read(l, Reading{}); fmt.Sprintf("%s %q %s", r.Activity, r.Draft, r.NotPromptReason) != want {
			t.Errorf("%s: %s %q %s, want %s", screen, r.Activity, r.Draft, r.NotPromptReason, want)
		}
	}
	if got := d.Response(sketch("", "❯ hi\n\n● Yes.\n\n● Moved\n\n═100\n❯ ▮\n═100\n"), "hi", false); got != "Yes." {
		t.Errorf("the answer is %q", got)
	}
}
