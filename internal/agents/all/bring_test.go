//go:build linux || darwin

package all

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/agents"
)

func TestBring(t *testing.T) {
	const dir = "/srv/.atm/main/bob/run/hooks"
	for _, test := range []struct {
		command, env string
		file         string
		args, added  []string
		why          string
	}{
		{"claude --model x", "", dir + "/claude.json", []string{"--settings=" + dir + "/claude.json", "--name=bob"}, []string{"ATM_HOOKS=" + dir + "/claude.json"}, ""},
		{"/opt/claude -p hi", "", dir + "/claude.json", []string{"--settings=" + dir + "/claude.json", "--name=bob"}, []string{"ATM_HOOKS=" + dir + "/claude.json"}, ""},
		{"claude --name=ours", "", dir + "/claude.json", []string{"--settings=" + dir + "/claude.json"}, []string{"ATM_HOOKS=" + dir + "/claude.json"}, ""},
		{"claude --settings x.json", "", "", nil, nil, "it has --settings of its own"},
		{"claude --settings={}", "", "", nil, nil, "it has --settings of its own"},
		{"env claude", "", "", nil, nil, ""},
		{"codex", "", "", nil, nil, ""},
		{"sh claude", "", "", nil, nil, ""},
		{"opencode", "", dir + "/opencode.js", nil, []string{
			`OPENCODE_CONFIG_CONTENT={"plugin":["file://` + dir + `/opencode.js"]}`, "ATM_HOOKS=" + dir + "/opencode.js"}, ""},
		{"opencode", `OPENCODE_CONFIG_CONTENT={"model":"m", /* mine */ "plugin":["own"]}`, dir + "/opencode.js", nil, []string{
			`OPENCODE_CONFIG_CONTENT={"model":"m","plugin":["own","file://` + dir + `/opencode.js"]}`, "ATM_HOOKS=" + dir + "/opencode.js"}, ""},
		{"opencode", `OPENCODE_CONFIG_CONTENT=[]`, "", nil, nil, "OPENCODE_CONFIG_CONTENT is set, and not to a JSON object"},
		{"gemini", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/x", "", nil, nil, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH is set"},
	} {
		b, why := Bring("/opt/a b/atm", "bob", strings.Fields(test.command), []string{test.env}, "/srv/.atm/main/bob")
		if b.File != test.file || why != test.why || cmp.Diff(b.Args, test.args) != "" || cmp.Diff(b.Env, test.added) != "" {
			t.Errorf("%s, %s: %q %q %q, %q", test.command, test.env, b.File, b.Args, b.Env, why)
		}
		if b.File != "" && (!strings.Contains(b.Text, "/opt/a b/atm") || !strings.Contains(b.Text, "--brought")) {
			t.Errorf("%s: the file does not call this atm: %s", test.command, b.Text)
		}
		if b.File == "" {
			continue
		}
		// An agent that this one runs does not get its hooks.
		env := WithoutBrought(append([]string{"A=b", test.env}, b.Env...))
		left, _ := Bring("/opt/a b/atm", "bob", strings.Fields(test.command), env, "/other")
		if strings.Contains(strings.Join(append(env, left.Env...), " "), dir) {
			t.Errorf("%s: it is still there: %q, %q", test.command, env, left.Env)
		}
	}
}

func TestIsBrought(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string { return agents.ValueOf(pairs, name) }
	}
	arguments := func(words ...string) func() []string { return func() []string { return words } }
	for _, test := range []struct {
		tool      string
		env       func(string) string
		arguments func() []string
		want      bool
	}{
		{"claude", env("ATM_HOOKS=/r/claude.json"), arguments("claude", "--settings=/r/claude.json"), true},
		{"claude", env("ATM_HOOKS=/r/claude.json"), arguments("claude", "-p"), false}, // started in its shell
		{"claude", env(), arguments("claude", "--settings=/r/claude.json"), false},
		{"opencode", env("ATM_HOOKS=/r/opencode.js"), arguments(), true},
		{"opencode", env("ATM_HOOKS=/r/claude.json"), arguments(), false},
		{"gemini", env("ATM_HOOKS=/r/gemini.json", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/r/gemini.json"), arguments(), true},
		{"codex", env("ATM_HOOKS=/r/claude.json"), arguments(), false},
	} {
		if got := IsBrought(test.tool, test.env, test.arguments); got != test.want {
			t.Errorf("%s: %v", test.tool, got)
		}
	}
}
