package agentconfig

// claudeEvents are the hooks of Claude Code that internal/hook understands.
var claudeEvents = []string{
	"SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure", "Notification", "PreToolUse", "PostToolUse",
	"PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult",
	"PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "TeammateIdle",
}

// claude plans the configuration of Claude Code (2.1): all of it is in settings.json. Bash(atm send:*) allows "atm
// send", alone or followed by a blank and more; Claude splits a line of several commands first. env is the environment
// of everything that the session starts.
//
// Sources: https://code.claude.com/docs/en/permissions and …/sandboxing, the bundle of 2.1.328; tried with 2.1.197.
func (p *Installer) claude(r Request, top string) (edits []edit, notes []string) {
	path := p.path(r, top, ".claude/settings.local.json", "CLAUDE_CONFIG_DIR", ".claude", "settings.json")
	settings := each(Verbs, func(verb string) setting {
		return setting{"/permissions/allow/-", quoted("Bash(atm " + verb + ":*)"), allowedChange, nil}
	})
	settings = append(settings, p.writableRoot("/sandbox/filesystem/allowWrite/-"),
		setting{"/env/ATM_AGENT", quoted(r.Agent), "ATM_AGENT is " + r.Agent + " here", nil})
	h := hookSet{tool: r.Tool, events: claudeEvents, timeout: 10, command: shellLine(p.command("", "hook", r.Tool))}
	return []edit{jsonFile(path, h, settings)}, nil
}
