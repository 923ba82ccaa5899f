// Package agentconfig writes what a coding agent needs to know of atm into that
// program's own configuration, and takes it out again.
//
// What it writes, a file a tool (claude.go, codex.go, gemini.go, opencode.go):
//
//   - hooks, so that states become events and mail goes along with a turn;
//   - permission to run atm's mail verbs without asking (Verbs), and none that
//     starts, types for, approves or stops;
//   - where the program has a sandbox, the root among the writable paths;
//   - for one worktree, who the agent is.
//
// What may be relied on:
//
//   - Nothing is written before every file was read, understood and found to
//     be nobody's but the user's: one that a repository tracks, directly or
//     through a link, or that does not parse, is an error that names it.
//   - What is there stays: keys, order, comments, layout. Done again, it
//     changes nothing. Older entries of ours are brought up to date.
//   - Uninstall gives back the bytes that were there, as long as nobody else
//     changed the file; else it takes out what is ours and keeps the rest. For
//     that a copy of the original is kept in the user's state directory
//     (record). Without it, what is recognisably ours is taken out, and empty
//     lists and objects stay: they may be the user's.
//   - Each file is replaced in one step, links are written through, modes kept.
//     A file that another program changes between reading and writing is left
//     alone, but for the instant between the last look and the replacement.
//   - When writing fails, no directory is left behind, and the error names what
//     failed. Files that were replaced before it stay: each is good on its own,
//     and installing again completes the rest.
package agentconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Tools are the programs whose configuration is known.
var Tools = []string{"claude", "codex", "gemini", "opencode"}

// Verbs are the commands of atm that an agent may run without being asked: its
// mail, and looking around. The rest starts, types for, approves or stops
// somebody, or changes the set-up: that stays asked for, and no pattern that
// this package writes may admit it.
var Verbs = []string{"send", "read", "reply", "ack", "ls", "show", "wait", "team", "trace", "where", "primer"}

// Installer knows the surroundings of an installation.
type Installer struct {
	Home   string              // "" is none: only Local works
	Dir    string              // the working directory, absolute
	State  string              // the user's state directory for atm; "" is none
	Self   string              // this executable
	Root   string              // the root that agents here are to use, accepted by the user; "" is none
	Getenv func(string) string // nil: nothing is set
}

func (p *Installer) getenv(name string) string {
	if p.Getenv == nil {
		return ""
	}
	return p.Getenv(name)
}

// Request says what to do.
type Request struct {
	Tool   string
	Local  bool   // this worktree's own file, else the user's
	Agent  string // with Local: who the agent is here; "" leaves that as it is
	DryRun bool   // nothing is written

	remove bool
}

// Report says what was changed, or would be.
type Report struct {
	Tool   string   `json:"tool"`
	Files  []Change `json:"files"` // only those that changed
	DryRun bool     `json:"dry_run"`
	Notes  []string `json:"notes,omitempty"` // what the person still has to do or know
}

// Change is one file, with a line for each kind of change.
type Change struct {
	Path    string   `json:"path"`
	Changes []string `json:"changes"`
}

// edit is what is to be done to one file of a tool's configuration.
type edit struct {
	path      string
	install   func(*file) error
	uninstall func(*file) error
}

// plan is what is to be done to all files of a tool, the one with the hooks
// first.
type plan struct {
	edits   []edit
	command string // that the hooks in place now run; "" where there are none
	notes   []string
}

func (p *Installer) plan(r Request) (*plan, error) {
	if !r.Local && p.Home == "" {
		return nil, errors.New("there is no home directory, and so no configuration of the user's own")
	}
	local := ""
	if r.Local {
		var err error
		if local, err = p.localDir(); err != nil {
			return nil, err
		}
	}
	var pl *plan
	switch r.Tool {
	case "claude":
		pl = p.claude(r, local)
	case "codex":
		pl = p.codex(r, local)
	case "gemini":
		pl = p.gemini(r, local)
	case "opencode":
		pl = p.opencode(r, local)
	default:
		return nil, fmt.Errorf("no tool %q", r.Tool)
	}
	if r.Local {
		if e, ok := excludeEdit(local, r.Tool, pl.edits); ok && !(r.remove && usedElsewhere(local, pl.edits)) {
			pl.edits = append(pl.edits, e)
		}
	}
	if p.onPath() == "" {
		pl.notes = append(pl.notes, "atm is not on your PATH: the hooks run "+p.Self+", but agents will type atm; link it into a directory on your PATH")
	}
	if p.Root == "" && r.Tool != "opencode" {
		pl.notes = append(pl.notes, "no team of yours was found here, so no sandbox was opened for it: run atm init in your project, then this again")
	}
	return pl, nil
}

// Install writes a tool's configuration.
func (p *Installer) Install(r Request) (*Report, error) {
	pl, files, err := p.run(r, (*file).install)
	if err != nil {
		return nil, err
	}
	rep := report(r, files)
	rep.Notes = pl.notes
	for _, f := range files {
		rep.Notes = append(rep.Notes, f.notes...)
	}
	if r.DryRun {
		return rep, nil
	}
	notes, err := writeFiles(files)
	rep.Notes = append(rep.Notes, notes...)
	return rep, err
}

// Uninstall takes out of a tool's configuration what Install put there.
func (p *Installer) Uninstall(r Request) (*Report, error) {
	r.Agent, r.remove = "", true
	_, files, err := p.run(r, (*file).uninstall)
	if err != nil {
		return nil, err
	}
	rep := report(r, files)
	if r.DryRun {
		return rep, nil
	}
	if _, err := writeFiles(files); err != nil {
		return nil, err
	}
	forget(files)
	return rep, nil
}

// run opens all files of a request and edits each in memory.
func (p *Installer) run(r Request, do func(*file, edit) error) (*plan, []*file, error) {
	pl, err := p.plan(r)
	if err != nil {
		return nil, nil, err
	}
	var files []*file
	for _, e := range pl.edits {
		f, err := p.openFile(r.Tool, e)
		if err != nil {
			return nil, nil, err
		}
		f.earlier = pl.command != ""
		if err := do(f, e); err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	return pl, files, nil
}

func report(r Request, files []*file) *Report {
	rep := &Report{Tool: r.Tool, DryRun: r.DryRun, Files: []Change{}}
	for _, f := range files {
		if f.changed() {
			rep.Files = append(rep.Files, Change{Path: f.path, Changes: f.changes})
		}
	}
	return rep
}

// Status is what a tool's configuration says of our hooks.
type Status struct {
	Tool      string
	Local     bool   // of this worktree, else the user's
	Path      string // the file that has the hooks, or would
	Installed bool
	Current   bool   // Install would change nothing of that file
	Missing   string // the program that the hooks run, if it is not there
}

// Status looks whether a tool's hooks are installed. A file that cannot be read
// or understood, or that a repository tracks, is an error: Install would refuse
// it as well.
func (p *Installer) Status(tool string, local bool) (Status, error) {
	st := Status{Tool: tool, Local: local}
	r := Request{Tool: tool, Local: local}
	pl, err := p.plan(r)
	if err != nil {
		return st, err
	}
	hooks := pl.edits[0]
	st.Path = hooks.path
	f, err := p.openFile(tool, hooks)
	if err != nil {
		return st, err
	}
	if err := hooks.install(f); err != nil {
		return st, err
	}
	st.Installed, st.Current = pl.command != "", !f.changed()
	program, _ := splitCommand(pl.command)
	program = filepath.FromSlash(program)
	if _, err := os.Stat(program); err != nil && filepath.IsAbs(program) {
		st.Missing = program
	}
	return st, nil
}

// sayVerbs tells which verbs run without being asked about from now on.
func (f *file) sayVerbs(added []string) {
	if len(added) == len(Verbs) {
		f.say("runs without asking: atm %s", strings.Join(Verbs, ", "))
	} else if len(added) > 0 {
		f.say("runs without asking: %s", strings.Join(added, ", "))
	}
}

// perVerb makes a rule for each verb.
func perVerb(format string) (rules []string) {
	for _, v := range Verbs {
		rules = append(rules, fmt.Sprintf(format, v))
	}
	return rules
}
