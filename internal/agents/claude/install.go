package claude

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/teams/policy"
)

// configuration is what atm writes for Claude Code, and has a run of it bring along (tried with 2.1.197).
//
// Sources: https://code.claude.com/docs/en/mcp, …/plugins-reference; the plugin was tried with 2.1.332.
var configuration = &agents.Configuration{
	Files: plan, Obstacle: obstacle, IsSandboxed: true, TakesClaims: true, TakesAccept: true, Shared: ".claude/settings.json",
	Hooks: agents.HookSet{
		Events: events, Timeout: 10, Waiting: []string{"PermissionRequest"}, IsOnce: true,
	},
	MCP: agents.MCPServer{
		Place:  agents.Place{Variable: "CLAUDE_CONFIG_DIR", User: ".claude.json", Local: ".mcp.json"},
		Format: form, At: "/mcpServers/atm", Entry: `{"type": "stdio", "command": $PROGRAM, "args": $ARGS}`,
		Note: `claude asks before each use of atm's tools until you allow "mcp__atm"`,
	},
	Plugin: &agents.Plugin{
		Add:    [][]string{{"claude", "plugin", "marketplace", "add", "$DIR"}, {"claude", "plugin", "install", "atm@atm"}},
		Remove: [][]string{{"claude", "plugin", "uninstall", "atm@atm"}, {"claude", "plugin", "marketplace", "remove", "atm"}},
		Files:  pluginFiles, SwitchedIn: userSettings, Switch: "/enabledPlugins/atm@atm", On: "true",
	},
	Bring: bring,
	IsBrought: func(file string, _ func(string) string, arguments func() []string) bool {
		return slices.Contains(arguments(), settingsFlag+"="+file)
	},
}

var form = &agents.Dialect{Mark: true}

var userSettings = agents.Place{Variable: "CLAUDE_CONFIG_DIR", Home: ".claude", User: "settings.json"}

// events are the hooks of Claude Code that parse understands.
var events = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "Notification", "PreToolUse", "PostToolUse",
	"PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult",
	"PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "TeammateIdle",
}

// plan plans the configuration of Claude Code (2.1): all of it is in settings.json. Bash(atm send:*) allows "atm
// send", alone or followed by a blank and more, and by "<FILE"; Claude splits a line of several commands first. env is
// the environment of everything that the session starts. Its dialog is open while the hook for PermissionRequest waits for
// an answer from elsewhere, as long as its timeout lets it.
//
// Sources: https://code.claude.com/docs/en/permissions and …/sandboxing, the bundle of 2.1.328; tried with 2.1.197.
func plan(in *agents.Install) (files []agents.File, notes []string) {
	place := userSettings
	place.Local = ".claude/settings.local.json"
	words := append(agents.Each(agents.Verbs, func(verb string) string { return verb + ":*" }), agents.Looks...)
	settings := agents.Each(words, func(word string) agents.Setting {
		return agents.Setting{Pointer: "/permissions/allow/-", Value: agents.Quoted("Bash(atm " + word + ")"), Change: agents.Allowed(policy.Unasked)}
	})
	settings = append(settings, in.WritableRoot("/sandbox/filesystem/allowWrite/-"),
		agents.Setting{Pointer: "/env/ATM_AGENT", Value: agents.Quoted(in.Agent), Change: "ATM_AGENT is " + in.Agent + " here"})
	if in.Claims || in.IsRemoval {
		settings = append(settings, agents.Setting{Pointer: "/env/" + agents.Claims, Value: agents.Quoted(agents.Refuse), Change: "refuses to edit what another member has claimed"})
	}
	if !in.Local && (in.Accept || in.IsRemoval) { // a project's file may only be stricter
		settings = append(settings, agents.Setting{
			Pointer: "/crossSessionInbound", Value: agents.Quoted("accept"), KeepsTheirs: true,
			Change: "takes messages of other programs of yours without asking, also in bypass mode",
		})
	}
	return []agents.File{{Path: in.Path(place), Format: form, HasHooks: true, Settings: settings}}, nil
}

// Managed is the directory with the settings that an administrator writes; "": none is known for this system.
var Managed = map[string]string{"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode"}[runtime.GOOS]

// obstacle was tried with 2.1.197: of several files the last counts that says something.
func obstacle(in *agents.Install, look agents.Look) (why string, isHere bool) {
	parts, _ := filepath.Glob(filepath.Join(Managed, "managed-settings.d", "*.json"))
	for _, managed := range append(parts, filepath.Join(Managed, "managed-settings.json")) {
		for _, pointer := range []string{"/allowManagedHooksOnly", "/disableAllHooks"} {
			if why := look.IsSet(managed, pointer, "true"); why != "" {
				return why, false
			}
		}
	}
	return look.LastOff(in, "/disableAllHooks", "true", []agents.SwitchFile{
		{Path: in.UserPath(userSettings)},
		{Path: filepath.Join(in.Top, ".claude", "settings.json"), IsHere: true}, {Path: filepath.Join(in.Top, ".claude", "settings.local.json"), IsHere: true},
	})
}

func pluginFiles(p *agents.PluginParts) map[string]string {
	return map[string]string{
		".claude-plugin/marketplace.json": p.Text(agents.Object{
			"name": "atm", "owner": agents.Object{"name": "atm"}, "description": p.Description,
			"plugins": []agents.Object{{"name": "atm", "source": "./plugins/claude", "description": p.Description}},
		}),
		"plugins/claude/.claude-plugin/plugin.json": p.Text(p.Manifest),
		"plugins/claude/.mcp.json":                  p.Text(agents.Object{"mcpServers": agents.Object{"atm": p.Server}}),
		"plugins/claude/hooks/hooks.json":           p.Hooks,
		"plugins/claude/skills/atm/SKILL.md":        p.Skill,
		"plugins/claude/README.md":                  pluginReadme(p.Home),
		"plugins/claude/commands/mail.md": "---\ndescription: Read your team mail and answer it\n" +
			"allowed-tools: Bash(atm read:*), Bash(atm reply:*), Bash(atm team)\n---\n" + p.Prompt + " $ARGUMENTS\n",
	}
}

// settingsFlag names a file that is read beside those of the person.
const settingsFlag = "--settings"

func bring(r *agents.Run) (b agents.Brought, why string) {
	if slices.ContainsFunc(r.Command, func(arg string) bool {
		return arg == settingsFlag || strings.HasPrefix(arg, settingsFlag+"=")
	}) {
		return b, "it has " + settingsFlag + " of its own"
	}
	b.File, b.Text = filepath.Join(r.Dir, "claude.json"), r.Hooks
	b.Args = []string{settingsFlag + "=" + b.File}
	return b, ""
}

func pluginReadme(home string) string {
	return `# atm for Claude Code

Hooks, an MCP server, a skill and the command /atm:mail for [atm](` + home + `), mail between coding agents. It needs
the program: [install it](` + home + `#install) and the plugin,

    /plugin install atm --marketplace agentteammail/atm

then, at the top of a project, ` + "`atm init alice bob me`" + `, and give
each Claude Code a name: ` + "`ATM_AGENT=bob claude`" + `. Without the program the plugin does nothing.
`
}
