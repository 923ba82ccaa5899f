package agentconfig

import (
	_ "embed"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/teams/policy"
)

// The rules allow these verbs with whatever follows them, and these looks at the team exactly: "atm team" would also
// begin "atm team retire".
var (
	verbs = slices.DeleteFunc(slices.Clone(policy.Unasked), func(verb string) bool { return verb == "team" })
	looks = []string{"team", "team ls", "team --json"}
)

// allowed is the line of the report for the permission to run verbs.
func allowed(verbs []string) string { return "runs without asking: atm " + strings.Join(verbs, ", ") }

// claudeEvents are the hooks of Claude Code that internal/hook understands.
var claudeEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "Notification", "PreToolUse", "PostToolUse",
	"PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult",
	"PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "TeammateIdle", "FileChanged",
}

// claudeWake has Claude Code begin a turn when its hook, which it does not wait for, exits with 2. The person sees the
// summary, and the model the message before what the hook says.
const claudeWake = `, "asyncRewake": true, "rewakeSummary": "atm: new mail", "rewakeMessage": "Mail from your team:"`

// claude plans the configuration of Claude Code (2.1): all of it is in settings.json. Bash(atm send:*) allows "atm
// send", alone or followed by a blank and more, and by "<FILE"; Claude splits a line of several commands first. env is
// the environment of everything that the session starts. Its dialog is open while the hook for PermissionRequest waits for
// an answer from elsewhere, as long as its timeout lets it.
//
// Sources: https://code.claude.com/docs/en/permissions and …/sandboxing, the bundle of 2.1.328; tried with 2.1.197.
func (p *Installer) claude(r Request, top string) (edits []edit, notes []string) {
	path := p.path(r, top, ".claude/settings.local.json", "CLAUDE_CONFIG_DIR", ".claude", "settings.json")
	allow := func(rule, old string) setting {
		return setting{pointer: "/permissions/allow/-", value: quoted(rule), change: allowed(policy.Unasked), replaces: old}
	}
	settings := each(verbs, func(verb string) setting { return allow("Bash(atm "+verb+":*)", "") })
	settings = append(settings, each(looks, func(look string) setting { return allow("Bash(atm "+look+")", `"Bash(atm team:*)"`) })...)
	settings = append(settings, p.writableRoot("/sandbox/filesystem/allowWrite/-"),
		setting{pointer: "/env/ATM_AGENT", value: quoted(r.Agent), change: "ATM_AGENT is " + r.Agent + " here"})
	if r.Claims || r.isRemoval {
		settings = append(settings, setting{pointer: "/env/" + Claims, value: quoted(Refuse), change: "refuses to edit what another member has claimed"})
	}
	if !r.Local && (r.Accept || r.isRemoval) { // a project's file may only be stricter
		settings = append(settings, setting{
			pointer: "/crossSessionInbound", value: quoted("accept"), keepsTheirs: true,
			change: "takes messages of other programs of yours without asking, also in bypass mode",
		})
	}
	return []edit{jsonFile(path, r.Tool, claudeSettings, p.hooks(r, ""), settings)}, nil
}

// hookSets are the hooks of the tools that have them in files, without the command.
var hookSets = map[string]hookSet{
	"claude": {
		tool: "claude", events: claudeEvents, timeout: 10,
		waiting: []string{"PermissionRequest", "FileChanged"}, more: map[string]string{"FileChanged": claudeWake}, waking: []string{"SessionStart"},
	},
	"codex":  {tool: "codex", events: codexEvents, timeout: 10, brief: []string{"SessionEnd", "Interrupt"}},
	"gemini": {tool: "gemini", events: geminiEvents, timeout: 10_000},
}

// hooks returns the hooks for an installation; with a plugin, which has its own, there are none.
func (p *Installer) hooks(r Request, agent string) hookSet {
	h := hookSets[r.Tool]
	h.command = policy.QuoteAll(p.command(agent, "hook", r.Tool))
	if r.Plugin {
		h.events = nil
	}
	return h
}

// Claims is the variable that has atm's hook refuse edits of what another member has claimed, if it is Refuse.
const Claims, Refuse = "ATM_CLAIMS", "refuse"

var codexEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
	"PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
}

// sharedServer is a note for who has ATM_AGENT name the agent: an MCP server has the variables of whoever started Codex's
// server first.
const sharedServer = "all your codex sessions share one server, and so atm's tools one agent's name, unless you start them with codex --no-daemon"

// codex plans the configuration of Codex (0.169): hooks.json, a file of rules of atm's own, and config.toml. Codex runs
// a hook only after the user has trusted it in /hooks. The trust depends on the hook's text and its place in the list,
// so atm's hooks come last. A prefix_rule compares whole words of one plain command; what it allows runs outside of the
// sandbox. It cannot allow "atm team" alone, which runs in the sandbox. In a linked worktree, Codex reads the hooks of
// the main one.
//
// Sources: https://developers.openai.com/codex/hooks, …/rules, …/config-reference,
// codex-rs/hooks/src/engine/discovery.rs, https://github.com/openai/codex/pull/21969; tried with 0.169.0.
func (p *Installer) codex(r Request, top string) (edits []edit, notes []string) {
	dir := p.path(r, top, ".codex", "CODEX_HOME", ".codex", "")
	notes = []string{"codex runs new and changed hooks only after you trust them: start codex and type /hooks"}
	if r.Local {
		notes = append(notes, "codex reads .codex here once the project is trusted; in a linked worktree it reads the hooks of the main worktree, and its writable_roots replace your own")
	}
	rules := "prefix_rule(\n    pattern = [\"atm\", [" + strings.Join(each(verbs, strconv.Quote), ", ") + "]],\n" +
		"    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n" +
		"    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\", \"atm team add bob\"],\n)\n"
	return []edit{
		jsonFile(filepath.Join(dir, "hooks.json"), r.Tool, codexHooks, p.hooks(r, r.Agent), nil),
		ownFile(filepath.Join(dir, "rules", "atm.rules"), "#", r.Tool, rules, allowed(verbs)),
		tomlFile(filepath.Join(dir, "config.toml"), r.Tool, false, []tomlKey{
			{"sandbox_workspace_write", "writable_roots", p.Root, "[" + quoted(p.Root) + "]", "writable in the sandbox: " + p.Root},
			{"shell_environment_policy.set", "ATM_AGENT", r.Agent, quoted(r.Agent), "ATM_AGENT is " + r.Agent + " here, for the shell tool"},
		}),
	}, notes
}

// geminiEvents leaves PreCompress out: it fires before every request, and says nothing about the turn.
var geminiEvents = []string{"SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"}

// gemini plans the configuration of Gemini CLI (0.61): settings.json, and a file of policies of atm's own, which it
// reads in the user's directory only. Timeouts are in milliseconds. tools.allowed is not used: once it names one shell
// command, all others are denied. No setting gives the shell tool environment variables; a .env file would, but only
// the first one found counts, and that would hide the one with the user's API key.
//
// Sources: hooks/reference.md, reference/configuration.md and reference/policy-engine.md in the package of 0.61.0;
// tried with it.
func (p *Installer) gemini(r Request, top string) (edits []edit, notes []string) {
	dir := p.path(r, top, ".gemini", "GEMINI_CLI_HOME", "", ".gemini")
	edits = []edit{jsonFile(filepath.Join(dir, "settings.json"), r.Tool, geminiJSON, p.hooks(r, r.Agent), []setting{p.writableRoot("/tools/sandboxAllowedPaths/-")})}
	notes = []string{"gemini takes mail in a turn only: while it is idle, mail waits for its next prompt, and its questions are answered at its terminal; atm run types mail in, and answers"}
	if !r.Local {
		const head, tail = "[[rule]]\ntoolName = \"run_shell_command\"\n", "decision = \"allow\"\npriority = 100\n"
		prefixes := each(verbs, func(verb string) string { return "  \"atm " + verb + "\",\n" })
		rules := head + "commandPrefix = [\n" + strings.Join(prefixes, "") + "]\n" + tail +
			head + "commandRegex = 'atm (" + strings.Join(looks, "|") + ")\"'\n" + tail // the quote ends the command
		return append(edits, ownFile(filepath.Join(dir, "policies", "atm.toml"), "#", r.Tool, rules, allowed(policy.Unasked))), notes
	}
	notes = append(notes,
		"gemini reads .gemini here once the folder is trusted; its sandboxAllowedPaths replace your own",
		"gemini reads policies from your home directory only: atm install gemini lets it run atm without asking",
	)
	if r.Agent != "" {
		notes = append(notes, "gemini's settings cannot set ATM_AGENT for the commands it runs: the hooks say --as "+r.Agent+"; start gemini with ATM_AGENT="+r.Agent+" gemini")
	}
	return edits, notes
}

// opencodePlugin passes on the events that internal/hook understands, one at a time and without repetitions, and adds
// the primer to the system prompt of an agent that has a name. It fails open.
//
//go:embed opencode.js
var opencodePlugin string

// opencode plans the configuration of OpenCode (1.18): a plugin of atm's own. The permission rules are left to the
// user: OpenCode merges those of several files, and {"bash":{…}} in one replaces "bash":"ask" in another, which would
// allow everything. The last matching pattern decides; "atm *>*" asks about redirections. A plugin can only add to the
// system prompt, so no mail is delivered here.
//
// Sources: https://opencode.ai/docs/config, …/plugins, …/permissions; tried with 1.18.33.
func (p *Installer) opencode(r Request, top string) (edits []edit, notes []string) {
	dir := p.path(r, top, ".opencode", "XDG_CONFIG_HOME", ".config", "opencode")
	command := p.command(r.Agent, "hook", r.Tool)
	body := strings.Replace(opencodePlugin, "$COMMAND", quoted(command), 1)
	rules := each(verbs, func(verb string) string { return quoted("atm "+verb+" *") + `: "allow"` })
	rules = append(rules, each(looks, func(look string) string { return quoted("atm "+look) + `: "allow"` })...)
	change := "a plugin that runs " + policy.QuoteAll(command)
	return []edit{ownFile(filepath.Join(dir, "plugins", "atm.js"), "//", r.Tool, body, change)},
		[]string{`if "permission" in your opencode.json asks about "bash", allow atm there: "bash": {"*": "ask", ` + strings.Join(rules, ", ") + `, "atm *>*": "ask"}`}
}

// servers says where each tool's configuration lists its MCP servers, and how an entry is written there: in a file of
// the user's, below the home or the directory that a variable names, or in a file of the project. Codex passes only the
// variables in env_vars on.
//
// Sources: https://code.claude.com/docs/en/mcp, https://developers.openai.com/codex/mcp, docs/tools/mcp-server.md
// in the package of Gemini CLI 0.61.0, https://opencode.ai/docs/mcp-servers; tried with the versions of the hooks.
var servers = map[string]struct{ variable, home, file, local, place, entry string }{
	"claude": {
		"CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json",
		"/mcpServers/atm", `{"type": "stdio", "command": $PROGRAM, "args": $ARGS}`,
	},
	"codex": {
		"CODEX_HOME", ".codex", "config.toml", ".codex/config.toml",
		"mcp_servers.atm", "$PROGRAM\nargs = $ARGS\nenv_vars = [\"ATM_AGENT\", \"ATM_ROOT\", \"ATM_TEAM\", \"ATM_RUN\", \"XDG_STATE_HOME\"]",
	},
	"gemini": {
		"GEMINI_CLI_HOME", "", ".gemini/settings.json", ".gemini/settings.json",
		"/mcpServers/atm", `{"command": $PROGRAM, "args": $ARGS}`,
	},
	"opencode": {
		"XDG_CONFIG_HOME", ".config", "opencode/opencode.json", "opencode.json",
		"/mcp/atm", `{"type": "local", "command": $COMMAND}`,
	},
}

// server plans the entry that makes a tool start `atm mcp` as the server "atm". The server takes the agent's name from
// its environment, unless the entry has one.
func (p *Installer) server(r Request, top string) (e edit, notes []string) {
	words := p.command(r.Agent, "mcp")
	t := servers[r.Tool]
	path := p.path(r, top, t.local, t.variable, t.home, t.file)
	entry := strings.NewReplacer("$PROGRAM", quoted(words[0]), "$ARGS", quoted(words[1:]), "$COMMAND", quoted(words)).Replace(t.entry)
	change := "MCP server atm: " + policy.QuoteAll(words)
	if r.Tool == "codex" {
		if r.Agent == "" {
			notes = []string{sharedServer}
		}
		return tomlFile(path, r.Tool, true, []tomlKey{{t.place, "command", words[0], entry, change}}), notes
	}
	if r.Tool == "claude" {
		notes = []string{`claude asks before each use of atm's tools until you allow "mcp__atm"`}
	}
	forms := map[string]dialect{"claude": claudeJSON, "gemini": geminiJSON, "opencode": opencodeJSON}
	e = jsonFile(path, r.Tool, forms[r.Tool], hookSet{}, []setting{{pointer: t.place, value: entry, change: change, keepsTheirs: true}})
	e.isServer = true
	return e, notes
}
