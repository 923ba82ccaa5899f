package agentconfig

import (
	"path/filepath"
	"strings"
)

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
	h := hookSet{tool: r.Tool, events: geminiEvents, timeout: 10_000, command: shellLine(p.command(r.Agent, "hook", r.Tool))}
	edits = []edit{jsonFile(filepath.Join(dir, "settings.json"), h, []setting{p.writableRoot("/tools/sandboxAllowedPaths/-")})}
	if !r.Local {
		verbs := each(Verbs, func(verb string) string { return "  \"atm " + verb + "\",\n" })
		policy := "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\n" + strings.Join(verbs, "") + "]\ndecision = \"allow\"\npriority = 100\n"
		return append(edits, ownFile(filepath.Join(dir, "policies", "atm.toml"), "#", r.Tool, policy, allowedChange, "rules for atm removed")), nil
	}
	notes = []string{
		"gemini reads .gemini here once the folder is trusted; its sandboxAllowedPaths replace your own",
		"gemini reads policies from your home directory only: atm install gemini lets it run atm without asking",
	}
	if r.Agent != "" {
		notes = append(notes, "gemini's settings cannot set ATM_AGENT for the commands it runs: the hooks say --as "+r.Agent+"; start gemini with ATM_AGENT="+r.Agent+" gemini")
	}
	return edits, notes
}
