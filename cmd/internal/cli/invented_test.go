package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const asAtm = "ATM_TEST_AS_ATM" // has the test's own program be atm, with zork linked

func TestMain(m *testing.M) {
	if os.Getenv(asAtm) != "" {
		all.Vendors = append(all.Vendors, zork)
		os.Exit(Run("0.1.0", os.Args[1:]))
	}
	os.Exit(m.Run())
}

// zork is an invented agent.
var zork = &agents.Vendor{
	Name: "zork",
	Configuration: &agents.Configuration{
		Hooks: agents.HookSet{Events: []string{"Asked", "Done"}, Timeout: 10},
		Plugin: &agents.Plugin{
			Add: [][]string{{"zork", "take", "$DIR"}}, Remove: [][]string{{"zork", "drop"}},
			Files:      func(p *agents.PluginParts) map[string]string { return map[string]string{"hooks.json": p.Hooks} },
			SwitchedIn: agents.Place{Home: ".zork", Path: "plugins.json"}, Switch: "/atm", On: "on",
		},
		Writable: &agents.List{Place: agents.Place{Home: ".zork", Path: "settings.json"}, Pointer: "/sandbox/writable"},
	},
	Parsers: map[string]func(*agents.Call){"zork": func(c *agents.Call) {
		c.Identify(c.In.Text("session"), c.In.Text("event"), c.In.Text("turn"))
		switch c.Kind {
		case "Asked":
			c.ReplyAs, c.ProvesReceipt, c.BeginsTurn = agents.AsContext, true, true
			c.StartTurn(c.In.Text("prompt"))
		case "Done":
			c.EndTurn("completed", c.Turn, c.In.Text("answer"))
		}
	}},
	Answer: func(c *agents.Call, text string) any { return c.Document(text) },
	Ways:   []agents.Way{{By: "bell", At: []string{agents.AtIdle}}, {By: agents.ByHook, At: []string{agents.AtBusy}}},
	Session: func(p agents.Process) (*agents.Session, error) {
		return &agents.Session{ID: p.Conversation, Activity: reducer.Idle, Open: func(string) (delivery.Way, error) { return bell{}, nil }}, nil
	},
}

// bell is zork's own way: a file that it looks at.
type bell struct{}

func (bell) Look(context.Context) error { return nil }
func (bell) Put(_ context.Context, t delivery.Text) error {
	return os.WriteFile(filepath.Join(os.Getenv("HOME"), ".zork", "bell"), []byte(t.Body), 0o600)
}
func (bell) Has(context.Context, wire.ID) (bool, error)      { return false, delivery.ErrSilent }
func (bell) TakeBack(context.Context, wire.ID) (bool, error) { return false, nil }

// A vendor that is linked is installed, called, given mail and shown, with nothing else changed.
func TestInventedVendor(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(dir, "home"), filepath.Join(dir, "project")
	for _, d := range []string{home, project} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program := "#!/bin/sh\nmkdir -p \"$HOME/.zork\"\ncase $1 in take) cp \"$2/hooks.json\" \"$HOME/.zork\"; echo '{\"atm\": \"on\"}' ;; *) rm -f \"$HOME/.zork/hooks.json\"; echo {} ;; esac >\"$HOME/.zork/plugins.json\"\n"
	if err := os.WriteFile(filepath.Join(dir, "zork"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	atm := func(in string, words ...string) string {
		t.Helper()
		c := exec.Command(os.Args[0], words...)
		c.Dir, c.Stdin = project, strings.NewReader(in)
		c.Env = []string{asAtm + "=1", "HOME=" + home, "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "TMPDIR=" + dir}
		out, err := c.Output()
		if err != nil {
			t.Fatalf("atm %q: %v: %s%s", words, err, out, err.(*exec.ExitError).Stderr)
		}
		return string(out)
	}
	atm("", "init", "alice", "bob")
	atm("", "install", "zork")
	if hooks, err := os.ReadFile(filepath.Join(home, ".zork", "hooks.json")); err != nil || strings.Count(string(hooks), " hook zork") != 2 {
		t.Errorf("%s, %v", hooks, err)
	}
	if settings, err := os.ReadFile(filepath.Join(home, ".zork", "settings.json")); err != nil || !strings.Contains(string(settings), `"writable"`) {
		t.Errorf("%s, %v", settings, err)
	}
	atm("", "send", "bob", "rebase, please", "--as", "alice")
	asked := `{"session": "s1", "event": "Asked", "turn": "t1", "prompt": "go on"}`
	if out := atm(asked, "hook", "zork", "--as", "bob"); !strings.Contains(out, "rebase, please") {
		t.Errorf("no mail goes out: %q", out)
	}
	if out := atm("", "status", "bob"); !strings.Contains(out, "busy") {
		t.Errorf("bob is %q", out)
	}
	atm(`{"session": "s1", "event": "Done", "turn": "t1", "answer": "done"}`, "hook", "zork", "--as", "bob")
	if out := atm("", "status", "bob"); !strings.Contains(out, "idle") {
		t.Errorf("bob is %q", out)
	}
	if out := atm("", "send", "bob", "once more", "--as", "alice"); !strings.Contains(out, "handed over now") {
		t.Errorf("sent: %q", out)
	}
	if rung, err := os.ReadFile(filepath.Join(home, ".zork", "bell")); !strings.Contains(string(rung), "once more") {
		t.Errorf("%q, %v", rung, err)
	}
	atm("", "uninstall", "zork")
	for _, name := range []string{"hooks.json", "settings.json"} {
		if _, err := os.Stat(filepath.Join(home, ".zork", name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}
