package agentconfig

import (
	"path/filepath"
	"strconv"
	"strings"
)

var codexEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
	"PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
}

// sharedServer is a note for who has ATM_AGENT name the agent: the server has the variables of whoever started it first.
const sharedServer = "all your codex sessions share one server, and so one agent's name, unless you start them with codex --no-daemon"

// codex plans the configuration of Codex (0.169): hooks.json, a file of rules of atm's own, and config.toml. Codex runs
// a hook only after the user has trusted it in /hooks. The trust depends on the hook's text and its place in the list,
// so atm's hooks come last. A prefix_rule compares whole words of one plain command; what it allows runs outside of the
// sandbox. In a linked worktree, Codex reads the hooks of the main one.
//
// Sources: https://developers.openai.com/codex/hooks, …/rules, …/config-reference,
// codex-rs/hooks/src/engine/discovery.rs, https://github.com/openai/codex/pull/21969; tried with 0.169.0.
func (p *Installer) codex(r Request, top string) (edits []edit, notes []string) {
	dir := p.path(r, top, ".codex", "CODEX_HOME", ".codex", "")
	notes = []string{"codex runs new and changed hooks only after you trust them: start codex and type /hooks"}
	if r.Agent == "" {
		notes = append(notes, sharedServer)
	}
	if r.Local {
		notes = append(notes, "codex reads .codex here once the project is trusted; in a linked worktree it reads the hooks of the main worktree, and its writable_roots replace your own")
	}
	h := hookSet{tool: r.Tool, events: codexEvents, timeout: 10, command: shellLine(p.command(r.Agent, "hook", r.Tool))}
	rules := "prefix_rule(\n    pattern = [\"atm\", [" + strings.Join(each(Verbs, strconv.Quote), ", ") + "]],\n" +
		"    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n" +
		"    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\"],\n)\n"
	return []edit{
		jsonFile(filepath.Join(dir, "hooks.json"), h, nil),
		ownFile(filepath.Join(dir, "rules", "atm.rules"), "#", r.Tool, rules, allowedChange, "rules for atm removed"),
		tomlFile(filepath.Join(dir, "config.toml"), r.Tool, false, []tomlKey{
			{"sandbox_workspace_write", "writable_roots", p.Root, "[" + quoted(p.Root) + "]", "writable in the sandbox: " + p.Root},
			{"shell_environment_policy.set", "ATM_AGENT", r.Agent, quoted(r.Agent), "ATM_AGENT is " + r.Agent + " here, for the shell tool"},
		}),
	}, notes
}
