package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What a JSON sheet grants: rules, paths, an identity.

// allow puts rules into a list.
func (s *sheet) allow(rules []string, keys ...string) error {
	added, err := s.addStrings(rules, keys...)
	switch {
	case err != nil:
		return err
	case len(added) == len(Verbs):
		s.say("runs without asking: atm %s", verbList())
	case len(added) > 0:
		s.say("runs without asking: %s", strings.Join(added, ", "))
	}
	return nil
}

// disallow takes rules of ours out again: those that are noted, else all.
func (s *sheet) disallow(rules []string, keys ...string) {
	if noted, ok := s.old.values(place(keys)); ok {
		rules = noted
	}
	if n := len(s.dropStrings(rules, keys...)); n > 0 {
		s.say("asked about again: %d rules for atm taken out", n)
	}
}

// addRoot puts the root among the paths that sandboxed commands may write, and
// takes those out that we put there and that are gone. inherited are paths
// that this list would hide.
func (p *Place) addRoot(s *sheet, inherited []string, keys ...string) error {
	noted, _ := s.old.values(place(keys))
	gone := slices.DeleteFunc(slices.Clone(noted), func(dir string) bool { return dir == p.Root || isRoot(dir) || slices.Contains(inherited, dir) })
	if dropped := s.dropStrings(gone, keys...); len(dropped) > 0 {
		s.new.Values[place(keys)] = slices.DeleteFunc(s.new.Values[place(keys)], func(v string) bool { return slices.Contains(dropped, v) })
		s.say("no longer writable in the sandbox: %s", strings.Join(dropped, ", "))
	}
	if p.Root == "" {
		return nil
	}
	want := []string{p.Root}
	if _, list := s.look(keys...); list == nil {
		want = union(inherited, want)
	}
	added, err := s.addStrings(want, keys...)
	if len(added) > 0 {
		s.say("writable in the sandbox: %s", strings.Join(added, ", "))
	}
	return err
}

// dropRoots takes out the paths that we put into a list: those that are noted,
// else the root in force.
func (p *Place) dropRoots(s *sheet, keys ...string) {
	roots, ok := s.old.values(place(keys))
	if !ok && p.Root != "" {
		roots = []string{p.Root}
	}
	if dropped := s.dropStrings(roots, keys...); len(dropped) > 0 {
		s.say("no longer writable in the sandbox: %s", strings.Join(dropped, ", "))
	}
}

// isRoot reports whether a directory still looks like a root.
func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "FORMAT"))
	return err == nil
}

// rootNote says that there is no root to make writable, where that is so.
func (p *Place) rootNote(pl *plan) {
	if p.Root == "" {
		pl.notes = append(pl.notes, "there is no root here that is yours, so none was made writable for sandboxes: run this again where the team is, after atm init")
	}
}

// identify writes who the agent is.
func (s *sheet) identify(agent string, keys ...string) error {
	if agent == "" {
		return nil
	}
	changed, err := s.setString(agent, keys...)
	if changed {
		s.say("ATM_AGENT is %s here", agent)
	}
	return err
}

func (s *sheet) unidentify(keys ...string) {
	if s.dropString(keys...) {
		s.say("ATM_AGENT taken out")
	}
}
