package agentconfig

import (
	"path/filepath"
	"strings"
)

var codexEvents = []hookEvent{
	{"SessionStart", 10}, {"SessionEnd", 3}, {"UserPromptSubmit", 10}, {"PreToolUse", 5}, {"PermissionRequest", 5},
	{"PostToolUse", 10}, {"PreCompact", 5}, {"PostCompact", 5}, {"SubagentStart", 5}, {"SubagentStop", 5},
	{"Stop", 10}, {"Interrupt", 3},
}

func (p *Installer) codexHome() string {
	if dir := p.getenv("CODEX_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(p.Home, ".codex")
}

// codex is the plan for Codex (0.169): hooks.json, a file of rules of our own,
// and config.toml.
//
// Sources: https://developers.openai.com/codex/hooks, …/codex/rules and
// …/codex/config-reference; the order of hooks and their trust,
// codex-rs/hooks/src/engine/discovery.rs in https://github.com/openai/codex;
// all tried with 0.169.0.
//
//   - The user's files are in CODEX_HOME, else ~/.codex; a project's in .codex.
//     The latter count in a project that is trusted. Of a linked worktree the
//     hooks are read in the main one (https://github.com/openai/codex/pull/21969).
//   - hooks.json may have "hooks" and "description" and nothing else, and no
//     comments. A hook runs once the user has trusted it, in /hooks; the trust
//     is for the text of the hook and its place in the list, so ours stand at
//     the end. Hooks have the environment of codex itself.
//   - A prefix_rule compares whole words of one command; with several commands
//     on a line each needs its own, and a line that is more than plain commands
//     matches none. What is allowed runs outside the sandbox.
//   - sandbox_workspace_write.writable_roots of a project replaces the user's.
//   - shell_environment_policy.set is what the shell tool's commands get.
//   - Timeouts are in seconds; SessionEnd and Interrupt get 3 at the most.
func (p *Installer) codex(r Request, local string) *plan {
	dir := p.codexHome()
	if r.Local {
		dir = filepath.Join(local, ".codex")
	}
	path := filepath.Join(dir, "hooks.json")
	before := currentHook(path, r.Tool)
	h := hookSet{events: codexEvents, command: shellLine(p.command(r, before))}
	hooks := newJSONEdit(path, r.Tool, strictJSON, nil, func(e *jsonEdit) error {
		if p.codexHooksOff() {
			e.note("features.hooks is false in codex's config.toml: it runs no hooks until you change that")
		}
		if err := h.install(e); err != nil {
			return err
		}
		if len(e.changes) > 0 {
			e.note("codex runs new and changed hooks only after you trust them: start it and type /hooks")
		}
		return nil
	})
	rules := rulesEdit(r.Tool, filepath.Join(dir, "rules", "atm.rules"), codexRules())
	config := edit{path: filepath.Join(dir, "config.toml")}
	config.install = func(f *file) error { return f.editTOML(func(e *tomlEdit) error { return p.installCodexConfig(e, r) }) }
	config.uninstall = func(f *file) error { return f.editTOML(p.uninstallCodexConfig) }
	pl := &plan{edits: []edit{hooks, rules, config}, command: before}
	if r.Local {
		pl.notes = append(pl.notes, "codex reads .codex here once the project is trusted")
		if isLinkedWorktree(local) {
			pl.notes = append(pl.notes, "this is a linked worktree, and codex reads the hooks of the main one: for hooks here, atm install codex; who the agent is they learn from codex's own environment: ATM_AGENT=NAME codex")
		}
	}
	return pl
}

// codexRules lets the mail verbs through. The examples are checked by codex
// when it reads them.
func codexRules() string {
	return "prefix_rule(\n    pattern = [\"atm\", [" + strings.Join(perVerb(`"%s"`), ", ") + "]],\n" +
		"    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n" +
		"    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\"],\n)\n"
}

func (p *Installer) installCodexConfig(e *tomlEdit, r Request) error {
	if p.Root != "" {
		want := []string{p.Root}
		if r.Local && e.get("sandbox_workspace_write", "writable_roots") == nil {
			// A project's list hides the user's.
			want = union(tomlStrings(p.codexUser("sandbox_workspace_write", "writable_roots")), want)
		}
		if err := e.addStrings(want, "sandbox_workspace_write", "writable_roots"); err != nil {
			return err
		}
	}
	if r.Agent != "" {
		e.setString(r.Agent, "shell_environment_policy.set", "ATM_AGENT")
	}
	return nil
}

func (p *Installer) uninstallCodexConfig(e *tomlEdit) error {
	e.removeStrings(e.ours([]string{p.Root}), "sandbox_workspace_write", "writable_roots")
	e.resetString("shell_environment_policy.set", "ATM_AGENT")
	e.removeMarkedTables()
	return nil
}

// codexUser is a value of the user's own configuration, as far as that can be
// read.
func (p *Installer) codexUser(table, key string) any {
	data, _, err := readFile(filepath.Join(p.codexHome(), "config.toml"))
	if err != nil {
		return nil
	}
	doc, err := parseTOML(data)
	if err != nil {
		return nil
	}
	return tomlGet(doc, table, key)
}

// codexHooksOff reports whether the user has switched hooks off, by either name
// of the switch.
func (p *Installer) codexHooksOff() bool {
	return p.codexUser("features", "hooks") == false || p.codexUser("features", "codex_hooks") == false
}
