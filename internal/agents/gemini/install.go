package gemini

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams/policy"
)

// configuration is what atm writes for Gemini CLI, and has a run of it bring along (tried with 0.61.0).
//
// Sources: docs/tools/mcp-server.md and docs/extensions/reference.md in the package of 0.61.0; tried with it.
var configuration = &agents.Configuration{
	Files: plan, Obstacle: obstacle, IsSandboxed: true,
	Hooks: agents.HookSet{Events: events, Timeout: 10_000, IsOnce: true},
	MCP: agents.MCPServer{
		Place:  agents.Place{Variable: "GEMINI_CLI_HOME", User: ".gemini/settings.json", Local: ".gemini/settings.json"},
		Format: form, At: "/mcpServers/atm", Entry: `{"command": $PROGRAM, "args": $ARGS}`,
	},
	Plugin: &agents.Plugin{
		Add:    [][]string{{"gemini", "extensions", "install", "$DIR/plugins/gemini"}},
		Remove: [][]string{{"gemini", "extensions", "uninstall", "atm"}},
		Asks:   true, // whether to trust the directory, and the extension
		Files:  pluginFiles, SwitchedIn: agents.Place{Variable: "GEMINI_CLI_HOME", User: ".gemini/extensions/atm/gemini-extension.json"}, Switch: "/name", On: "atm",
	},
	Bring:     bring,
	IsBrought: func(file string, getenv func(string) string, _ func() []string) bool { return getenv(defaults) == file },
	Without: func(env []string, file string) []string {
		return slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return pair == defaults+"="+file })
	},
}

var (
	home = agents.Place{Variable: "GEMINI_CLI_HOME", User: ".gemini", Local: ".gemini"}
	form = &agents.Dialect{Comments: true}
)

// events leaves PreCompress out: it fires before every request, and says nothing about the turn.
var events = []string{"SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"}

// plan plans the configuration of Gemini CLI (0.61): settings.json, and a file of policies of atm's own, which it
// reads in the user's directory only. Timeouts are in milliseconds. tools.allowed is not used: once it names one shell
// command, all others are denied. No setting gives the shell tool environment variables; a .env file would, but only
// the first one found counts, and that would hide the one with the user's API key.
//
// Sources: hooks/reference.md, reference/configuration.md and reference/policy-engine.md in the package of 0.61.0;
// tried with it.
func plan(in *agents.Install) (files []agents.File, notes []string) {
	dir := in.Path(home)
	files = []agents.File{{
		Path: filepath.Join(dir, "settings.json"), Format: form, HasHooks: true, NamesAgent: true,
		Settings: []agents.Setting{in.WritableRoot("/tools/sandboxAllowedPaths/-")},
	}}
	notes = []string{"gemini takes mail in a turn only: while it is idle, mail waits for its next prompt, and its questions are answered at its terminal; atm run types mail in, and answers"}
	if !in.Local {
		const head, tail = "[[rule]]\ntoolName = \"run_shell_command\"\n", "decision = \"allow\"\npriority = 100\n"
		prefixes := agents.Each(agents.Verbs, func(verb string) string { return "  \"atm " + verb + "\",\n" })
		rules := head + "commandPrefix = [\n" + strings.Join(prefixes, "") + "]\n" + tail +
			head + "commandRegex = 'atm (" + strings.Join(agents.Looks, "|") + ")\"'\n" + tail // the quote ends the command
		return append(files, agents.File{Path: filepath.Join(dir, "policies", "atm.toml"), Comment: "#", Body: rules, Change: agents.Allowed(policy.Unasked)}), notes
	}
	notes = append(notes,
		"gemini reads .gemini here once the folder is trusted; its sandboxAllowedPaths replace your own",
		"gemini reads policies from your home directory only: atm install gemini lets it run atm without asking",
	)
	if in.Agent != "" {
		notes = append(notes, "gemini's settings cannot set ATM_AGENT for the commands it runs: the hooks say --as "+in.Agent+"; start gemini with ATM_AGENT="+in.Agent+" gemini")
	}
	return files, notes
}

// Managed is the directory with the settings that an administrator writes; "": none is known for this system.
var Managed = map[string]string{"linux": "/etc/gemini-cli", "darwin": "/Library/Application Support/GeminiCli"}[runtime.GOOS]

// obstacle was tried with 0.61.0: of several files the last counts that says something.
func obstacle(in *agents.Install, look agents.Look) (why string, isHere bool) {
	dir := in.UserPath(home)
	files := []agents.SwitchFile{
		{Path: filepath.Join(dir, "settings.json")}, {Path: filepath.Join(in.Top, ".gemini", "settings.json"), IsHere: true},
		{Path: filepath.Join(Managed, "settings.json")},
	}
	if why := untrusted(look, filepath.Join(dir, "trustedFolders.json"), in.Top); why != "" && in.Local {
		return why, false
	}
	command := agents.Quoted(policy.QuoteAll(in.Hook))
	for _, f := range files {
		if list, _ := look(f.Path, "/hooksConfig/disabled"); strings.Contains(list, command) {
			return fmt.Sprintf("hooksConfig.disabled in %s names atm's hook", f.Path), f.IsHere && !in.Local
		}
	}
	return look.LastOff(in, "/hooksConfig/enabled", "false", files)
}

// untrusted says which of the rules has Gemini CLI not trust a directory: the longest of those that are about it counts.
func untrusted(look agents.Look, path, dir string) (why string) {
	all, _ := look(path, "")
	rules, longest := map[string]string{}, ""
	json.Unmarshal([]byte(all), &rules) // one that is no text is no rule
	for rule, trust := range rules {
		above := rule
		if trust == "TRUST_PARENT" {
			above = filepath.Dir(rule)
		}
		rel, err := filepath.Rel(above, dir)
		if err == nil && filepath.IsLocal(rel) && len(rule) > len(longest) {
			longest, why = rule, look.IsSet(path, "/"+agents.EscapePointer(rule), "DO_NOT_TRUST")
		}
	}
	return why
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
