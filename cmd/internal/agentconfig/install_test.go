package agentconfig

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/internal/agents/codex"
	"github.com/agentteammail/atm/internal/agents/gemini"
)

// What is added is taken out again, and a second time nothing is.
func TestFromNothing(t *testing.T) {
	for _, tool := range Tools() {
		h := newSetup(t)
		before := h.tree(".")
		dry := h.edit(Request{Tool: tool, Accept: tool == "claude", DryRun: true})
		h.same("a dry run of "+tool, before, h.tree("."))
		if done := h.edit(Request{Tool: tool, Accept: tool == "claude"}); fmt.Sprint(done.Files) != fmt.Sprint(dry.Files) || len(done.Files) == 0 {
			t.Errorf("%s: changed %v, and the dry run %v", tool, done.Files, dry.Files)
		}
		if again := h.edit(Request{Tool: tool, Accept: tool == "claude"}); len(again.Files) > 0 {
			t.Errorf("%s: again changes %v", tool, again.Files)
		}
		h.edit(Request{Tool: tool, IsRemoval: true})
		for name, text := range h.tree("home") {
			if strings.Contains(text, "atm") {
				t.Errorf("%s: %s is left: %s", tool, name, text)
			}
		}
	}
}

// entry is one of a list, for a root.
func entry(pointer string) agents.Entry {
	return agents.Entry{Pointer: pointer, Value: `"/p/.atm"`}
}

// The rest of a document stays as it is written.
func TestEntries(t *testing.T) {
	const list = "/a/b/-"
	for _, c := range []struct {
		name, pointer, before, with, after string // after: without it again; "": as before
		isTOML                             bool
	}{
		{"none", list, "", "{\n  \"a\": {\n    \"b\": [\n      \"/p/.atm\"\n    ]\n  }\n}\n", "", false},
		{"blank", list, " \n", "{\n  \"a\": {\n    \"b\": [\n      \"/p/.atm\"\n    ]\n  }\n}\n", "(none)", false},
		{"laid out as usual", list, "{\n  \"m\": 1\n}\n", "{\n  \"m\": 1,\n  \"a\": {\n    \"b\": [\n      \"/p/.atm\"\n    ]\n  }\n}\n", "", false},
		{"laid out otherwise", list, "{ \"m\" :1, \"a\": {\"b\" : [1 ,2]} }", "{ \"m\" :1, \"a\": {\"b\" : [1 ,2,\"/p/.atm\"]} }", "", false},
		{"with comments", list, "{ // mine\n\"a\": {\"b\": [\n1, // one\n]}}", "{ // mine\n\"a\": {\"b\": [\n1, // one\n\"/p/.atm\"\n]}}", "{ // mine\n\"a\": {\"b\": [\n1 // one\n]}}", false},
		{"a member", "/m", "{\"x\": 1}", "{\"x\": 1,\"m\":\"/p/.atm\"}", "", false},
		{"half of the way", list, "{\"a\": {\"c\": 1}}", "{\"a\": {\"c\": 1,\"b\":[\"/p/.atm\"]}}", "", false},

		{"TOML, none", list, "", "[a]\nb = [\"/p/.atm\"]\n", "", true},
		{"TOML, others", list, "x = 1 # mine", "x = 1 # mine\n[a]\nb = [\"/p/.atm\"]\n", "x = 1 # mine\n", true},
		{"TOML, the table", list, "[a] # mine\nc = 1\n[z]\n", "[a] # mine\nb = [\"/p/.atm\"]\nc = 1\n[z]\n", "[a] # mine\nb = []\nc = 1\n[z]\n", true},
		{"TOML, the list", list, "[a]\nc = 1\nb = [\"x\"]\n[z]\n", "[a]\nc = 1\nb = [\"/p/.atm\", \"x\"]\n[z]\n", "", true},
		{"TOML, in lines", list, "[a]\nb = [\n  \"x\", # mine\n]\n", "[a]\nb = [\"/p/.atm\", \n  \"x\", # mine\n]\n", "[a]\nb = [\n  \"x\", # mine\n]\n", true},
	} {
		edit := editJSON
		if c.isTOML {
			edit = editTOML
		}
		with, err := edit(c.before, entry(c.pointer), false)
		if err != nil || with != c.with {
			t.Errorf("%s: %v\n%s\nnot\n%s", c.name, err, with, c.with)
		}
		if again, err := edit(with, entry(c.pointer), false); err != nil || again != with {
			t.Errorf("%s: again: %v\n%s", c.name, err, again)
		}
		want := c.after
		if want == "" {
			want = c.before
		}
		if after, err := edit(with, entry(c.pointer), true); err != nil || after != strings.TrimPrefix(want, "(none)") {
			t.Errorf("%s: without it: %v\n%s\nnot\n%s", c.name, err, after, want)
		}
		if after, err := edit(c.before, entry(c.pointer), true); err != nil || after != c.before {
			t.Errorf("%s: it was not there: %v\n%s", c.name, err, after)
		}
	}
}

// What does not parse, or has something else in the place, is left alone. Of TOML that is written in another way the person hears
// what to put there.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ tool, file, text, err, note string }{
		{"claude", "home/.claude/settings.json", "{ not JSON", "home/.claude/settings.json (left unchanged): cannot parse it: ", ""},
		{"claude", "home/.claude/settings.json", "[]", "it is not an object", ""},
		{"claude", "home/.claude/settings.json", `{"permissions": {"allow": "all"}}`, "permissions.allow is not a list", ""},
		{"claude", "home/.claude/settings.json", `{"crossSessionInbound": "hold"}`, `it already has its own crossSessionInbound: put "accept" there yourself`, ""},
		{"codex", "home/.codex/config.toml", "[ok]\nmodel = = 1", "(left unchanged): cannot parse it: line 2, column 9", ""},
		{"codex", "home/.codex/config.toml", "sandbox_workspace_write = { network_access = true }\n", "", "into sandbox_workspace_write.writable_roots of $DIR/home/.codex/config.toml yourself"},
		{"codex", "home/.codex/rules/atm.rules", "prefix_rule(pattern = [\"ls\"])", "atm.rules was not written by atm install: left alone", ""},
	} {
		h := newSetup(t)
		h.write(c.file, c.text)
		before := h.tree(".")
		rep, err := h.Edit(Request{Tool: c.tool, Accept: c.tool == "claude"})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, not %s", c.text, err, c.err)
			}
			h.same(c.text, before, h.tree("."))
			continue
		}
		if want := strings.ReplaceAll(c.note, "$DIR", h.dir); err != nil || !strings.Contains(strings.Join(rep.Notes, "\n"), want) || h.read(c.file) != c.text {
			t.Errorf("%s: %v, %v, %s", c.text, err, rep, h.read(c.file))
		}
	}
}

// A link is followed, and stays a link; the file keeps its mode.
func TestLinks(t *testing.T) {
	h := newSetup(t)
	h.write("dotfiles/claude/settings.json", "{\"mine\": 1}\n")
	must(t, os.Chmod(h.at("dotfiles/claude/settings.json"), 0o640))
	if err := os.Symlink("../dotfiles/claude", h.at("home/.claude")); err != nil {
		t.Skip(err)
	}
	before := h.tree(".")
	h.edit(Request{Tool: "claude"})
	if info, err := os.Lstat(h.at("home/.claude")); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if !strings.Contains(h.read("dotfiles/claude/settings.json"), "atm send") {
		t.Error("it was not written through")
	}
	h.edit(Request{Tool: "claude", IsRemoval: true})
	h.same("uninstall", before, h.tree("."))
}

// The roots of several projects are in the list, and uninstall takes out all of them.
func TestRoots(t *testing.T) {
	for tool, file := range map[string]string{"claude": "home/.claude/settings.json", "codex": "home/.codex/config.toml", "gemini": "home/.gemini/settings.json"} {
		h := newSetup(t)
		h.edit(Request{Tool: tool})
		h.Root = h.at("other/.atm")
		h.edit(Request{Tool: tool})
		for _, root := range []string{"repo/.atm", "other/.atm"} {
			if !strings.Contains(h.read(file), agents.Quoted(h.at(root))) {
				t.Errorf("%s: no %s in %s", tool, root, h.read(file))
			}
		}
		h.Root = ""
		h.edit(Request{Tool: tool, IsRemoval: true})
		if left := h.read(file); strings.Contains(left, ".atm") {
			t.Errorf("%s: left is %s", tool, left)
		}
	}
}

// No rule allows another verb.
func TestRulesAdmitNothingElse(t *testing.T) {
	never := []string{"run", "type", "approve", "reject", "stop", "interrupt", "restart", "install", "uninstall", "init", "gc", "up", "down"}
	for _, tool := range Tools() {
		h := newSetup(t)
		h.edit(Request{Tool: tool})
		for name, v := range h.tree("home") {
			for _, verb := range never {
				for _, form := range []string{"Bash(atm " + verb, "\"atm " + verb + " *\"", "\"atm " + verb + "\",", "\"" + verb + "\","} {
					if strings.Contains(v, form) {
						t.Errorf("%s: %s has %s", tool, name, form)
					}
				}
			}
			for _, form := range []string{"Bash(atm:*)", "Bash(atm *)", "\"atm *\"", "\"atm\"]", "pattern = [\"atm\"],", "Bash(*)"} {
				if strings.Contains(v, form) {
					t.Errorf("%s: %s has %s", tool, name, form)
				}
			}
		}
	}
}

// What keeps the hooks of a tool from running is named: a setting, a plugin that is off, a folder of another atm.
func TestFaults(t *testing.T) {
	const on = `"enabledPlugins": {"atm@atm": true}`
	claudeOn, codexOn := map[string]string{"home/.claude/settings.json": "{" + on + "}"}, map[string]string{"home/.codex/config.toml": "[plugins.\"atm@atm\"]\nenabled = true\n"}
	geminiOn := map[string]string{"home/.gemini/extensions/atm/gemini-extension.json": `{"name": "atm"}`}
	for _, c := range []struct {
		tool             string
		on               map[string]string
		file, text, want string
	}{
		{"claude", claudeOn, "home/x", "", ""},
		{"claude", claudeOn, "home/.claude/settings.json", "{\"disableAllHooks\": true, " + on + "}", "disableAllHooks is true in $DIR/home/.claude/settings.json"},
		{"claude", claudeOn, "home/.claude/settings.json", "{\"disableAllHooks\": false, " + on + "}", ""},
		{"claude", claudeOn, "repo/.claude/settings.json", "{\"disableAllHooks\": true}", "disableAllHooks is true in $DIR/repo/.claude/settings.json"},
		{"claude", claudeOn, "repo/.claude/settings.local.json", "{\"enabledPlugins\": {\"atm@atm\": false}}", "enabledPlugins.atm@atm is false in $DIR/repo/.claude/settings.local.json"},
		{"claude", claudeOn, "etc/claude/managed-settings.json", "{\"allowManagedHooksOnly\": true}", "allowManagedHooksOnly is true"},
		{"claude", claudeOn, "etc/claude/managed-settings.d/10.json", "{\"disableAllHooks\": true}", "disableAllHooks is true in $DIR/etc/claude/managed-settings.d/10.json"},
		{"claude", claudeOn, "home/.claude/settings.json", "{}", "claude does not have atm's plugin any more, or has it switched off"},
		{"claude", claudeOn, "state/plugins/claude/plugins/claude/hooks/hooks.json", "{}", "what claude has of atm is from another version of it"},
		{"claude", claudeOn, "state/plugins/claude/plugins/claude/.mcp.json", "{\"mcpServers\": {\"atm\": {\"command\": \"$DIR/gone/atm\"}}}", "claude runs $DIR/gone/atm, which does not exist"},
		{"codex", codexOn, "etc/codex/requirements.toml", "allow_managed_hooks_only = true\n", "allow_managed_hooks_only is true in $DIR/etc/codex/requirements.toml"},
		{"codex", codexOn, "repo/.codex/config.toml", "\ufeff[features]\nhooks = false\n", "features.hooks is false in $DIR/repo/.codex/config.toml"},
		{"gemini", geminiOn, "home/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": \"false\"}}", "hooksConfig.enabled is \"false\""},
		{"gemini", geminiOn, "home/.gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"x\", \"$DIR/bin/atm hook gemini\"]}}", "hooksConfig.disabled is ["},
		{"opencode", nil, "home/.config/opencode/plugins/atm.js", "// atm install opencode writes this file, atm uninstall opencode removes it\n", "what opencode has of atm is from another version"},
		{"opencode", nil, "home/.config/opencode/plugins/atm.js", "// mine\n", ""},
	} {
		h := newSetup(t)
		claude.Managed, codex.Managed, gemini.Managed = h.at("etc/claude"), h.at("etc/codex"), h.at("etc/gemini")
		if c.on != nil {
			must(t, h.WriteFolder(c.tool))
		}
		for file, text := range c.on {
			h.write(file, text)
		}
		dir := strings.NewReplacer("$DIR", h.dir)
		h.write(c.file, dir.Replace(c.text))
		if got, _ := h.Fault(c.tool); !strings.Contains(got, dir.Replace(c.want)) || (got == "") != (c.want == "") {
			t.Errorf("%s, %s: %q, not %q", c.file, c.text, got, c.want)
		}
		for _, tool := range Tools() {
			if got, _ := h.Fault(tool); tool != c.tool && got != "" {
				t.Errorf("%s, which has nothing of atm: %s", tool, got)
			}
		}
	}
}
