package agentconfig

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// PreCompress is not among them: it fires before every request, and says nothing
// about the turn.
var geminiEvents = []string{"SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"}

// gemini is the plan for Gemini CLI (0.61): settings.json, and a file of
// policies of our own.
//
// Sources: hooks/reference.md, reference/configuration.md and
// reference/policy-engine.md of the documentation that the package of 0.61.0
// carries; how files are read and put together, its bundle; tried with it.
//
//   - The user's files are in .gemini in GEMINI_CLI_HOME, else in the home directory;
//     a project's in its .gemini. Timeouts are in milliseconds.
//   - tools.allowed is not used: as soon as it names one shell command, every other is
//     denied. A policy with commandPrefix "atm send" is for these words, alone or with
//     more behind; a line of several commands is taken apart, and one with a
//     redirection is asked about. Policies are read from the user's directory only.
//   - No setting carries environment variables to the shell tool. A .env would, but the
//     first one found hides all others, and with them a key.
func (p *Installer) gemini(r Request, local string) *plan {
	dir := filepath.Join(cmp.Or(os.Getenv("GEMINI_CLI_HOME"), p.Home), ".gemini")
	if r.Local {
		dir = filepath.Join(local, ".gemini")
	}
	path := filepath.Join(dir, "settings.json")
	h := hookSet{events: geminiEvents, timeout: 10_000, command: shellLine(p.command(r.Tool, r.Agent))}
	pl := &plan{edits: []edit{jsonFile(path, r.Tool, h, p.withRoot(nil, "/tools/sandboxAllowedPaths/-"))}}
	if !r.Local {
		pl.edits = append(pl.edits, blockEdit(filepath.Join(dir, "policies", "atm.toml"), "#", r.Tool, geminiPolicy(), allowed, "rules for atm taken out"))
		return pl
	}
	pl.notes = append(pl.notes,
		"gemini reads .gemini here once the folder is trusted; its sandboxAllowedPaths take the place of your own",
		"gemini reads policies from your home directory only: atm install gemini lets it run atm without asking")
	if r.Agent != "" {
		pl.notes = append(pl.notes, "gemini's settings cannot set ATM_AGENT for the commands that it runs: the hooks say --as "+r.Agent+"; start it as ATM_AGENT="+r.Agent+" gemini")
	}
	return pl
}

// geminiPolicy lets the mail verbs through.
func geminiPolicy() string {
	return "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\n" + strings.Join(perVerb(func(verb string) string { return "  \"atm " + verb + "\",\n" }), "") +
		"]\ndecision = \"allow\"\npriority = 100\n"
}
