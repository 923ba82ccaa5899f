package install

import (
	"path/filepath"

	"github.com/agentteammail/atm/internal/confedit"
)

// PreCompress is not among them: it fires before every request, and says nothing
// about the turn.
var geminiEvents = []event{
	{"SessionStart", 10_000}, {"SessionEnd", 3_000}, {"BeforeAgent", 10_000}, {"AfterAgent", 10_000},
	{"BeforeTool", 5_000}, {"AfterTool", 10_000}, {"Notification", 5_000},
}

func (p *Place) geminiHome() string {
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
func (p *Place) gemini(r Request, local string) *plan {
	pl := &plan{}
	dir := p.geminiHome()
	if r.Local {
		dir = filepath.Join(local, ".gemini")
	}
	settings := filepath.Join(dir, "settings.json")
	policies := filepath.Join(dir, "policies", "atm.toml")
	h := hooks{tool: r.Tool, name: "atm", events: geminiEvents}
	before := h.commands(settings, jsonWithComments)
	h.command = shellLine(p.command(r.Tool, agentOf(r, before)))
	pl.parts = append(pl.parts, part{
		path: settings, format: jsonWithComments, ours: h.ours, commands: before,
		fill: func(s *sheet) error {
			if err := h.fill(s); err != nil {
				return err
			}
			if s.isFlag("hooksConfig.enabled", "false") {
				s.notes = append(s.notes, "hooksConfig.enabled is false in "+s.path+": gemini runs no hooks until you change that")
			}
			var inherited []string
			if r.Local {
				if err := p.geminiPolicyPaths(s, policies); err != nil {
					return err
				}
				inherited = p.geminiUserPaths("tools", "sandboxAllowedPaths")
			}
			return p.addRoot(s, inherited, "tools", "sandboxAllowedPaths")
		},
		clear: func(s *sheet) error {
			h.clear(s)
			p.dropRoots(s, "tools", "sandboxAllowedPaths")
			if r.Local {
				paths, ok := s.old.values("policyPaths")
				if !ok {
					paths = []string{policies}
				}
				s.dropStrings(paths, "policyPaths")
			}
			return nil
		},
	}, p.rules(r.Tool, policies, geminiPolicy()))
	p.pathNote(pl)
	p.rootNote(pl)
	if r.Local {
		pl.notes = append(pl.notes, "gemini reads .gemini here once the folder is trusted")
		if r.Agent != "" {
			pl.notes = append(pl.notes, "gemini's settings cannot set ATM_AGENT for the commands that it runs: the hooks say --as "+r.Agent+"; start it as ATM_AGENT="+r.Agent+" gemini")
		}
	}
	return pl
}

// geminiPolicyPaths makes a project's settings name our policies, and the
// user's own beside them.
func (p *Place) geminiPolicyPaths(s *sheet, policies string) error {
	want := []string{policies}
	if _, list := s.look("policyPaths"); list == nil && len(p.geminiUserPaths("policyPaths")) == 0 {
		want = []string{filepath.Join(p.geminiHome(), "policies"), policies}
	}
	added, err := s.addStrings(want, "policyPaths")
	if len(added) > 0 {
		s.say("policies are read from %s too", policies)
	}
	return err
}

// geminiUserPaths is a list of the user's own settings, as far as they can be
// read.
func (p *Place) geminiUserPaths(keys ...string) (paths []string) {
	data, _, err := read(filepath.Join(p.geminiHome(), "settings.json"))
	if err != nil {
		return nil
	}
	doc, err := confedit.ParseJSON(data, jsonWithComments.dialect())
	if err != nil {
		return nil
	}
	if v := doc.Root.At(keys...); v != nil {
		for _, e := range v.Elems {
			if e.Kind == confedit.String {
				paths = append(paths, e.Text)
			}
		}
	}
	return paths
}

// geminiPolicy lets the mail verbs through.
func geminiPolicy() string {
	body := "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\n"
	for _, v := range Verbs {
		body += "  \"atm " + v + "\",\n"
	}
	return body + "]\ndecision = \"allow\"\npriority = 100\n"
}
