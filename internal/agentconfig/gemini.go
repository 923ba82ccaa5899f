package agentconfig

import (
	"path/filepath"
	"strings"
)

// PreCompress is not among them: it fires before every request, and says nothing
// about the turn.
var geminiEvents = []hookEvent{
	{"SessionStart", 10_000}, {"SessionEnd", 3_000}, {"BeforeAgent", 10_000}, {"AfterAgent", 10_000},
	{"BeforeTool", 5_000}, {"AfterTool", 10_000}, {"Notification", 5_000},
}

func (p *Installer) geminiHome() string {
	if dir := p.getenv("GEMINI_CLI_HOME"); dir != "" {
		return filepath.Join(dir, ".gemini")
	}
	return filepath.Join(p.Home, ".gemini")
}

// gemini is the plan for Gemini CLI (0.61): settings.json, and a file of
// policies of our own.
//
// Sources: hooks/reference.md, reference/configuration.md and
// reference/policy-engine.md of the documentation that the package of 0.61.0
// carries; how files are read and put together, its bundle; tried with it.
//
//   - The user's files are in .gemini in GEMINI_CLI_HOME, else in the home
//     directory; a project's in its .gemini, which counts where the folder is
//     trusted. Settings may have comments, but no comma too many.
//   - Hooks of both files run, one of the same name and command once. Timeouts
//     are in milliseconds.
//   - tools.allowed is not used: as soon as it names one shell command, every
//     other is denied. A policy with commandPrefix "atm send" is for the words
//     atm send, alone or with more behind; a line of several commands is taken
//     apart, and one with a redirection, a here document too, is asked about.
//   - Policies are read from the user's own directory only, or from the places
//     in policyPaths, which takes that directory's place: a project's settings
//     name both.
//   - tools.sandboxAllowedPaths of a project replaces the user's.
//   - No setting carries environment variables to the shell tool. A .env would,
//     but the first one found hides all others, and with them a key.
func (p *Installer) gemini(r Request, local string) *plan {
	dir := p.geminiHome()
	if r.Local {
		dir = filepath.Join(local, ".gemini")
	}
	path := filepath.Join(dir, "settings.json")
	policies := filepath.Join(dir, "policies", "atm.toml")
	before := currentHook(path, r.Tool)
	h := hookSet{name: "atm", events: geminiEvents, command: shellLine(p.command(r, before))}
	known := []string{entry(p.Root, "tools", "sandboxAllowedPaths"), entry(policies, "policyPaths")}
	settings := newJSONEdit(path, r.Tool, jsonComments, known, func(e *jsonEdit) error {
		if err := h.install(e); err != nil {
			return err
		}
		if e.isFlag("false", "hooksConfig", "enabled") {
			e.note("hooksConfig.enabled is false in %s: gemini runs no hooks until you change that", path)
		}
		if !r.Local {
			return e.addRoot(p.Root, nil, "tools", "sandboxAllowedPaths")
		}
		if err := p.addPolicyPaths(e, policies); err != nil {
			return err
		}
		return e.addRoot(p.Root, p.geminiUserPaths("tools", "sandboxAllowedPaths"), "tools", "sandboxAllowedPaths")
	})
	pl := &plan{edits: []edit{settings, rulesEdit(r.Tool, policies, geminiPolicy())}, command: before}
	if r.Local {
		pl.notes = append(pl.notes, "gemini reads .gemini here once the folder is trusted")
		if r.Agent != "" {
			pl.notes = append(pl.notes, "gemini's settings cannot set ATM_AGENT for the commands that it runs: the hooks say --as "+r.Agent+"; start it as ATM_AGENT="+r.Agent+" gemini")
		}
	}
	return pl
}

// addPolicyPaths makes a project's settings name our policies, and the user's
// own beside them, which they would hide.
func (p *Installer) addPolicyPaths(e *jsonEdit, policies string) error {
	want := []string{policies}
	if find(e.root, "policyPaths") == nil && len(p.geminiUserPaths("policyPaths")) == 0 {
		want = []string{filepath.Join(p.geminiHome(), "policies"), policies}
	}
	added, err := e.addStrings(want, "policyPaths")
	if len(added) > 0 {
		e.say("policies are read from %s too", policies)
	}
	return err
}

// geminiUserPaths is a list in the user's own settings, as far as they can be
// read.
func (p *Installer) geminiUserPaths(keys ...string) []string {
	return strs(find(readJSON(filepath.Join(p.geminiHome(), "settings.json")), keys...))
}

// geminiPolicy lets the mail verbs through.
func geminiPolicy() string {
	return "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\n" + strings.Join(perVerb("  \"atm %s\",\n"), "") +
		"]\ndecision = \"allow\"\npriority = 100\n"
}
