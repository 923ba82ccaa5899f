package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// ProjectOf is the directory that a root is about: the one that it is in, if it has the name that the search looks for.
func ProjectOf(root string) string {
	if filepath.Base(root) == rootdir.Name {
		return filepath.Dir(root)
	}
	return root
}

// linkBack says what is to be typed in the other root of a link.
func linkBack(e *teamdir.LinkError) string {
	name := "NAME"
	if host, err := hostkey.ParseHost(filepath.Base(ProjectOf(e.From))); err == nil {
		name = string(host)
	}
	if name == string(e.Name) { // which it may not have, too
		name += "-2"
	}
	return fmt.Sprintf("cd %s && atm link %s --as %s", policy.Quote(ProjectOf(e.Root)), policy.Quote(ProjectOf(e.From)), name)
}

// explainLink gives the error about another root its hint.
func explainLink(err error, e *teamdir.LinkError) *failure.Error {
	there := policy.Quote(ProjectOf(e.Root))
	unaccepted, isUnaccepted := errors.AsType[*rootdir.UnacceptedError](e.Err)
	switch {
	case errors.Is(e.Err, hostkey.ErrNoLink):
		return failure.Refused("%s has no link back to this root", e.Name).WithHint("there: %s", linkBack(e))
	case errors.Is(e.Err, teamdir.ErrSameName):
		return failure.Refused("%w", err).WithHint("`atm link --remove %s`, then `atm link %s --as %[1]s-2`", e.Name, there)
	case errors.Is(e.Err, teamdir.ErrNotThere) && e.Name != "":
		return failure.NotFound("%w", err).WithHint("mount its disk; or, if it was moved: `atm link --remove %s`, then `atm link DIR --as %[1]s`", e.Name)
	case errors.Is(e.Err, teamdir.ErrNoTeam):
		return failure.NotFound("%w; a team has the same name in both", err).WithHint("there: cd %s && atm init NAME --team %s", there, e.Team)
	case isUnaccepted && unaccepted.Cause == nil:
		return failure.Refused("%w", err).WithHint("to see what is there, and accept it: cd %s && atm init", there)
	case isUnaccepted || errors.Is(e.Err, rootdir.ErrUntrusted):
		return failure.Refused("%w", err).WithHint("mail goes only to a root of your own: ls -ld %s", policy.Quote(e.Root))
	}
	return failure.Failed("%w", err).WithHint("`atm link` lists the links, and what is wrong with each")
}

// A Linked is a link as people see it.
type Linked struct {
	Name    wire.Name `json:"name"`
	Root    string    `json:"root"`
	KnownAs wire.Name `json:"known_as,omitempty"` // what the other root calls this one; "": it has no link back
	Problem string    `json:"problem,omitempty"`  // why no mail can go there
	Hint    string    `json:"hint,omitempty"`
}

// Linked returns the links of this root.
func (s *Scope) Linked() ([]Linked, error) {
	all := []Linked{}
	links, err := s.Root.Links()
	for _, l := range links {
		one := Linked{Name: l.Name, Root: l.Root}
		_, knownAs, err := s.Root.Linked(l, s.Team.Name)
		if one.KnownAs = knownAs; err != nil {
			e := s.Given.Explain(err)
			one.Problem, one.Hint = e.Message, e.Hint.String()
		}
		all = append(all, one)
	}
	return all, err
}

// Link gives another root, in a directory or that directory itself, the name of a host here. A name that already means
// something is refused, and so is all that no mail may go to.
func (s *Scope) Link(dir, as string) (hostkey.Link, error) {
	name, err := hostkey.ParseHost(as)
	if err != nil {
		return hostkey.Link{}, failure.Usage("--as: %v", err).WithHint("`atm link %s --as web`", policy.Quote(dir))
	}
	root, err := rootIn(dir)
	if err == nil && root == s.Root.Path {
		err = failure.Usage("%s is this root itself", dir).WithHint("`atm link ../web --as web`")
	}
	if err != nil {
		return hostkey.Link{}, err
	}
	links, err := s.Root.Links()
	for _, l := range links {
		switch {
		case l.Root == root && l.Name == name:
			return l, nil
		case l.Root == root:
			return l, failure.Refused("%s has a link already: %s", dir, l.Name).WithHint("for another name, first: `atm link --remove %s`", l.Name)
		case l.Name == name:
			return l, failure.Refused("%s is a link already, to %s", name, l.Root).WithHint("another name; or first: `atm link --remove %s`", name)
		}
	}
	if taken := s.nameTaken(name); taken != "" && err == nil {
		err = failure.Refused("%q is %s", name, taken).WithHint("another name: --as %s-2", name)
	}
	if err != nil {
		return hostkey.Link{}, err
	}
	if err := s.Root.CheckOther(root, s.Team.Name); err != nil {
		return hostkey.Link{}, err
	}
	l := hostkey.Link{Name: name, Root: root}
	// With one name for both, a message would not say whose member it is from.
	if back, err := s.Keys().Back(s.Root.Path, l); err == nil && back.Name == name {
		return l, failure.Refused("%s calls this project %s, too", dir, name).WithHint("another name: --as %s-2", name)
	}
	return l, s.Keys().AddLink(s.Root.Path, l)
}

// nameTaken says what a name already means here; "": nothing.
func (s *Scope) nameTaken(name wire.Name) string {
	trusted, _ := s.Keys().Hosts()
	own, _ := s.Keys().Own()
	_, noTeam := s.Root.Team(name)
	switch {
	case s.IsMember(string(name)):
		return "a member"
	case s.IsGroup("@" + string(name)):
		return "a group"
	case noTeam == nil:
		return "a team of this root"
	case slices.Contains(trusted, name):
		return "another machine"
	case slices.Contains(own, name):
		return "this machine"
	}
	return ""
}

// rootIn finds the root in a directory, or in its .atm. Neither is searched for elsewhere.
func rootIn(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		return "", failure.NotFound("%w", err).WithHint("`atm link DIR --as NAME`: DIR is the other project")
	}
	inside := filepath.Join(full, rootdir.Name)
	if _, err := os.Lstat(inside); err == nil {
		return inside, nil
	}
	if _, err := os.Lstat(filepath.Join(full, rootdir.FormatFile)); err == nil {
		return full, nil
	}
	return "", failure.NotFound("there is no root in %s", dir).WithHint("make one there: cd %s && atm init NAME", policy.Quote(full))
}

// Unlink ends a link of this root, also a damaged one.
func (s *Scope) Unlink(name string) error {
	err := s.Keys().RemoveLink(s.Root.Path, wire.Name(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	links, _ := s.Root.Links()
	var names []string
	for _, l := range links {
		names = append(names, string(l.Name))
	}
	return failure.NotFound("there is no link %q", name).WithHint("`atm link` lists them").WithCandidates(names...).WithNearest(name, names)
}
