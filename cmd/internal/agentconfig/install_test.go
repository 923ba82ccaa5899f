package agentconfig

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agentteammail/atm/internal/agents/claude"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// requests returns all possible requests.
func requests() []Request {
	out := []Request{{Tool: "claude", Claims: true}, {Tool: "claude", Claims: true, Local: true, Agent: "bob"}}
	for _, tool := range Tools() {
		for _, mcp := range []bool{false, true} {
			out = append(out, Request{Tool: tool, MCP: mcp}, Request{Tool: tool, Local: true, MCP: mcp}, Request{Tool: tool, Local: true, Agent: "bob", MCP: mcp})
		}
	}
	return out
}

// Starting without any file: installing again changes nothing, uninstall leaves nothing, and a dry run reports the same
// as the real one.
func TestFromNothing(t *testing.T) {
	for _, r := range requests() {
		t.Run(fmt.Sprint(r.Tool, r.Local, r.Agent, r.MCP), func(t *testing.T) {
			h := newSetup(t)
			h.git("repo", "init", "-q", ".")
			h.git("repo", "config", "core.excludesFile", os.DevNull)
			before := h.tree(".")
			dry := r
			dry.DryRun = true
			said := h.install(dry)
			h.same("dry run", before, h.tree("."))
			done := h.install(r)
			if len(done.Files) == 0 || len(said.Files) != len(done.Files) {
				t.Errorf("the dry run said %v, the real one %v", said.Files, done.Files)
			}
			for i, f := range done.Files {
				if f.Path != said.Files[i].Path || !slices.Equal(f.Changes, said.Files[i].Changes) {
					t.Errorf("the dry run said %v, the real one %v", said.Files[i], f)
				}
				if once := slices.Compact(slices.Clone(f.Changes)); len(once) < len(f.Changes) {
					t.Errorf("it said twice: %q", f.Changes)
				}
			}
			after := h.tree(".")
			for name, v := range after {
				if _, old := before[name]; !old && !strings.HasPrefix(v, "-rw-------") && !strings.HasPrefix(v, "drwx------") {
					t.Errorf("%s may be read by others: %.10s", name, v)
				}
			}
			if r.Local {
				cmd := exec.Command("git", "-C", h.at("repo"), "status", "--porcelain")
				out, err := cmd.CombinedOutput()
				if err != nil || strings.Contains(strings.ReplaceAll(string(out), ".atm/", ""), "?? .") {
					t.Errorf("git sees %s %v", out, err)
				}
			}
			if again := h.install(r); len(again.Files) != 0 {
				t.Errorf("again changes %v", again.Files)
			}
			h.same("again", after, h.tree("."))
			dry.Agent = ""
			if rep, err := h.Uninstall(dry); err != nil || len(rep.Files) == 0 {
				t.Errorf("a dry uninstall: %v %v", rep, err)
			}
			h.same("dry uninstall", after, h.tree("."))
			h.uninstall(r)
			h.same("uninstall", before, h.tree("."))
			if again := h.uninstall(r); len(again.Files) != 0 {
				t.Errorf("uninstall again changes %v", again.Files)
			}
		})
	}
}

// The cases in testdata are whole files: before, after install, and what uninstall leaves if somebody added a line in
// between. The first line of a case is the request.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(cases) == 0 {
		t.Fatal(err, cases)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			must(t, err)
			words := strings.Fields(strings.SplitN(string(ar.Comment), "\n", 2)[0])
			r := Request{Tool: words[0], Local: slices.Contains(words, "--local"), MCP: slices.Contains(words, "--mcp")}
			if i := slices.Index(words, "--as"); i > 0 {
				r.Agent = words[i+1]
			}
			h := newSetup(t)
			h.git("repo", "init", "-q", ".")
			names := map[string]bool{}
			for _, f := range ar.Files {
				stage, name, _ := strings.Cut(f.Name, "/")
				if stage == "before" {
					h.write(name, string(f.Data))
				}
				if stage == "before" || stage == "after" {
					names[name] = true
				}
			}
			before := h.tree("home")
			h.install(r)
			want := map[string]string{}
			for _, f := range ar.Files {
				want[f.Name] = string(f.Data)
			}
			got := func(stage, name string) string {
				s := h.read(name)
				return strings.ReplaceAll(s, h.dir, "$DIR")
			}
			for name := range names {
				check(t, ar, "after/"+name, got("after", name), want)
			}
			if again := h.install(r); len(again.Files) > 0 {
				t.Errorf("again changes %v", again.Files)
			}
			// Without other changes, uninstall is exact.
			h.uninstall(r)
			h.same("uninstall", before, h.tree("home"))
			// It keeps what others added.
			h.install(r)
			for name := range names {
				s := h.read(name)
				for _, add := range [][2]string{{"{", "{\n  \"added\": 1,"}, {"[sandbox_workspace_write]", "added = 1\n[sandbox_workspace_write]"}} {
					if strings.HasPrefix(s, add[0]) || add[0][0] == '[' && strings.Contains(s, "\n"+add[0]) {
						h.write(name, strings.Replace(s, add[0], add[1], 1))
						break
					}
				}
			}
			h.uninstall(r)
			for name := range names {
				check(t, ar, "left/"+name, got("left", name), want)
			}
			if *update {
				must(t, os.WriteFile(path, txtar.Format(ar), 0o600))
			}
		})
	}
}

// check compares a file with the archive's, or updates that.
func check(t *testing.T, ar *txtar.Archive, name, got string, want map[string]string) {
	t.Helper()
	if !strings.HasSuffix(got, "\n") {
		got += "(no line end)\n"
	}
	if *update {
		i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == name })
		if i < 0 {
			ar.Files = append(ar.Files, txtar.File{Name: name})
			i = len(ar.Files) - 1
		}
		ar.Files[i].Data = []byte(got)
		return
	}
	if got != want[name] {
		t.Errorf("%s is\n%s\nnot\n%s", name, got, want[name])
	}
}

// Nothing of an unusual file is lost, and uninstall restores it.
func TestUnusualBytes(t *testing.T) {
	for _, c := range []struct{ name, tool, file, data string }{
		{"no line end", "claude", "home/.claude/settings.json", "{\n    \"model\": \"x\"}"},
		{"a tight line", "claude", "home/.claude/settings.json", `{"model":"x","hooks":{},"permissions":{"deny":["Bash(rm:*)"]}}`},
		{"nothing", "claude", "home/.claude/settings.json", ""},
		{"white space", "claude", "home/.claude/settings.json", " \n\n"},
		{"an empty object", "claude", "home/.claude/settings.json", "{}"},
		{"escapes", "claude", "home/.claude/settings.json", "{\"\\u0068ooks\": {\"St\\u006fp\": []}, \"n\": 1e400, \"big\": 123456789012345678901234567890}"},
		{"empty lists", "claude", "home/.claude/settings.json", "{\n  \"permissions\": {\n    \"allow\": [],\n    \"deny\": []\n  },\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"},
		{"comments", "gemini", "home/.gemini/settings.json", "// mine\n{\n  // a\n  \"hooks\": { /* none */ }, // b\n  \"tools\": {\n    \"sandboxAllowedPaths\": [\n      \"/x\" // x\n    ]\n  }\n}\n// end\n"},
		{"TOML without line end", "codex", "home/.codex/config.toml", "model = \"x\""},
		{"a comment without line end", "gemini", "home/.gemini/settings.json", "{\"a\": 1}\n// end"},
		{"hooks of somebody", "codex", "home/.codex/hooks.json", "{\"hooks\":{\"Stop\":[{\"matcher\":\"*\",\"hooks\":[{\"type\":\"command\",\"command\":\"say done\"}]}]},\"description\":\"mine\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newSetup(t)
			h.write(c.file, c.data)
			before := h.tree("home")
			h.install(Request{Tool: c.tool})
			after := h.read(c.file)
			if after == c.data {
				t.Error("nothing was installed")
			}
			if strings.Count(after, "/*") != strings.Count(c.data, "/*") {
				t.Errorf("a comment is lost:\n%s", after)
			}
			if again := h.install(Request{Tool: c.tool}); len(again.Files) > 0 {
				t.Errorf("again changes %v\n%s\n%s", again.Files, after, h.read(c.file))
			}
			for range 2 { // the second has nothing to remove
				h.uninstall(Request{Tool: c.tool})
				h.same("uninstall", before, h.tree("home"))
			}

			// Without the record hooks and marked lines go, too.
			h.install(Request{Tool: c.tool})
			must(t, os.RemoveAll(h.State))
			h.uninstall(Request{Tool: c.tool})
			left := h.read(c.file)
			if strings.Contains(left, "atm hook") || strings.Contains(left, "# atm install") {
				t.Errorf("of ours is left:\n%s", left)
			}
		})
	}
}

// A file that does not parse, or that is no regular file, is named in the error, and nothing is written.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, file, data string
		r                Request
		want             string
	}{
		{"not JSON", "home/.claude/settings.json", "{\"a\": }", Request{Tool: "claude"}, "home/.claude/settings.json (left unchanged): hujson: line 1, column 7"},
		{"no object", "home/.claude/settings.json", "[]", Request{Tool: "claude"}, "it is not an object"},
		{"hooks are a list", "home/.claude/settings.json", "{\"hooks\": []}", Request{Tool: "claude"}, "hooks is not {}"},
		{"an event is an object", "home/.claude/settings.json", "{\"hooks\": {\"Stop\": {}}}", Request{Tool: "claude"}, "hooks.Stop is not []"},
		{"rules are a string", "home/.claude/settings.json", "{\"permissions\": {\"allow\": \"all\"}}", Request{Tool: "claude"}, "permissions.allow is not []"},
		{"not TOML", "home/.codex/config.toml", "model = \n", Request{Tool: "codex"}, "config.toml (left unchanged): "},
		{"UTF-16", "home/.gemini/settings.json", "\xff\xfe{\x00}\x00", Request{Tool: "gemini"}, "settings.json is UTF-16, which atm does not change: save it as UTF-8"},
		{"UTF-16 TOML", "home/.codex/config.toml", "\xfe\xff\x00a", Request{Tool: "codex"}, "config.toml is UTF-16"},
		{"a directory", "home/.claude/settings.json/x", "", Request{Tool: "claude"}, "is not a regular file"},
		{"bad local file", "repo/.claude/settings.local.json", "{", Request{Tool: "claude", Local: true}, "settings.local.json (left unchanged): "},
		{"bad second file", "repo/.codex/config.toml", "[", Request{Tool: "codex", Local: true, Agent: "bob"}, "config.toml (left unchanged): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newSetup(t)
			h.git("repo", "init", "-q", ".")
			h.write(c.file, c.data)
			before := h.tree(".")
			_, err := h.Install(c.r)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			h.same("refused", before, h.tree("."))
		})
	}
}

// The programs' own variables move their files.
func TestPlaces(t *testing.T) {
	for _, c := range []struct{ tool, name, value, file string }{
		{"claude", "CLAUDE_CONFIG_DIR", "other/claude", "other/claude/settings.json"},
		{"codex", "CODEX_HOME", "other/codex", "other/codex/hooks.json"},
		{"gemini", "GEMINI_CLI_HOME", "other", "other/.gemini/settings.json"},
		{"opencode", "XDG_CONFIG_HOME", "other", "other/opencode/plugins/atm.js"},
	} {
		h := newSetup(t)
		t.Setenv(c.name, h.at(c.value))
		h.install(Request{Tool: c.tool})
		if h.read(c.file) == "(none)" {
			t.Errorf("%s: no %s", c.tool, c.file)
		}
		h.uninstall(Request{Tool: c.tool})
		if h.read(c.file) != "(none)" {
			t.Errorf("%s: %s is still there", c.tool, c.file)
		}
	}
}

// No rule allows another verb.
func TestRulesAdmitNothingElse(t *testing.T) {
	never := []string{"run", "type", "approve", "reject", "stop", "interrupt", "restart", "install", "uninstall", "init", "gc", "up", "down"}
	for _, r := range requests() {
		h := newSetup(t)
		h.install(r)
		for name, v := range h.tree(".") {
			if strings.Contains(name, "state") {
				continue
			}
			for _, verb := range never {
				for _, form := range []string{"Bash(atm " + verb, "\"atm " + verb + " *\"", "\"atm " + verb + "\",", "\"" + verb + "\","} {
					if strings.Contains(v, form) {
						t.Errorf("%s: %s has %s", r.Tool, name, form)
					}
				}
			}
			for _, form := range []string{"Bash(atm:*)", "Bash(atm *)", "\"atm *\"", "\"atm\"]", "pattern = [\"atm\"],", "Bash(*)"} {
				if strings.Contains(v, form) {
					t.Errorf("%s: %s has %s", r.Tool, name, form)
				}
			}
		}
	}
}

// Older hooks of atm are updated; others stay.
func TestOlderEntries(t *testing.T) {
	h := newSetup(t)
	h.write("home/.claude/settings.json", `{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "/old/place/atm hook claude", "timeout": 99}]},
      {"hooks": [{"type": "command", "command": "say done"} , {"type": "command", "command": "atm hook claude --as bob"}]}
    ],
    "Setup": [{"hooks": [{"type": "command", "command": "'/a b/atm' hook claude"}]}],
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "ATM_AGENT=me atm hook claude | tee log"}]}]
  }
}
`)
	h.install(Request{Tool: "claude"})
	got := h.read("home/.claude/settings.json")
	if !json.Valid([]byte(got)) { // no comma may stay behind the last one
		t.Error(got)
	}
	for what, times := range map[string]int{
		"/old/place": 0, "--as bob": 0, "/a b/atm": 0, "Setup\": []": 1, "say done": 1, "tee log": 1,
		"/bin/atm hook claude\"": len(claude.Vendor.Hooks.Events),
	} {
		if n := strings.Count(got, what); n != times {
			t.Errorf("%d times %s, not %d, in\n%s", n, what, times, got)
		}
	}
	if again := h.install(Request{Tool: "claude"}); len(again.Files) > 0 {
		t.Errorf("again changes %v", again.Files)
	}
	h.uninstall(Request{Tool: "claude"})
	got = h.read("home/.claude/settings.json")
	if strings.Contains(got, "/bin/atm hook claude") || !strings.Contains(got, "say done") || !strings.Contains(got, "tee log") {
		t.Errorf("uninstall left\n%s", got)
	}
}

// If the program moves, the command changes, and uninstall still restores the state before the first install.
func TestMoved(t *testing.T) {
	for _, tool := range Tools() {
		h := newSetup(t)
		h.write("home/.claude/settings.json", "{\"model\": \"x\"}")
		h.write("home/.codex/hooks.json", "{}")
		h.write("home/.gemini/settings.json", "{ }")
		before := h.tree("home")
		h.install(Request{Tool: tool})
		h.write("new place/atm", "")
		h.Self = h.at("new place/atm")
		rep := h.install(Request{Tool: tool})
		if len(rep.Files) != 1 || len(rep.Notes) == 0 || !strings.Contains(strings.Join(rep.Notes, "\n"), "agents will type atm") {
			t.Errorf("%s: %+v", tool, rep)
		}
		if again := h.install(Request{Tool: tool}); len(again.Files) > 0 {
			t.Errorf("%s: again changes %v", tool, again.Files)
		}
		if damage, _, err := h.Damage(tool, false); err != nil || damage != "" {
			t.Errorf("%s: %s %v", tool, damage, err)
		}
		must(t, os.Remove(h.Self))
		if damage, _, err := h.Damage(tool, false); err != nil || !strings.Contains(damage, h.Self+", which does not exist") {
			t.Errorf("%s: %s %v, missing is %s", tool, damage, err, h.Self)
		}
		h.uninstall(Request{Tool: tool})
		h.same(tool, before, h.tree("home"))
		if damage, _, err := h.Damage(tool, false); err != nil || damage != "" {
			t.Errorf("%s: %s %v", tool, damage, err)
		}
	}
}

// The plugin of a tool needs atm on PATH, and a policy that stops hooks stops the plugin's.
func TestDamageOfPlugin(t *testing.T) {
	for _, c := range []struct{ tool, file, on, policy, off string }{
		{"claude", "home/.claude/settings.json", `{"enabledPlugins": {"atm@atm": true}}`, "repo/.claude/settings.json", `{"disableAllHooks": true}`},
		{"codex", "home/.codex/config.toml", "[plugins.\"atm@atm\"]\nenabled = true\n", "repo/.codex/config.toml", "[features]\nhooks = false\n"},
		{"gemini", "home/.gemini/extensions/atm/gemini-extension.json", `{"name": "atm"}`, "repo/.gemini/settings.json", `{"hooksConfig": {"enabled": false}}`},
	} {
		h := newSetup(t)
		h.write(c.file, c.on)
		damaged := func(want string) {
			t.Helper()
			damage, byHand, err := h.Damage(c.tool, false)
			if err != nil || byHand != (want != "") || !strings.Contains(damage, want) || want == "" && damage != "" {
				t.Errorf("%s: %q %v %v, not %q", c.tool, damage, byHand, err, want)
			}
		}
		damaged("")
		h.write(c.policy, c.off)
		damaged("runs no hooks here")
		must(t, os.Remove(h.at(c.policy)))
		t.Setenv("PATH", h.at("nothing"))
		damaged("which runs the atm on PATH")
	}
}

// What calls atm twice for an event is known: the user's file and the project's, a file and the plugin. Claude Code and
// Gemini CLI run a command once that two files have.
func TestCallers(t *testing.T) {
	for _, c := range []struct {
		tool, file, text string
		local            *Request
		more             string // beside the user's file
	}{
		{"claude", "", "", nil, ""},
		{"claude", "", "", &Request{}, ""},
		{"gemini", "", "", &Request{}, ""},
		{"codex", "", "", &Request{}, "repo/.codex/hooks.json"},
		{"codex", "", "", &Request{Agent: "bob"}, "repo/.codex/hooks.json"},
		{"gemini", "", "", &Request{Agent: "bob"}, "repo/.gemini/settings.json"},
		{"opencode", "", "", &Request{Agent: "bob"}, "repo/.opencode/plugins/atm.js"},
		{"claude", "repo/.claude/settings.json", `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "atm hook claude"}]}]}}`, nil, "repo/.claude/settings.json"},
		{"codex", "home/.codex/config.toml", "[plugins.\"atm@atm\"]\nenabled = true\n", nil, "its plugin"},
		{"gemini", "home/.gemini/extensions/atm/gemini-extension.json", `{"name": "atm"}`, nil, "its plugin"},
	} {
		h := newSetup(t)
		if c.file != "" {
			h.write(c.file, c.text)
		}
		h.install(Request{Tool: c.tool})
		if c.local != nil {
			c.local.Tool, c.local.Local = c.tool, true
			h.install(*c.local)
		}
		callers := h.Callers(c.tool)
		if want := strings.Fields(c.more); len(callers) != 1+min(len(want), 1) || c.more != "" && !strings.HasSuffix(filepath.ToSlash(callers[1]), c.more) {
			t.Errorf("%s %v: %v, not %q", c.tool, c.local, callers, c.more)
		}
	}
}

// After a write that fails all is as it was.
func TestFailureHalfWay(t *testing.T) {
	for _, tool := range []string{"codex", "gemini"} {
		h := newSetup(t)
		h.write("home/.codex/hooks.json", "{ }")
		h.write("home/.gemini/.settings.json.atm-install.tmp/x", "in the way")
		h.write("home/.codex/.hooks.json.atm-install.tmp/x", "in the way")
		before := h.tree(".")
		if _, err := h.Install(Request{Tool: tool}); err == nil {
			t.Errorf("%s: no error", tool)
		}
		h.same(tool, before, h.tree("."))
		if records, _ := filepath.Glob(h.at("state/install/*")); len(records) > 0 {
			t.Errorf("%s: %v", tool, records)
		}
	}
}

// Hooks that a plugin takes over leave nothing behind.
func TestPluginTakesOver(t *testing.T) {
	for _, tool := range []string{"claude", "codex", "gemini"} {
		h, plain := newSetup(t), newSetup(t)
		for _, s := range []*setup{h, plain} {
			s.write("home/.claude/settings.json", "{\"mine\": 1}\n")
		}
		before := h.tree("home")
		h.install(Request{Tool: tool})
		h.install(Request{Tool: tool, Plugin: true})
		plain.install(Request{Tool: tool, Plugin: true})
		for name, text := range h.tree("home") {
			if want := strings.ReplaceAll(plain.tree("home")[name], plain.dir, h.dir); text != want {
				t.Errorf("%s: %s is\n%s\nnot\n%s", tool, name, text, want)
			}
		}
		h.uninstall(Request{Tool: tool})
		h.same(tool, before, h.tree("home"))
	}
}

// A hook of a plugin reads its input to the end, also where there is no atm.
func TestPluginHookWithoutAtm(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	sh, err := exec.LookPath("sh")
	must(t, err)
	cat, err := exec.LookPath("cat")
	must(t, err)
	h := newSetup(t)
	must(t, os.Mkdir(h.at("alone"), 0o700))
	must(t, os.Symlink(cat, h.at("alone/cat")))
	cmd := exec.Command(sh, "-c", pluginHook+"claude")
	cmd.Env = []string{"PATH=" + h.at("alone")}
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := in.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	must(t, in.Close())
	must(t, cmd.Wait())
}

// A change by another program in the meantime is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	h := newSetup(t)
	h.write("home/.claude/settings.json", "{}\n")
	edits, _, err := h.plan(Request{Tool: "claude"}, "")
	must(t, err)
	edits = edits[:1]
	f, err := h.Installer.read("claude", edits[0].path)
	must(t, err)
	must(t, f.install(edits, edits))
	h.write("home/.claude/settings.json", "{\"model\": \"x\"}\n")
	before := h.tree("home/.claude")
	if err := f.stage(); err == nil || !strings.Contains(err.Error(), "another program changed ") {
		t.Errorf("got %v", err)
	}
	h.same("changed", before, h.tree("home/.claude"))
}

// Lines of others among atm's, or in a table of atm's, stay, with the header if they need it.
func TestLinesOfOthers(t *testing.T) {
	codex, local, server := Request{Tool: "codex"}, Request{Tool: "claude", Local: true}, Request{Tool: "codex", MCP: true}
	const config, exclude = "home/.codex/config.toml", "repo/.git/info/exclude"
	for _, c := range []struct {
		name     string
		r        Request
		file     string
		was      string
		old, new string // the edit
		left     string
	}{
		{
			"into our table", codex, config, "model = \"x\"\n",
			"\"] # atm install codex\n", "\"] # atm install codex\n\n# net\nnetwork_access = true\n[projects.\"/p\"]\ntrust_level = \"trusted\"",
			"model = \"x\"\n\n# net\n[sandbox_workspace_write]\nnetwork_access = true\n[projects.\"/p\"]\ntrust_level = \"trusted\"",
		},
		{
			"a list into our table", codex, config, "",
			"\"] # atm install codex\n", "\"] # atm install codex\nmine = [\n  1,\n]\n",
			"[sandbox_workspace_write]\nmine = [\n  1,\n]\n",
		},
		{
			"the tool's own, for our server", server, config, "a = 1\n",
			"args = ", "startup_timeout_sec = 9\n[b]\nc = 1\n[mcp_servers.atm.tools.send] # x\nargs = ",
			"a = 1\n[b]\nc = 1\n",
		},
		{
			"into their own table", codex, config, "[sandbox_workspace_write] # mine\nnetwork_access = true\n[b]\n",
			"[b]", "[c]",
			"[sandbox_workspace_write] # mine\nnetwork_access = true\n[c]\n",
		},
		{"in the exclude file", local, exclude, "/a\n", "/a\n", "/a\n/mine\n", "/a\n/mine\n"},
	} {
		for _, isTwice := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, isTwice), func(t *testing.T) {
				h := newSetup(t)
				h.git("repo", "init", "-q", ".")
				h.write(c.file, c.was)
				h.install(c.r)
				installed := h.read(c.file)
				if !strings.Contains(installed, c.old) {
					t.Fatalf("no %q in %s", c.old, installed)
				}
				h.write(c.file, strings.ReplaceAll(installed, c.old, c.new))
				if isTwice {
					h.install(c.r)
					if again := h.install(c.r); len(again.Files) > 0 {
						t.Errorf("again changes %v", again.Files)
					}
				}
				h.uninstall(c.r)
				if got := strings.ReplaceAll(h.read(c.file), h.dir, "$DIR"); got != c.left {
					t.Errorf("it left\n%s\nnot\n%s", got, c.left)
				}
			})
		}
	}
}

// A file of rules that somebody else wrote stays.
func TestRulesOfOthers(t *testing.T) {
	h := newSetup(t)
	const rules = "prefix_rule(pattern = [\"ls\"])"
	h.write("home/.codex/rules/atm.rules", rules)
	if notes := strings.Join(h.install(Request{Tool: "codex"}).Notes, "\n"); !strings.Contains(notes, "atm.rules was not written by atm install") {
		t.Error(notes)
	}
	h.uninstall(Request{Tool: "codex"})
	if got := h.read("home/.codex/rules/atm.rules"); got != rules {
		t.Error(got)
	}
}

// Uninstall forgets a file that is gone: what its user writes there later is not atm's.
func TestNoRecordIsLeft(t *testing.T) {
	h := newSetup(t)
	const file, own = "home/.claude/settings.json", `{"permissions": {"allow": ["Bash(atm send:*)"]}}`
	h.install(Request{Tool: "claude"})
	must(t, os.Remove(h.at(file)))
	h.uninstall(Request{Tool: "claude"})
	h.write(file, own)
	h.uninstall(Request{Tool: "claude"})
	if got := h.read(file); got != own {
		t.Errorf("the user's own was taken out: %s", got)
	}
}

// What the user adds to a file that install made, or writes in its place, outlives another install.
func TestAddedBetweenInstalls(t *testing.T) {
	h := newSetup(t)
	const file = "home/.claude/settings.json"
	h.install(Request{Tool: "claude"})
	h.write(file, strings.Replace(h.read(file), "{", "{\n  \"model\": \"opus\",", 1))
	h.Root = h.at("elsewhere/.atm")
	h.install(Request{Tool: "claude"})
	h.uninstall(Request{Tool: "claude"})
	if got := h.read(file); !strings.Contains(got, `"model": "opus"`) || strings.Contains(got, "atm") {
		t.Errorf("left: %s", got)
	}
	must(t, os.Remove(h.at(file)))
	h.install(Request{Tool: "claude"})
	h.write(file, `{"model": "own"}`)
	h.install(Request{Tool: "claude"})
	h.uninstall(Request{Tool: "claude"})
	if got := h.read(file); got != `{"model": "own"}` {
		t.Errorf("left: %s", got)
	}
}
