package agentconfig

import (
	"path/filepath"
)

// claudeEvents are what internal/hook understands of Claude Code's hooks. Mail
// is handed over where a turn begins, goes on or ends: those wait for the
// mailbox, the others only for the log.
var claudeEvents = []hookEvent{
	{"SessionStart", 10}, {"SessionEnd", 5}, {"UserPromptSubmit", 10}, {"Stop", 10}, {"StopFailure", 5},
	{"Notification", 5}, {"PreToolUse", 5}, {"PostToolUse", 5}, {"PostToolUseFailure", 5}, {"PostToolBatch", 10},
	{"PermissionRequest", 5}, {"PermissionDenied", 5}, {"Elicitation", 5}, {"ElicitationResult", 5},
	{"PreCompact", 5}, {"PostCompact", 5}, {"SubagentStart", 5}, {"SubagentStop", 5}, {"TeammateIdle", 10},
}

// claude is the plan for Claude Code (2.1): one file, settings.json, has
// everything.
//
// Sources: the settings layout and events, protocols of the program's bundle
// 2.1.328; rules, https://code.claude.com/docs/en/permissions; the sandbox,
// https://code.claude.com/docs/en/sandboxing; all tried with 2.1.197.
//
//   - The user's file is settings.json in CLAUDE_CONFIG_DIR, else ~/.claude; a
//     directory's own, which is not for the repository, .claude/settings.local.json.
//     Hooks of all files run, the same command once. Both are read by JSON.parse.
//   - Bash(atm send:*) is "atm send", alone or with a blank and more behind it.
//     A line with ; && | or a line end is taken apart and every command judged
//     on its own; command substitution and redirections are asked about.
//   - sandbox.filesystem.allowWrite adds to what sandboxed commands may write,
//     lists of all files together; it switches no sandbox on. A path with a
//     slash in front is absolute.
//   - env holds for the session and everything it starts, hooks too.
//   - Timeouts are in seconds. At the end of a session hooks are given 1.5 s
//     unless one asks for more.
func (p *Installer) claude(r Request, local string) *plan {
	path := filepath.Join(local, ".claude", "settings.local.json")
	if !r.Local {
		dir := p.getenv("CLAUDE_CONFIG_DIR")
		if dir == "" {
			dir = filepath.Join(p.Home, ".claude")
		}
		path = filepath.Join(dir, "settings.json")
	}
	h := hookSet{events: claudeEvents, command: shellLine(p.command(Request{Tool: r.Tool}, ""))}
	rules := perVerb("Bash(atm %s:*)")
	known := perVerb(entry("Bash(atm %s:*)", "permissions", "allow"))
	known = append(known, entry(p.Root, "sandbox", "filesystem", "allowWrite"))
	settings := newJSONEdit(path, r.Tool, strictJSON, known, func(e *jsonEdit) error {
		if err := h.install(e); err != nil {
			return err
		}
		if e.isFlag("true", "disableAllHooks") {
			e.note("disableAllHooks is true in %s: claude runs no hooks until you change that", path)
		}
		added, err := e.addStrings(rules, "permissions", "allow")
		if err != nil {
			return err
		}
		e.sayVerbs(added)
		if err := e.addRoot(p.Root, nil, "sandbox", "filesystem", "allowWrite"); err != nil || r.Agent == "" {
			return err
		}
		changed, err := e.setString(r.Agent, "env", "ATM_AGENT")
		if changed {
			e.say("ATM_AGENT is %s here", r.Agent)
		}
		return err
	})
	return &plan{edits: []edit{settings}, command: currentHook(path, r.Tool)}
}
