package install

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/confedit"
)

var codexEvents = []event{
	{"SessionStart", 10}, {"SessionEnd", 3}, {"UserPromptSubmit", 10}, {"PreToolUse", 5}, {"PermissionRequest", 5},
	{"PostToolUse", 10}, {"PreCompact", 5}, {"PostCompact", 5}, {"SubagentStart", 5}, {"SubagentStop", 5},
	{"Stop", 10}, {"Interrupt", 3},
}

func (p *Place) codexHome() string {
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
func (p *Place) codex(r Request, local string) *plan {
	pl := &plan{}
	dir := p.codexHome()
	if r.Local {
		dir = filepath.Join(local, ".codex")
	}
	path := filepath.Join(dir, "hooks.json")
	h := hooks{tool: r.Tool, events: codexEvents}
	before := h.commands(path, strictJSON)
	h.command = shellLine(p.command(r.Tool, agentOf(r, before)))
	pl.parts = append(pl.parts, part{
		path: path, format: strictJSON, ours: h.ours, commands: before,
		fill: func(s *sheet) error {
			err := h.fill(s)
			if p.codexHooksOff() {
				s.notes = append(s.notes, "features.hooks is false in codex's config.toml: it runs no hooks until you change that")
			}
			if s.changed() {
				s.notes = append(s.notes, "codex runs new and changed hooks only after you trust them: start it and type /hooks")
			}
			return err
		},
		clear: func(s *sheet) error { h.clear(s); return nil },
	}, p.rules(r.Tool, filepath.Join(dir, "rules", "atm.rules"), codexRules()), part{
		path: filepath.Join(dir, "config.toml"), format: tomlFile,
		fill:  func(s *sheet) error { return p.fillCodexConfig(s, r) },
		clear: func(s *sheet) error { return p.clearCodexConfig(s) },
	})
	p.pathNote(pl)
	p.rootNote(pl)
	if r.Local {
		pl.notes = append(pl.notes, "codex reads .codex here once the project is trusted")
		if isLinked(local) {
			pl.notes = append(pl.notes, "this is a linked worktree, and codex reads the hooks of the main one: for hooks here, atm install codex; who the agent is they learn from codex's own environment: ATM_AGENT=NAME codex")
		}
	}
	return pl
}

// codexRules lets the mail verbs through. The examples are checked by codex
// when it reads them.
func codexRules() string {
	var b strings.Builder
	b.WriteString("prefix_rule(\n    pattern = [\"atm\", [")
	for i, v := range Verbs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`"` + v + `"`)
	}
	b.WriteString("]],\n    decision = \"allow\",\n    match = [\"atm send bob hello\", \"atm read\"],\n")
	b.WriteString("    not_match = [\"atm\", \"atm stop bob\", \"atm run bob\", \"atm sendx bob\"],\n)\n")
	return b.String()
}

var (
	codexRoots = []string{"sandbox_workspace_write", "writable_roots"}
	codexAgent = []string{"shell_environment_policy", "set", "ATM_AGENT"}
)

// toml is the sheet's document, which has been understood before.
func (s *sheet) toml() *confedit.TOML {
	doc, err := confedit.ParseTOML(s.text.Bytes())
	if err != nil {
		panic(broken{s.path, err})
	}
	return doc
}

func (p *Place) fillCodexConfig(s *sheet, r Request) error {
	roots := s.toml().Find(codexRoots...)
	want := []string{}
	if p.Root != "" {
		want = append(want, p.Root)
	}
	if r.Local && roots == nil && p.Root != "" {
		want = union(p.codexUserRoots(), want)
	}
	at := place(codexRoots)
	for _, root := range want {
		doc := s.toml()
		e := doc.Find(codexRoots...)
		if e != nil && slices.ContainsFunc(e.Elems, func(el confedit.Elem) bool { return el.Text == root }) {
			continue
		}
		if e == nil {
			s.new.make(at)
			if !doc.Has(codexRoots[:1]...) {
				s.new.make(codexRoots[0])
			}
		}
		edit, err := doc.AddElem(root, codexRoots...)
		if err != nil {
			return err
		}
		s.text.Apply(edit)
		s.new.Values[at] = union(s.new.Values[at], []string{root})
		s.say("writable in the sandbox: %s", root)
	}
	if r.Agent == "" {
		return nil
	}
	doc := s.toml()
	e := doc.Find(codexAgent...)
	if e != nil && e.Text == r.Agent {
		return nil
	}
	at = place(codexAgent)
	if e == nil {
		s.new.make(at)
		for n := 1; n < len(codexAgent); n++ {
			if !doc.Has(codexAgent[:n]...) {
				s.new.make(place(codexAgent[:n]))
			}
		}
	} else if v, ok := s.old.values(at); (!ok || len(v) == 0) && e.IsString {
		s.new.Was[at] = e.Text
	}
	edit, err := doc.SetString(r.Agent, codexAgent...)
	if err != nil {
		return err
	}
	s.text.Apply(edit)
	s.new.Values[at] = []string{r.Agent}
	s.say("ATM_AGENT is %s here, for the shell tool", r.Agent)
	return nil
}

// codexHooksOff reports whether the user has switched hooks off, by either name
// of the switch.
func (p *Place) codexHooksOff() bool {
	data, _, err := read(filepath.Join(p.codexHome(), "config.toml"))
	if err != nil {
		return false
	}
	doc, err := confedit.ParseTOML(data)
	if err != nil {
		return false
	}
	for _, name := range []string{"hooks", "codex_hooks"} {
		if e := doc.Find("features", name); e != nil && e.Text == "false" {
			return true
		}
	}
	return false
}

// codexUserRoots are those of the user's own configuration, as far as that can
// be read: a project's list hides them.
func (p *Place) codexUserRoots() (roots []string) {
	data, _, err := read(filepath.Join(p.codexHome(), "config.toml"))
	if err != nil {
		return nil
	}
	doc, err := confedit.ParseTOML(data)
	if err != nil {
		return nil
	}
	if e := doc.Find(codexRoots...); e != nil {
		for _, el := range e.Elems {
			roots = append(roots, el.Text)
		}
	}
	return roots
}

func (p *Place) clearCodexConfig(s *sheet) error {
	roots, ok := s.old.values(place(codexRoots))
	if !ok && p.Root != "" {
		roots = []string{p.Root}
	}
	var dropped []string
	for _, root := range roots {
		doc := s.toml()
		e := doc.Find(codexRoots...)
		if e == nil {
			break
		}
		if i := slices.IndexFunc(e.Elems, func(el confedit.Elem) bool { return el.IsString && el.Text == root }); i >= 0 {
			s.text.Apply(doc.RemoveElem(e, i))
			dropped = append(dropped, root)
		}
	}
	if len(dropped) > 0 {
		s.say("no longer writable in the sandbox: %s", strings.Join(dropped, ", "))
		doc := s.toml()
		if e := doc.Find(codexRoots...); len(e.Elems) == 0 && s.old.made(place(codexRoots)) {
			s.text.Apply(doc.RemoveKey(e))
			s.dropTable(codexRoots[:1])
		}
	}
	at := place(codexAgent)
	noted, _ := s.old.values(at)
	doc := s.toml()
	if e := doc.Find(codexAgent...); e != nil && slices.Contains(noted, e.Text) {
		if was, ok := s.old.Was[at]; ok {
			edit, err := doc.SetString(was, codexAgent...)
			if err != nil {
				return err
			}
			s.text.Apply(edit)
		} else {
			s.text.Apply(doc.RemoveKey(e))
			for n := len(codexAgent) - 1; n > 0; n-- {
				s.dropTable(codexAgent[:n])
			}
		}
		s.say("ATM_AGENT taken out")
	}
	return nil
}

// dropTable takes out the header of a table that is empty, if we made it.
func (s *sheet) dropTable(path []string) {
	if s.old.made(place(path)) {
		if e := s.toml().RemoveTable(path...); e != nil {
			s.text.Apply(e)
		}
	}
}
