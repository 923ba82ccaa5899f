package agentconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/internal/agents/codex"
	"github.com/agentteammail/atm/internal/agents/gemini"
)

// What each tool makes of a file was found by starting it with one: "" runs the hooks. Nothing is installed into a file
// that the tool ignores, and uninstall works all the same.
func TestDialects(t *testing.T) {
	const hook = `{"hooks": [{"type": "command", "command": "true"}]}`
	in := func(groups string) string { return `{"hooks": {"Stop": [` + groups + `]}}` }
	for _, c := range []struct{ name, text, claude, codex, gemini string }{
		{"plain", in(hook), "", "", ""},
		{"byte-order mark", "\ufeff" + in(hook), "", "a byte-order mark", "a byte-order mark"},
		{"comment", "{\n// mine\n}", "line 2, a comment", "line 2, a comment", ""},
		{"comma behind the last", "{\"hooks\": {},\n}", "line 2, a comma", "line 2, a comma", ""},
		{"a name twice", "{\"hooks\": {},\n\"hooks\": {}}", `line 2, "hooks" for the second time`, `"hooks" for the second time`, `"hooks" for the second time`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, tool := range []struct{ name, file, want string }{
				{"claude", "home/.claude/settings.json", c.claude}, {"codex", "home/.codex/hooks.json", c.codex},
				{"gemini", "home/.gemini/settings.json", c.gemini},
			} {
				h := newSetup(t)
				h.write(tool.file, c.text)
				before := h.tree(".")
				_, err := h.Install(Request{Tool: tool.name})
				if tool.want == "" && err != nil || tool.want != "" && (err == nil || !strings.Contains(err.Error(), tool.want)) {
					t.Errorf("%s: %v, not %s", tool.name, err, tool.want)
				}
				if err != nil {
					h.same(tool.name, before, h.tree("."))
				}
				h.uninstall(Request{Tool: tool.name})
				h.same(tool.name, before, h.tree("."))

				// The file becomes so after the install.
				must(t, os.Remove(h.at(tool.file)))
				h.install(Request{Tool: tool.name})
				h.write(tool.file, strings.Replace(c.text, "{", "{"+`"x": {"hooks": [{"command": "`+h.Self+` hook `+tool.name+`"}]},`, 1))
				damage, byHand, err := h.Damage(tool.name, false)
				if err != nil || tool.want != "" && (damage == "" || !byHand) {
					t.Errorf("%s: damage %q %v %v", tool.name, damage, byHand, err)
				}
			}
		})
	}
}

// A setting that keeps a tool from running hooks is named, and nothing is installed. One in the project is a note for
// the user's own hooks, and for those of the project the same error.
func TestObstacles(t *testing.T) {
	for _, c := range []struct{ name, tool, file, text, user, local string }{
		{"claude", "claude", "home/.claude/settings.json", "{\n\"disableAllHooks\": true}", "!disableAllHooks is true in $DIR/home/.claude/settings.json, line 2", "!disableAllHooks is true"},
		{"claude, on", "claude", "home/.claude/settings.json", "{\"disableAllHooks\": false}", "", ""},
		{"claude, project", "claude", "repo/.claude/settings.json", "{\"disableAllHooks\": true}", "runs no hooks in this project: disableAllHooks is true in $DIR/repo/.claude/settings.json, line 1", "!disableAllHooks is true in $DIR/repo/.claude/settings.json"},
		{"claude, managed", "claude", "etc/claude/managed-settings.json", "{\"allowManagedHooksOnly\": true}", "!allowManagedHooksOnly is true", "!allowManagedHooksOnly is true"},
		{"claude, managed, in parts", "claude", "etc/claude/managed-settings.d/10.json", "{\"disableAllHooks\": true}", "!disableAllHooks is true in $DIR/etc/claude/managed-settings.d/10.json", "!disableAllHooks is true"},
		{"codex, managed", "codex", "etc/codex/requirements.toml", "allow_managed_hooks_only = true\n", "!allow_managed_hooks_only is true in $DIR/etc/codex/requirements.toml", "!allow_managed_hooks_only is true"},
		{"codex, managed, off", "codex", "etc/codex/requirements.toml", "[features]\nhooks = false\n", "!features.hooks is false in $DIR/etc/codex/requirements.toml", "!features.hooks is false"},
		{"gemini", "gemini", "home/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}", "!hooksConfig.enabled is false", "!hooksConfig.enabled is false"},
		{"gemini, in quotes", "gemini", "home/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": \"false\"}}", "!hooksConfig.enabled is \"false\"", "!hooksConfig.enabled is \"false\""},
		{"gemini, listed", "gemini", "home/.gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"x\", \"$DIR/bin/atm hook gemini\"]}}", "!hooksConfig.disabled in $DIR/home/.gemini/settings.json names atm's hook", "!hooksConfig.disabled"},
		{"gemini, project", "gemini", "repo/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}", "runs no hooks in this project", "!hooksConfig.enabled is false"},
		{"gemini, not trusted", "gemini", "home/.gemini/trustedFolders.json", "{\"$DIR/repo\": \"DO_NOT_TRUST\"}", "", "!$DIR/repo is \"DO_NOT_TRUST\" in"},
		{"gemini, not trusted above", "gemini", "home/.gemini/trustedFolders.json", "{\"$DIR\": \"DO_NOT_TRUST\"}", "", "!$DIR is \"DO_NOT_TRUST\" in"},
		{"gemini, parent trusted", "gemini", "home/.gemini/trustedFolders.json", "{\"$DIR\": \"DO_NOT_TRUST\", \"$DIR/other\": \"TRUST_PARENT\"}", "", ""},
		{"gemini, another not trusted", "gemini", "home/.gemini/trustedFolders.json", "{\"$DIR/re\": \"DO_NOT_TRUST\"}", "", ""},
		{"codex, older name", "codex", "home/.codex/config.toml", "[features]\ncodex_hooks = false\n", "!features.codex_hooks is false in $DIR/home/.codex/config.toml", "!features.codex_hooks is false"},
		{"codex, both names", "codex", "home/.codex/config.toml", "[features]\ncodex_hooks = false\nhooks = true\n", "", ""},
		{"codex", "codex", "home/.codex/config.toml", "[features]\nhooks = false\n", "!features.hooks is false in $DIR/home/.codex/config.toml", "!features.hooks is false"},
		{"codex, project", "codex", "repo/.codex/config.toml", "\ufeff[features]\nhooks = false\n", "runs no hooks in this project", "!features.hooks is false in $DIR/repo/.codex/config.toml"},
		{"codex, not trusted", "codex", "home/.codex/config.toml", "[projects.\"$DIR/repo\"]\ntrust_level = \"untrusted\"\n", "", "!projects.$DIR/repo.trust_level is \"untrusted\""},
	} {
		for _, r := range []Request{{Tool: c.tool}, {Tool: c.tool, Local: true}} {
			h := newSetup(t)
			dir := strings.NewReplacer("$DIR", h.dir)
			want := dir.Replace(c.user)
			if r.Local {
				want = dir.Replace(c.local)
			}
			claude.Managed, codex.Managed, gemini.Managed = h.at("etc/claude"), h.at("etc/codex"), h.at("etc/gemini")
			h.write(c.file, dir.Replace(c.text))
			before := h.tree(".")
			rep, err := h.Install(r)
			switch want, isError := strings.CutPrefix(want, "!"); {
			case isError && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s %v: %v, not %s", c.name, r.Local, err, want)
			case isError:
				h.same(c.name, before, h.tree("."))
			case err != nil || !strings.Contains(strings.Join(rep.Notes, "\n"), want):
				t.Errorf("%s %v: %v %v, not %s", c.name, r.Local, rep, err, want)
			case strings.Contains(strings.Join(rep.Notes, "\n"), "no hooks") != (want != ""):
				t.Errorf("%s %v: %v", c.name, r.Local, rep.Notes)
			}
			r.MCP = true // needs no hooks
			if _, err := h.Install(r); err != nil {
				t.Errorf("%s %v: the server: %v", c.name, r.Local, err)
			}
		}
	}
}

// A killed install leaves one half-written file at most, under a name that the next install or uninstall removes.
func TestKilledInstall(t *testing.T) {
	h := newSetup(t)
	h.install(Request{Tool: "claude"})
	after := h.tree(".")
	h.write("home/.claude/.settings.json.atm-install.tmp", "{\"hoo")
	records, _ := filepath.Glob(h.at("state/install/*"))
	half := halfWritten(records[0])
	must(t, os.WriteFile(half, nil, 0o600))
	h.install(Request{Tool: "claude"})
	h.same("install", after, h.tree("."))
	h.write("home/.claude/.settings.json.atm-install.tmp", "{\"hoo")
	h.uninstall(Request{Tool: "claude"})
	if got := h.read("home/.claude/.settings.json.atm-install.tmp"); got != "(none)" {
		t.Error(got)
	}
	if _, err := os.Stat(h.at("state/install")); err == nil {
		t.Error("the records are still there")
	}
}
