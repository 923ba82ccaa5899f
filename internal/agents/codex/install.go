package codex

import (
	"cmp"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
)

// configuration is what atm writes for Codex. The server passes on only the variables in env_vars.
//
// Sources: https://developers.openai.com/codex/mcp, …/plugins/build; the plugin was tried with 0.171.0.
var configuration = &agents.Configuration{
	Files: plan, Obstacle: obstacle, IsSandboxed: true,
	Hooks: agents.HookSet{Events: events, Timeout: 10, Brief: []string{"SessionEnd", "Interrupt"}},
	MCP: agents.MCPServer{
		Place: agents.Place{Variable: "CODEX_HOME", Home: ".codex", User: "config.toml", Local: ".codex/config.toml"},
		At:    "mcp_servers.atm", Entry: "$PROGRAM\nargs = $ARGS\nenv_vars = [\"" + strings.Join(serverVariables, `", "`) + "\"]",
		NamelessNote: sharedServer,
	},
	Plugin: &agents.Plugin{
		Add:    [][]string{{"codex", "plugin", "marketplace", "add", "$DIR"}, {"codex", "plugin", "add", "atm@atm"}},
		Remove: [][]string{{"codex", "plugin", "remove", "atm@atm"}, {"codex", "plugin", "marketplace", "remove", "atm"}},
		Files:  pluginFiles, SwitchedIn: agents.Place{Variable: "CODEX_HOME", Home: ".codex", User: "config.toml"}, Switch: "/plugins/atm@atm/enabled", On: "true",
	},
}

var (
	home            = agents.Place{Variable: "CODEX_HOME", Home: ".codex", Local: ".codex"}
	serverVariables = []string{"ATM_AGENT", "ATM_ROOT", "ATM_TEAM", "ATM_RUN", "XDG_STATE_HOME"}
)

var events = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
	"PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
}

// sharedServer is a note for who has ATM_AGENT name the agent: an MCP server has the variables of whoever started Codex's
// server first.
const sharedServer = "all your codex sessions share one server, and so atm's tools one agent's name, unless you start them with codex --no-daemon"

// plan plans the configuration of Codex (0.169): hooks.json, a file of rules of atm's own, and config.toml. Codex runs
// a hook only after the user has trusted it in /hooks. The trust depends on the hook's text and its place in the list,
// so atm's hooks come last. A prefix_rule compares whole words of one plain command; what it allows runs outside of the
// sandbox. It cannot allow "atm team" alone, which runs in the sandbox. In a linked worktree, Codex reads the hooks of
// the main one.
//
// Sources: https://developers.openai.com/codex/hooks, …/rules, …/config-reference,
// codex-rs/hooks/src/engine/discovery.rs, https://github.com/openai/codex/pull/21969; tried with 0.169.0.
func plan(in *agents.Install) (files []agents.File, notes []string) {
	dir := in.Path(home)
	notes = []string{"codex runs new and changed hooks only after you trust them: start codex and type /hooks"}
	if in.Local {
		notes = append(notes, "codex reads .codex here once the project is trusted; in a linked worktree it reads the hooks of the main worktree, and its writable_roots replace your own")
	}
	rules := "prefix_rule(\n    pattern = [\"atm\", [" + strings.Join(agents.Each(agents.Verbs, strconv.Quote), ", ") + "]],\n" +
		"    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n" +
		"    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\", \"atm team add bob\"],\n)\n"
	return []agents.File{
		{Path: filepath.Join(dir, "hooks.json"), Format: &agents.Dialect{}, HasHooks: true, NamesAgent: true},
		{Path: filepath.Join(dir, "rules", "atm.rules"), Comment: "#", Body: rules, Change: agents.Allowed(agents.Verbs)},
		{Path: filepath.Join(dir, "config.toml"), Keys: []agents.Key{
			{Table: "sandbox_workspace_write", Name: "writable_roots", Want: in.Root, Value: "[" + agents.Quoted(in.Root) + "]", Change: "writable in the sandbox: " + in.Root},
			{Table: "shell_environment_policy.set", Name: "ATM_AGENT", Want: in.Agent, Value: agents.Quoted(in.Agent), Change: "ATM_AGENT is " + in.Agent + " here, for the shell tool"},
		}},
	}, notes
}

// Managed is the directory with the settings that an administrator writes; "": none is known for this system.
var Managed = map[string]string{"linux": "/etc/codex", "darwin": "/etc/codex"}[runtime.GOOS]

// obstacle was tried with 0.169.0: of several files the last counts that says something.
func obstacle(in *agents.Install, look agents.Look) (why string, isHere bool) {
	managed := filepath.Join(Managed, "requirements.toml")
	if why := cmp.Or(look.IsSet(managed, "/allow_managed_hooks_only", "true"), look.IsSet(managed, "/features/hooks", "false")); why != "" {
		return why, false
	}
	dir := in.UserPath(home)
	if why := look.IsSet(filepath.Join(dir, "config.toml"), "/projects/"+agents.EscapePointer(in.Top)+"/trust_level", "untrusted"); why != "" && in.Local {
		return why, false
	}
	files := []agents.SwitchFile{{Path: filepath.Join(dir, "config.toml")}, {Path: filepath.Join(in.Top, ".codex", "config.toml"), IsHere: true}}
	name := "/features/hooks"
	if !slices.ContainsFunc(files, func(f agents.SwitchFile) bool { value, _ := look(f.Path, name); return value != "" }) {
		name = "/features/codex_hooks" // its older name
	}
	return look.LastOff(in, name, "false", files)
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
		"plugins/codex/.mcp.json":           p.Text(agents.Object{"mcpServers": agents.Object{"atm": agents.Object{"command": "atm", "args": []string{"mcp"}, "env_vars": serverVariables}}}),
		"plugins/codex/hooks/hooks.json":    p.Hooks,
		"plugins/codex/skills/atm/SKILL.md": p.Skill,
	}
}
