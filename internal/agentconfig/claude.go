package agentconfig

import (
	"cmp"
	"os"
	"path/filepath"
)

// claudeEvents are what internal/hook understands of Claude Code's hooks.
var claudeEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "Notification", "PreToolUse", "PostToolUse",
	"PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult",
	"PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "TeammateIdle",
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
//   - Bash(atm send:*) is "atm send", alone or with a blank and more behind it. A line
//     of several commands is taken apart; substitutions and redirections are asked about.
//   - sandbox.filesystem.allowWrite adds to what sandboxed commands may write.
//   - env holds for the session and everything it starts, hooks too.
func (p *Installer) claude(r Request, local string) *plan {
	path := filepath.Join(local, ".claude", "settings.local.json")
	if !r.Local {
		path = filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(p.Home, ".claude")), "settings.json")
	}
	settings := perVerb(func(verb string) setting {
		return setting{"/permissions/allow/-", "Bash(atm " + verb + ":*)", allowed}
	})
	settings = p.withRoot(settings, "/sandbox/filesystem/allowWrite/-")
	if r.Agent != "" {
		settings = append(settings, setting{"/env/ATM_AGENT", r.Agent, "ATM_AGENT is " + r.Agent + " here"})
	}
	h := hookSet{events: claudeEvents, timeout: 10, command: shellLine(p.command(r.Tool, ""))}
	return &plan{edits: []edit{jsonFile(path, r.Tool, h, settings)}}
}
