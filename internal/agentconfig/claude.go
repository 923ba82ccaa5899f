package agentconfig

import "path/filepath"

// claudeEvents are what internal/hook understands of Claude Code's hooks.
var claudeEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "Notification", "PreToolUse", "PostToolUse",
	"PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult",
	"PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "TeammateIdle",
}

// claude is the plan for Claude Code (2.1): one file, settings.json, has everything. Bash(atm send:*)
// is "atm send", alone or with a blank and more behind it; a line of several commands is taken apart.
// env holds for all that the session starts.
//
// Sources: https://code.claude.com/docs/en/permissions and …/sandboxing, the bundle of 2.1.328; tried with 2.1.197.
func (p *Installer) claude(r Request, local string) (edits []edit, notes []string) {
	path := filepath.Join(local, ".claude", "settings.local.json")
	if !r.Local {
		path = filepath.Join(p.userDir("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")
	}
	all := each(Verbs, func(verb string) setting {
		return setting{"/permissions/allow/-", quoted("Bash(atm " + verb + ":*)"), allowed, nil}
	})
	all = append(all, p.writableRoot("/sandbox/filesystem/allowWrite/-"),
		setting{"/env/ATM_AGENT", quoted(r.Agent), "ATM_AGENT is " + r.Agent + " here", nil})
	h := hookSet{tool: r.Tool, events: claudeEvents, timeout: 10, command: shellLine(p.command("", "hook", r.Tool))}
	return []edit{jsonFile(path, h, all)}, nil
}
