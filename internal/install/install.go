// Package install writes what a coding agent needs to know of atm into that
// program's own configuration, and takes it out again.
//
// What it writes, a file a tool (claude.go, codex.go, gemini.go, opencode.go):
//
//   - hooks, so that states become events and mail goes along with a turn;
//   - leave to run atm's mail verbs without asking (Verbs), and none that
//     starts, types for, approves or stops;
//   - where the program has a sandbox, the root among the writable paths;
//   - for one worktree, who the agent is.
//
// What may be relied on:
//
//   - Nothing is written before every file was read, understood and found to
//     be nobody's but the user's: one that a repository tracks, directly or
//     through a link, or that does not parse, is an error that names it.
//   - What is there stays: keys, order, comments, line ends. Done again, it
//     changes nothing. Older entries of ours are brought up to date.
//   - Uninstall gives back the bytes that were there, as long as nobody else
//     changed the file; else it takes out what is ours and keeps the rest.
//     What that takes is noted in the user's state directory (record.go);
//     without the note, what is recognisably ours is taken out.
//   - Files are replaced in one step, links written through, modes and owners
//     kept. A change between reading and writing is noticed: everything is
//     read again, up to three times. When a later file fails, the earlier ones
//     get their old content back.
//
// Two calls at once on one file are told apart the same way. Nothing here runs
// a program.
package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Tools are the programs whose configuration is known.
var Tools = []string{"claude", "codex", "gemini", "opencode"}

// Verbs are the commands of atm that an agent may run without being asked: its
// mail, and looking around. The rest starts, types for, approves or stops
// somebody, or changes the set-up: that stays asked for, and no pattern that
// this package writes may admit it.
var Verbs = []string{"send", "read", "reply", "ack", "ls", "show", "wait", "team", "trace", "where", "primer"}

// Place is what cmd knows of its surroundings.
type Place struct {
	Home   string              // "" is none: only Local works
	Dir    string              // the working directory, absolute
	State  string              // the user's state directory for atm; "" is none
	Self   string              // this executable
	Root   string              // the root that agents here are to use, accepted by the user; "" is none
	Getenv func(string) string // nil: nothing is set
}

func (p *Place) getenv(name string) string {
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

// part is one file of a tool's configuration, and what is to be in it.
type part struct {
	path   string
	format format
	shared bool               // a file of the repository's, not the user's alone
	fill   func(*sheet) error // puts in what is missing
	clear  func(*sheet) error // takes out what is ours, without exactness
	ours   func(*sheet) bool  // whether an install went over the file before; nil: never
	// commands are those of hooks of ours that are in it, as words.
	commands [][]string
}

// plan is what a tool's files are to be, and what to tell about it.
type plan struct {
	parts []part
	notes []string
}

// plan makes the plan for a request.
func (p *Place) plan(r Request) (*plan, error) {
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
		p.exclude(pl, local)
	}
	return pl, nil
}

// tries is how often everything is read again when somebody else writes.
const tries = 3

// Install writes a tool's configuration.
func (p *Place) Install(r Request) (*Report, error) {
	return p.do(r, func(s *sheet, pt part) error { return s.install(pt) })
}

// Uninstall takes out of a tool's configuration what Install put there.
func (p *Place) Uninstall(r Request) (*Report, error) {
	r.Agent = ""
	rep, err := p.do(r, func(s *sheet, pt part) error { return s.uninstall(pt) })
	if rep != nil {
		rep.Notes = nil // they are about what was installed
	}
	return rep, err
}

func (p *Place) do(r Request, edit func(*sheet, part) error) (*Report, error) {
	for try := 1; ; try++ {
		rep, err := p.once(r, edit)
		if errors.Is(err, errMeanwhile) && try < tries {
			continue
		}
		return rep, err
	}
}

func (p *Place) once(r Request, edit func(*sheet, part) error) (_ *Report, err error) {
	defer func() {
		switch b := recover().(type) {
		case nil:
		case broken:
			err = fmt.Errorf("%s: an edit went wrong, and was not made: %w", b.path, b.err)
		default:
			panic(b)
		}
	}()
	pl, err := p.plan(r)
	if err != nil {
		return nil, err
	}
	var sheets []*sheet
	for _, pt := range pl.parts {
		s, err := p.open(r, pt)
		if err != nil {
			return nil, err
		}
		sheets = append(sheets, s)
	}
	for i, s := range sheets {
		if err := edit(s, pl.parts[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	rep := &Report{Tool: r.Tool, DryRun: r.DryRun, Files: []Change{}, Notes: pl.notes}
	for _, s := range sheets {
		if s.changed() {
			rep.Files = append(rep.Files, Change{Path: s.path, Changes: s.changes})
		}
		rep.Notes = append(rep.Notes, s.notes...)
	}
	if r.DryRun {
		return rep, nil
	}
	notes, err := p.write(sheets)
	rep.Notes = append(rep.Notes, notes...)
	if err != nil {
		return nil, err
	}
	return rep, nil
}

// verbList is the verbs as a person reads them.
func verbList() string { return strings.Join(Verbs, ", ") }

// perVerb makes a rule for each verb.
func perVerb(rule func(verb string) string) []string {
	var out []string
	for _, v := range Verbs {
		out = append(out, rule(v))
	}
	return out
}

// union is a and what of b is not in it.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
