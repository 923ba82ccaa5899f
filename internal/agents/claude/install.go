package claude

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/policy"
)

// configuration is what atm writes for Claude Code, and has a run of it bring along (tried with 2.1.197).
//
// Source: https://code.claude.com/docs/en/plugins-reference; the plugin was tried with 2.1.197 and 2.1.332.
var configuration = &agents.Configuration{
	Hooks: agents.HookSet{Events: events, Timeout: 10, Waiting: []string{"PermissionRequest"}},
	Plugin: &agents.Plugin{
		Add:    [][]string{{"claude", "plugin", "marketplace", "add", "$DIR"}, {"claude", "plugin", "install", "atm@atm"}},
		Remove: [][]string{{"claude", "plugin", "uninstall", "atm@atm"}, {"claude", "plugin", "marketplace", "remove", "atm"}},
		Files:  pluginFiles, SwitchedIn: settings, Switch: "/enabledPlugins/atm@atm", On: "true",
	},
	Entries: entries, TakesAccept: true, Writable: &agents.List{Place: settings, Pointer: "/sandbox/filesystem/allowWrite"},
	Obstacles: obstacles,
	Bring:     bring,
	IsBrought: func(file string, _ func(string) string, arguments func() []string) bool {
		return slices.Contains(arguments(), settingsFlag+"="+file)
	},
}

var settings = agents.Place{Variable: "CLAUDE_CONFIG_DIR", Home: ".claude", Path: "settings.json"}

// events are the hooks of Claude Code that parse understands.
var events = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "Notification", "PreToolUse", "PostToolUse",
	"PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult",
	"PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "TeammateIdle",
}

// entries allow atm's verbs: Bash(atm send:*) allows "atm send", alone or followed by a blank and more, and by "<FILE"; Claude
// splits a line of several commands first.
//
// Sources: https://code.claude.com/docs/en/permissions and …/sandboxing, the bundle of 2.1.328; tried with 2.1.197.
func entries(in *agents.Install) (all []agents.Entry) {
	file := in.At(settings)
	for _, word := range append(agents.Each(agents.Verbs, func(verb string) string { return verb + ":*" }), agents.Looks...) {
		all = append(all, agents.Entry{File: file, Pointer: "/permissions/allow/-", Value: agents.Quoted("Bash(atm " + word + ")"), Change: agents.Allowed(policy.Unasked)})
	}
	if in.Accept {
		all = append(all, agents.Entry{
			File: file, Pointer: "/crossSessionInbound", Value: agents.Quoted("accept"),
			Change: "takes messages of other programs of yours without asking, also in bypass mode",
		})
	}
	return all
}

// Managed is the directory with the settings that an administrator writes; "": none is known for this system.
var Managed = map[string]string{"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode"}[runtime.GOOS]

// obstacles were tried with 2.1.197.
func obstacles(in *agents.Install) []agents.Obstacle {
	managed, _ := filepath.Glob(filepath.Join(Managed, "managed-settings.d", "*.json"))
	managed = append(managed, filepath.Join(Managed, "managed-settings.json"))
	own := []string{in.At(settings), filepath.Join(in.Top, ".claude", "settings.json"), filepath.Join(in.Top, ".claude", "settings.local.json")}
	all := append(agents.Obstacles("/disableAllHooks", "true", append(own, managed...)...), agents.Obstacles("/allowManagedHooksOnly", "true", managed...)...)
	return append(all, agents.Obstacles("/enabledPlugins/atm@atm", "false", own[1:]...)...)
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
	if isNamed := func(arg string) bool { return arg == "-n" || arg == "--name" || strings.HasPrefix(arg, "--name=") }; !slices.ContainsFunc(r.Command, isNamed) {
		b.Args = append(b.Args, "--name="+r.Agent) // by which other sessions of Claude Code know it
	}
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
