package gemini

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/policy"
)

// configuration is what atm writes for Gemini CLI, and has a run of it bring along (tried with 0.61.0). Timeouts are in
// milliseconds.
//
// Sources: docs/extensions/reference.md, hooks/reference.md, reference/configuration.md and reference/policy-engine.md in the
// package of 0.61.0; tried with it.
var configuration = &agents.Configuration{
	Hooks: agents.HookSet{Events: events, Timeout: 10_000},
	Plugin: &agents.Plugin{
		Add:    [][]string{{"gemini", "extensions", "install", "$DIR/plugins/gemini"}},
		Remove: [][]string{{"gemini", "extensions", "uninstall", "atm"}},
		Asks:   true, // whether to trust the directory, and the extension
		Files:  pluginFiles, SwitchedIn: agents.Place{Variable: "GEMINI_CLI_HOME", Path: ".gemini/extensions/atm/gemini-extension.json"}, Switch: "/name", On: "atm",
	},
	Files:     policies,
	Writable:  &agents.List{Place: settings, Pointer: "/tools/sandboxAllowedPaths"},
	Notes:     []string{"gemini takes mail in a turn only: while it is idle, mail waits for its next prompt, unless it is in a pane of tmux, and its questions are answered at its terminal; atm run types mail in, and answers"},
	Obstacles: obstacles,

	Bring:     bring,
	IsBrought: func(file string, getenv func(string) string, _ func() []string) bool { return getenv(defaults) == file },
	Without: func(env []string, file string) []string {
		return slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return pair == defaults+"="+file })
	},
}

var settings = agents.Place{Variable: "GEMINI_CLI_HOME", Path: ".gemini/settings.json"}

// events leaves PreCompress out: it fires before every request, and says nothing about the turn.
var events = []string{"SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"}

// policies allow atm's verbs. tools.allowed is not used: once it names one shell command, all others are denied.
func policies(in *agents.Install) []agents.File {
	const head, tail = "[[rule]]\ntoolName = \"run_shell_command\"\n", "decision = \"allow\"\npriority = 100\n"
	prefixes := agents.Each(agents.Verbs, func(verb string) string { return "  \"atm " + verb + "\",\n" })
	rules := head + "commandPrefix = [\n" + strings.Join(prefixes, "") + "]\n" + tail +
		head + "commandRegex = 'atm (" + strings.Join(agents.Looks, "|") + ")\"'\n" + tail // the quote ends the command
	path := filepath.Join(filepath.Dir(in.At(settings)), "policies", "atm.toml")
	return []agents.File{{Path: path, Comment: "#", Body: rules, Change: agents.Allowed(policy.Unasked)}}
}

// Managed is the directory with the settings that an administrator writes; "": none is known for this system.
var Managed = map[string]string{"linux": "/etc/gemini-cli", "darwin": "/Library/Application Support/GeminiCli"}[runtime.GOOS]

// obstacles were tried with 0.61.0.
func obstacles(in *agents.Install) []agents.Obstacle {
	files := []string{in.At(settings), filepath.Join(in.Top, ".gemini", "settings.json"), filepath.Join(Managed, "settings.json")}
	command := agents.Quoted(policy.QuoteAll(in.Hook))
	return append(agents.Obstacles("/hooksConfig/enabled", "false", files...), agents.Obstacles("/hooksConfig/disabled", command, files...)...)
}

func pluginFiles(p *agents.PluginParts) map[string]string {
	return map[string]string{
		"plugins/gemini/gemini-extension.json": p.Text(agents.Object{
			"name": "atm", "version": p.Version, "description": p.Description, "mcpServers": agents.Object{"atm": p.Server},
		}),
		"plugins/gemini/hooks/hooks.json":    p.Hooks,
		"plugins/gemini/skills/atm/SKILL.md": p.Skill,
		"plugins/gemini/commands/mail.toml":  "description = \"Read your team mail and answer it\"\nprompt = \"" + p.Prompt + " {{args}}\"\n",
	}
}

// defaults names a file that is read beside those of the person.
const defaults = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"

func bring(r *agents.Run) (b agents.Brought, why string) {
	if agents.ValueOf(r.Env, defaults) != "" {
		return b, defaults + " is set"
	}
	if _, err := os.Lstat(filepath.Join(Managed, "system-defaults.json")); err == nil || !isSystemPath(r.Dir) {
		return b, ""
	}
	b.File, b.Text = filepath.Join(r.Dir, "gemini.json"), r.Hooks
	b.Env = []string{defaults + "=" + b.File}
	return b, ""
}

// isSystemPath reports whether Gemini CLI takes a file of the system's from a directory: root owns it and all above, and
// nobody else may write there.
func isSystemPath(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err == nil { // else it is made when the agent runs
			owner := durable.Owner(info)
			if owner == nil || *owner != 0 || os.Geteuid() != 0 || info.Mode().Perm()&0o022 != 0 {
				return false
			}
		}
		above := filepath.Dir(dir)
		if above == dir {
			return true
		}
		dir = above
	}
}
