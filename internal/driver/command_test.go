package driver

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/driver/agents"
)

// A program is known by its name. What starts it, and a wrapper, have another one.
func TestForCommand(t *testing.T) {
	for command, want := range map[string]string{
		"claude":                         "claude",
		"/usr/local/bin/claude --resume": "claude",
		"cursor-agent --model x":         "cursor",
		"cn":                             "continue",
		"bash":                           "plain",
		"-zsh":                           "plain",
		"/bin/sh -l":                     "plain",
		"bash --rcfile x -o vi -i":       "plain",
		"python3 -i claude":              "plain",
		"python3.12":                     "plain",
		"node":                           "plain",
		"sqlite3 x.db":                   "plain",
		"psql -h x y":                    "plain",
		"bash --norc claude":             "none",
		"sh -c read":                     "none",
		"bash -lic read":                 "none",
		"zsh ask.zsh":                    "none",
		"python3 gnusto":                 "none",
		"python3 gnusto -i":              "none",
		"python3 -m gnusto":              "none",
		"python3 -cinput()":              "none",
		"node -r x app.js":               "none",
		"env A=1 codex":                  "none",
		"npx @openai/codex":              "none",
		"sudo -u bob bash":               "none",
		"ssh host":                       "none",
		"docker run -it x bash":          "none",
		"basher":                         "none",
		"claudette":                      "none",
		"echo claude":                    "none",
		"":                               "none",
	} {
		if got := ForCommand(strings.Fields(command)).Name; got != want {
			t.Errorf("%q is %s, want %s", command, got, want)
		}
	}
}

// Two agents that are Codex must not share its server: it gives both the environment of one, and ends with that one.
func TestUnshared(t *testing.T) {
	for command, want := range map[string]string{
		"codex":                            "codex --no-daemon",
		"env A=1 /opt/codex resume --last": "env A=1 /opt/codex --no-daemon resume --last",
		"codex -m x --no-daemon":           "codex -m x --no-daemon",
		"codex --remote unix://":           "codex --remote unix://",
		"codex exec -m x":                  "codex --no-daemon exec -m x",
		"codex -m review -c a=b resume":    "codex --no-daemon -m review -c a=b resume",
		"codex -p x app-server":            "codex --no-daemon -p x app-server",
		"codex review":                     "codex --no-daemon review",
		"run DIR codex -m x":               "run DIR codex --no-daemon -m x",
		"run codex.log":                    "run codex.log",
		"":                                 "",
	} {
		if got := strings.Join(builtIn("codex").Unshared(strings.Fields(command)), " "); got != want {
			t.Errorf("%q becomes %q, want %q", command, got, want)
		}
	}
	if got := builtIn("claude").Unshared([]string{"claude"}); len(got) != 1 {
		t.Errorf("Claude Code gets %q", got)
	}
}

// The arguments that continue a conversation stand right after the program, wherever that is in the command; behind the
// arguments of a wrapper of another name. A command that says itself which one it continues, or draws no conversation, stays.
func TestResume(t *testing.T) {
	for _, c := range []struct{ driver, command, id, want, err string }{
		{"claude", "claude", "s1", "claude --resume s1", ""},
		{"claude", "npx -y @anthropic-ai/claude-code --model x", "s1", "npx -y @anthropic-ai/claude-code --resume s1 --model x", ""},
		{"claude", "./wrapper --model x", "s1", "./wrapper --model x --resume s1", ""},
		{"codex", "npm exec -- @openai/codex", "s1", "npm exec -- @openai/codex resume s1", ""},
		{"codex", "npx @openai/codex@latest", "s1", "npx @openai/codex@latest resume s1", ""},
		{"codex", "env A=b /opt/codex -m x", "s1", "env A=b /opt/codex resume s1 -m x", ""},
		{"codex", "./run DIR codex -m x", "s1", "./run DIR codex resume s1 -m x", ""},
		{"opencode", "opencode /project", "ses_1", "opencode --session ses_1 /project", ""},
		{"gemini", "gemini -y", "s1", "gemini --resume s1 -y", ""},
		{"claude", "claude --resume=x", "s1", "claude --resume=x", ErrChosen.Error()},
		{"claude", "claude -c", "s1", "claude -c", ErrChosen.Error()},
		{"claude", "./wrapper -c", "s1", "./wrapper -c", ErrChosen.Error()},
		{"codex", "env A=b codex -c a=b resume x", "s1", "env A=b codex -c a=b resume x", ErrChosen.Error()},
		{"codex", "codex exec hi", "s1", "codex exec hi", ErrChosen.Error()},
		{"codex", "codex -c a=b", "s1", "codex resume s1 -c a=b", ""},
		{"claude", "claude", "--dangerous", "claude", `"--dangerous" is no id of a conversation`},
		{"claude", "claude", "", "claude", "nothing has told the id of its conversation"},
		{"plain", "bash", "s1", "bash", "plain cannot continue a conversation"},
		{"none", "wrapper claude", "s1", "wrapper claude", ErrUnknown.Error()},
		{"none", "", "s1", "", ErrUnknown.Error()},
	} {
		got, err := builtIn(c.driver).Resume(strings.Fields(c.command), c.id, "")
		why := ""
		if err != nil {
			why = err.Error()
		}
		if strings.Join(got, " ") != c.want || why != c.err {
			t.Errorf("%s, %q with %q becomes %q (%s), want %q (%s)", c.driver, c.command, c.id, got, why, c.want, c.err)
		}
	}
	codex := builtIn("codex")
	if got, err := codex.Resume([]string{"codex"}, "s1", "claude"); len(got) > 1 || err == nil || err.Error() != "its last conversation was one of claude" {
		t.Errorf("after Claude Code, Codex: %q, %v", got, err)
	}
	for _, last := range []string{"codex", agents.None} { // of the second nobody had said which it was
		if got, err := codex.Resume([]string{"codex"}, "s1", last); len(got) != 3 || err != nil {
			t.Errorf("after %s, Codex: %q, %v", last, got, err)
		}
	}
	useOwn(t, map[string]string{"echoer.toml": echoer})
	if _, err := ForCommand([]string{"echoer"}).Resume([]string{"echoer"}, "s1", ""); err == nil || err.Error() != "echoer cannot continue a conversation" {
		t.Errorf("an agent without [resume]: %v", err)
	}
}
