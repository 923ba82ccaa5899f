package agentconfig

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

var codexEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
	"PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
}

// codex is the plan for Codex (0.169): hooks.json, a file of rules of our own,
// and config.toml.
//
// Sources: https://developers.openai.com/codex/hooks, …/codex/rules and
// …/codex/config-reference; the order of hooks and their trust,
// codex-rs/hooks/src/engine/discovery.rs in https://github.com/openai/codex;
// all tried with 0.169.0.
//
//   - The user's files are in CODEX_HOME, else ~/.codex; a project's in .codex. Of a
//     linked worktree the hooks are read in the main one
//     (https://github.com/openai/codex/pull/21969).
//   - A hook runs once the user has trusted it, in /hooks; the trust is for its text
//     and its place in the list, so ours stand at the end.
//   - A prefix_rule compares whole words of one command; a line that is more than plain
//     commands matches none. What is allowed runs outside the sandbox.
//   - shell_environment_policy.set is what the shell tool's commands get.
func (p *Installer) codex(r Request, local string) *plan {
	dir := cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(p.Home, ".codex"))
	if r.Local {
		dir = filepath.Join(local, ".codex")
	}
	path := filepath.Join(dir, "hooks.json")
	h := hookSet{events: codexEvents, timeout: 10, command: shellLine(p.command(r.Tool, r.Agent))}
	keys := []tomlKey{
		{"sandbox_workspace_write", "writable_roots", p.Root, "[" + quoted(p.Root) + "]", "writable in the sandbox: " + p.Root},
		{"shell_environment_policy.set", "ATM_AGENT", r.Agent, quoted(r.Agent), "ATM_AGENT is " + r.Agent + " here, for the shell tool"},
	}
	pl := &plan{edits: []edit{
		jsonFile(path, r.Tool, h, nil),
		blockEdit(filepath.Join(dir, "rules", "atm.rules"), "#", r.Tool, codexRules(), allowed, "rules for atm taken out"),
		tomlFile(filepath.Join(dir, "config.toml"), r.Tool, keys),
	}}
	if !r.remove {
		pl.notes = append(pl.notes, "codex runs new and changed hooks only after you trust them: start it and type /hooks")
	}
	if r.Local {
		pl.notes = append(pl.notes, "codex reads .codex here once the project is trusted; in a linked worktree it reads the hooks of the main one, and its writable_roots take the place of your own")
	}
	return pl
}

// codexRules lets the mail verbs through. The examples are checked by codex
// when it reads them.
func codexRules() string {
	return "prefix_rule(\n    pattern = [\"atm\", [" + strings.Join(perVerb(strconv.Quote), ", ") + "]],\n" +
		"    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n" +
		"    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\"],\n)\n"
}
