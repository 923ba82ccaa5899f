package driver

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
)

func TestForCommand(t *testing.T) {
	for command, want := range map[string]string{
		"claude":                                               "claude",
		"/usr/local/bin/claude --resume x":                     "claude",
		"env -u CI A=1 codex":                                  "codex",
		"nice -n 5 codex":                                      "codex",
		"npx -y @google/gemini-cli@latest":                     "gemini",
		"npx @qwen-code/qwen-code":                             "qwen",
		"cursor-agent --model x":                               "cursor",
		"npx @ampcode/cli":                                     "amp",
		"npx -y droid":                                         "droid",
		"npx --package x opencode-ai":                          "opencode",
		"npm exec -- @openai/codex":                            "codex",
		"pnpm dlx @anthropic-ai/claude-code":                   "claude",
		"node --inspect /opt/bin/opencode":                     "opencode",
		"node -r x /a/node_modules/@openai/codex/bin/codex.js": "codex",
		"npx cline":                                            "cline",
		"npx @continuedev/cli":                                 "continue",
		"npx @kilocode/cli":                                    "kilo",
		"npx @github/copilot":                                  "copilot",
		"npx @earendil-works/pi-coding-agent":                  "pi",
		"node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js": "claude",
		"sudo -u bob setsid codex":                                    "codex",
		"bash":                                                        "plain",
		"-zsh":                                                        "plain",
		"/bin/sh -l":                                                  "plain",
		"bash --rcfile x -o vi -i":                                    "plain",
		"env -i PS1=$ PATH=/bin sh":                                   "plain",
		"nohup busybox sh":                                            "plain",
		"python3 -i claude":                                           "plain",
		"python3.12":                                                  "plain",
		"node":                                                        "plain",
		"sqlite3 x.db":                                                "plain",
		"psql -h x y":                                                 "plain",
		"bash --norc claude":                                          "none",
		"sh -c read":                                                  "none",
		"bash -lic read":                                              "none",
		"zsh ask.zsh":                                                 "none",
		"python3 gnusto":                                              "none",
		"python3 gnusto -i":                                           "none",
		"python3 -m gnusto":                                           "none",
		"python3 -cinput()":                                           "none",
		"node -r x app.js":                                            "none",
		"npx -y node-thing node":                                      "none",
		"sudo -u bob bash":                                            "none",
		"ssh host":                                                    "none",
		"docker run -it x bash":                                       "none",
		"basher":                                                      "none",
		"./real-agents/run DIR claude":                                "none",
		"claudette":                                                   "none",
		"echo claude":                                                 "none",
		"env":                                                         "none",
		"":                                                            "none",
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
		"codex exec -m x":                  "codex exec -m x",
		"codex -m review -c a=b resume":    "codex --no-daemon -m review -c a=b resume",
		"codex -p x app-server":            "codex -p x app-server",
		"codex review":                     "codex review",
		"claude --resume x":                "claude --resume x",
		"run DIR codex":                    "run DIR codex",
		"make codex":                       "make codex",
		"":                                 "",
	} {
		if got := strings.Join(Unshared(strings.Fields(command), false), " "); got != want {
			t.Errorf("%q becomes %q, want %q", command, got, want)
		}
	}
	for command, want := range map[string]string{
		"run DIR codex -m x":    "run DIR codex --no-daemon -m x",
		"run DIR codex exec hi": "run DIR codex exec hi",
		"run DIR claude":        "run DIR claude",
		"run DIR":               "run DIR",
		"run codex.log":         "run codex.log",
	} {
		if got := strings.Join(Unshared(strings.Fields(command), true), " "); got != want {
			t.Errorf("the script %q becomes %q, want %q", command, got, want)
		}
	}
}

// An agent that would share a server gets one of its own, unless its command says otherwise or cannot use it.
func TestWithServer(t *testing.T) {
	const unix = "unix:///d/s"
	for _, c := range []struct{ command, server, program string }{
		{"codex", "codex app-server --listen " + unix, "codex --remote " + unix + " -C ."},
		{"env A=1 /opt/codex resume --last", "env A=1 /opt/codex app-server --listen " + unix, "env A=1 /opt/codex --remote " + unix + " -C . resume --last"},
		{"npx @openai/codex -m review -c a=b", "npx @openai/codex app-server --listen " + unix, "npx @openai/codex --remote " + unix + " -C . -m review -c a=b"},
		{"codex resume -C /x", "codex app-server --listen " + unix, "codex --remote " + unix + " resume -C /x"},
		{"codex --no-daemon", "", ""},
		{"codex --remote unix://", "", ""},
		{"codex exec -m x", "", ""},
		{"codex -p x app-server", "", ""},
		{"codex login", "", ""},
		{"codex --add-dir /x", "", ""},
		{"codex --worktree", "", ""},
		{"codex -c sandbox_workspace_write.writable_roots=[]", "", ""},
		{"run DIR codex", "", ""},
		{"claude", "", ""},
		{"bash", "", ""},
		{"", "", ""},
	} {
		server, program, ok := WithServer(strings.Fields(c.command), false, "/d/s")
		if ok != (c.server != "") || ok && (strings.Join(server, " ") != c.server || strings.Join(program, " ") != c.program) {
			t.Errorf("%q: %q and %q, %v", c.command, server, program, ok)
		}
	}
	server, program, ok := WithServer(strings.Fields("run DIR codex -m x"), true, "/d/s")
	if s, p := strings.Join(server, " "), strings.Join(program, " "); !ok || s != "run DIR codex app-server --listen "+unix || p != "run DIR codex --remote "+unix+" -C . -m x" {
		t.Errorf("the script: %q and %q, %v", s, p, ok)
	}
}

// The arguments that continue a conversation stand right after the program, wherever that is in the command. A command
// that says itself which one it continues, or draws no conversation, stays.
func TestResume(t *testing.T) {
	for _, c := range []struct{ command, id, want, err string }{
		{"claude", "s1", "claude --resume s1", ""},
		{"claude --model x", Newest, "claude --continue --model x", ""},
		{"npx -y @anthropic-ai/claude-code@latest --model x", "s1", "npx -y @anthropic-ai/claude-code@latest --resume s1 --model x", ""},
		{"npm exec -- @openai/codex", "s1", "npm exec -- @openai/codex resume s1", ""},
		{"env A=b /opt/codex -m x", "s1", "env A=b /opt/codex resume s1 -m x", ""},
		{"codex -m resume", Newest, "codex resume --last -m resume", ""},
		{"node /a/node_modules/@openai/codex/bin/codex.js", "s1", "node /a/node_modules/@openai/codex/bin/codex.js resume s1", ""},
		{"opencode /project", "ses_1", "opencode --session ses_1 /project", ""},
		{"gemini -y", Newest, "gemini --resume latest -y", ""},
		{"gemini", "s1", "gemini", ErrNoID.Error()},
		{"claude --resume=x", "s1", "claude --resume=x", ErrChosen.Error()},
		{"claude -c", "s1", "claude -c", ErrChosen.Error()},
		{"env A=b codex -c a=b resume x", "s1", "env A=b codex -c a=b resume x", ErrChosen.Error()},
		{"codex exec hi", "s1", "codex exec hi", ErrChosen.Error()},
		{"codex -c a=b", "s1", "codex resume s1 -c a=b", ""},
		{"claude", "--dangerous", "claude", `its conversation has the id "--dangerous", which might be a flag`},
		{"claude", "", "claude", `its conversation has the id "", which might be a flag`},
		{"bash", "s1", "bash", "its command names no program that is known to continue conversations"},
		{"wrapper claude", "s1", "wrapper claude", "its command names no program that is known to continue conversations"},
	} {
		got, err := Resume(strings.Fields(c.command), false, c.id, "")
		why := ""
		if err != nil {
			why = err.Error()
		}
		if strings.Join(got, " ") != c.want || why != c.err {
			t.Errorf("%q with %q becomes %q (%s), want %q (%s)", c.command, c.id, got, why, c.want, c.err)
		}
	}
	if got, err := Resume([]string{"./run", "DIR", "codex", "-m", "x"}, true, "s1", "codex"); strings.Join(got, " ") != "./run DIR codex resume s1 -m x" {
		t.Errorf("the script becomes %q: %v", got, err)
	}
	if got, err := Resume([]string{"codex"}, false, "s1", "claude"); len(got) > 1 || err == nil || err.Error() != "its last conversation was one of claude" {
		t.Errorf("after Claude Code, Codex: %q, %v", got, err)
	}
	useOwn(t, map[string]string{"echoer.toml": echoer})
	if _, err := Resume([]string{"echoer"}, false, "s1", ""); err == nil || err.Error() != "echoer cannot continue a conversation" {
		t.Errorf("an agent without [resume]: %v", err)
	}
}

// hidden are the agents that are not recognized in a wrapper, or not at once.
var hidden = []string{"codex", "continue"}

// The agent in a wrapper is recognized by its first screens. A shell's screen does not count, since it may print
// anything.
func TestRecognise(t *testing.T) {
	for _, c := range captures {
		if strings.HasSuffix(c.file, "-exited") || c.file == "cline-notice" {
			continue
		}
		want := driverOf(t, c.file).Name
		l := look(t, c.file)
		if got := ForCommand([]string{"run", "DIR"}).Recognise(l).Name; got != want && !(slices.Contains(hidden, want) && got == "none") {
			t.Errorf("%s is recognised as %s", c.file, got)
		}
		for _, other := range []*Driver{claude, ForCommand([]string{"bash"}), ForCommand([]string{"python3.12"})} {
			if got := other.Recognise(l); got != other {
				t.Errorf("%s: %s becomes %s", c.file, other.Name, got.Name)
			}
		}
	}
	for _, file := range []string{"codex-idle", "codex-trust", "codex-confirming", "codex-thinking"} {
		if got := ForCommand([]string{"run"}).Recognise(look(t, file)).Name; got != "codex" {
			t.Errorf("%s is recognised as %s", file, got)
		}
	}
}

// A driver without an npm package is chosen by no path.
func TestNoPackage(t *testing.T) {
	for _, word := range []string{"/bin/bash", "/app/node_modules/x/cli.js", "@x", ""} {
		if isPackage(&agents.Command{}, word) {
			t.Errorf("%q names it", word)
		}
	}
}

// Claude Code says nothing of itself in its title once it declares its state.
func TestRecogniseDeclared(t *testing.T) {
	wrapper := ForCommand([]string{"./wrapper"})
	for app, want := range map[string]string{"claude-code": "claude", "codex": "codex", "other": "none"} {
		l := Look{Title: "claude", Declared: screen.Status{{State: "idle"}, {ID: "a", State: "idle", App: app}}}
		if d := wrapper.Recognise(l); d.Name != want {
			t.Errorf("%s: %s", app, d.Name)
		}
	}
}
