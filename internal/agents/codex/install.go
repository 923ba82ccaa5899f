package codex

import (
	"maps"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
)

// configuration is what atm writes for Codex (tried with 0.169). It runs a hook only after its person has trusted it in /hooks, and
// its MCP server gets only the variables in env_vars. What a prefix_rule allows, which compares whole words of one plain
// command, runs outside of the sandbox. It cannot allow "atm team" alone, which runs in the sandbox.
//
// Sources: https://developers.openai.com/codex/hooks, …/rules, …/config-reference, …/mcp, …/plugins/build; the plugin was tried
// with 0.171.0.
var configuration = &agents.Configuration{
	Hooks: agents.HookSet{Events: events, Timeout: 10, Brief: []string{"SessionEnd", "Interrupt"}},
	Plugin: &agents.Plugin{
		Add:    [][]string{{"codex", "plugin", "marketplace", "add", "$DIR"}, {"codex", "plugin", "add", "atm@atm"}},
		Remove: [][]string{{"codex", "plugin", "remove", "atm@atm"}, {"codex", "plugin", "marketplace", "remove", "atm"}},
		Files:  pluginFiles, SwitchedIn: config, Switch: "/plugins/atm@atm/enabled", On: "true",
	},
	Files:     rules,
	Writable:  &agents.List{Place: config, Pointer: "/sandbox_workspace_write/writable_roots"},
	Notes:     []string{"codex runs new and changed hooks only after you trust them: start codex and type /hooks"},
	Obstacles: obstacles,
}

var (
	config          = agents.Place{Variable: "CODEX_HOME", Home: ".codex", Path: "config.toml"}
	serverVariables = []string{"ATM_AGENT", "ATM_ROOT", "ATM_TEAM", "ATM_RUN", "XDG_STATE_HOME"}
)

var events = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
	"PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
}

func rules(in *agents.Install) []agents.File {
	text := "prefix_rule(\n    pattern = [\"atm\", [" + strings.Join(agents.Each(agents.Verbs, strconv.Quote), ", ") + "]],\n" +
		"    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n" +
		"    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\", \"atm team add bob\"],\n)\n"
	path := filepath.Join(filepath.Dir(in.At(config)), "rules", "atm.rules")
	return []agents.File{{Path: path, Comment: "#", Body: text, Change: agents.Allowed(agents.Verbs)}}
}

// Managed is the directory with the settings that an administrator writes; "": none is known for this system.
var Managed = map[string]string{"linux": "/etc/codex", "darwin": "/etc/codex"}[runtime.GOOS]

// obstacles were tried with 0.169.0.
func obstacles(in *agents.Install) []agents.Obstacle {
	managed := filepath.Join(Managed, "requirements.toml")
	return append(agents.Obstacles("/features/hooks", "false", in.At(config), filepath.Join(in.Top, ".codex", "config.toml"), managed),
		agents.Obstacles("/allow_managed_hooks_only", "true", managed)...)
}

func pluginFiles(p *agents.PluginParts) map[string]string {
	with := func(all, more agents.Object) agents.Object {
		maps.Copy(more, all)
		return more
	}
	return map[string]string{
		".agents/plugins/marketplace.json": p.Text(agents.Object{
			"name": "atm", "interface": agents.Object{"displayName": "atm"},
			"plugins": []agents.Object{{
				"name": "atm", "source": agents.Object{"source": "local", "path": "./plugins/codex"},
				"policy": agents.Object{"installation": "AVAILABLE", "authentication": "ON_INSTALL"}, "category": "Productivity",
			}},
		}),
		"plugins/codex/.codex-plugin/plugin.json": p.Text(with(p.Manifest, agents.Object{
			"skills": "./skills/", "hooks": "./hooks/hooks.json", "mcpServers": "./.mcp.json",
			"interface": agents.Object{"displayName": "atm", "shortDescription": p.Description, "developerName": "atm", "category": "Productivity"},
		})),
		"plugins/codex/.mcp.json":           p.Text(agents.Object{"mcpServers": agents.Object{"atm": with(p.Server, agents.Object{"env_vars": serverVariables})}}),
		"plugins/codex/hooks/hooks.json":    p.Hooks,
		"plugins/codex/skills/atm/SKILL.md": p.Skill,
	}
}
