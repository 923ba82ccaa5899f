package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Exchange is the verb of More that exchanges what linked roots have for each other, and ends.
const Exchange = "exchange"

const (
	exchangeWithin = 30 * time.Second
	exchangeEvery  = 3 * time.Second // by a command that goes on
)

// Exchange exchanges mail and states with all roots that this one has links to, in the program that has the bridge. Why it
// could not is noted with the mail that waits.
func (s *Scope) Exchange(ctx context.Context) {
	if s.Team == nil {
		return
	}
	links, _ := s.Root.Links()
	if len(links) == 0 {
		return
	}
	program, err := Companion(More)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
		defer cancel()
		err = exec.CommandContext(ctx, program, Exchange, "--root", s.Root.Path, "--team", string(s.Team.Name)).Run()
	}
	if _, hasEnded := errors.AsType[*exec.ExitError](err); err == nil || hasEnded || ctx.Err() != nil {
		return // it has noted what kept it
	}
	for _, l := range links {
		presence.NoteHeld(s.Team, l.Name, err.Error())
	}
}

// CarryOut is Exchange if mail for another root waits.
func (s *Scope) CarryOut(ctx context.Context) {
	if s.Team == nil {
		return
	}
	links, _ := s.Root.Links()
	for _, l := range links {
		if ids, _ := claim.Outgoing(s.Team.Store.Outbox(wire.Address{Host: l.Name})); len(ids) > 0 {
			s.Exchange(ctx)
			return
		}
	}
}

// KeepExchanging repeats Exchange until the context ends.
func (s *Scope) KeepExchanging(ctx context.Context) {
	for s.Exchange(ctx); Sleep(ctx, exchangeEvery); {
		s.Exchange(ctx)
	}
}

// OpenLinked opens the team of this name in the root that a link leads to, and returns that root's link back. The
// caller closes that root.
func (s *Scope) OpenLinked(l hostkey.Link) (there *Scope, back hostkey.Link, err error) {
	there, err = s.openOther(l.Root)
	if err == nil {
		back, err = s.Keys().Back(s.Root.Path, l)
		if errors.Is(err, hostkey.ErrNoLink) {
			err = fmt.Errorf("%s has no link back to this root: %s", l.Name, s.linkBack(l))
		} else if err == nil && back.Name == l.Name { // both were made at once
			err = fmt.Errorf("%[1]s calls this project %[1]s, too: atm unlink %[1]s, and atm link with another name", l.Name)
		}
		if err != nil {
			there.Root.Close()
		}
	}
	return there, back, err
}

// linkBack says what is to be typed in the other root of a link.
func (s *Scope) linkBack(l hostkey.Link) string {
	name := "NAME"
	if host, err := hostkey.ParseHost(filepath.Base(ProjectOf(s.Root.Path))); err == nil {
		name = string(host)
	}
	if name == string(l.Name) { // which it may not have, too
		name += "-2"
	}
	return fmt.Sprintf("cd %s && atm link %s --as %s", policy.Quote(ProjectOf(l.Root)), policy.Quote(ProjectOf(s.Root.Path)), name)
}

// ProjectOf is the directory that a root is about: the one that it is in, if it has the name that the search looks for.
func ProjectOf(root string) string {
	if filepath.Base(root) == rootdir.Name {
		return filepath.Dir(root)
	}
	return root
}

// openOther opens the team of this name in another root of this user, if it may act.
func (s *Scope) openOther(root string) (there *Scope, err error) {
	place := s.Given.Place()
	place.Flag, place.Env = root, ""
	if _, err := os.Lstat(filepath.Join(root, rootdir.FormatFile)); err != nil {
		return nil, failure.NotFound("there is no root at %s", root).WithHint("`atm init NAME` makes one there")
	}
	found, _, err := rootdir.Find(place)
	if err != nil {
		return nil, err
	}
	why := rootdir.DistrustReason(root, place.UID, true)
	if found.Path != root {
		why = "it is a symbolic link"
	}
	if why != "" {
		return nil, failure.Refused("%s is not trusted: %s", root, why).WithHint("a link leads to a root of your own: ls -ld %s", policy.Quote(root))
	}
	if there, err = OpenFound(s.Given, found); err != nil {
		return nil, err
	}
	if err = there.CheckAccepted(); err == nil {
		there.Team, err = there.Root.Team(s.Team.Name)
	}
	if errors.Is(err, teamdir.ErrNoTeam) {
		err = failure.NotFound("%w; a team has the same name in both", err).WithHint("there: `atm init NAME --team %s`", s.Team.Name)
	}
	if err != nil {
		there.Root.Close()
		return nil, err
	}
	return there, nil
}

// A Linked is a link as people see it.
type Linked struct {
	Name    wire.Name `json:"name"`
	Root    string    `json:"root"`
	KnownAs wire.Name `json:"known_as,omitempty"` // what the other root calls this one; "": it has no link back
	Waiting []wire.ID `json:"waiting"`
	Problem string    `json:"problem,omitempty"` // why nothing can be exchanged
}

// Linked returns the links of this root, with what waits in this team.
func (s *Scope) Linked() ([]Linked, error) {
	all := []Linked{}
	links, err := s.Root.Links()
	for _, l := range links {
		one := Linked{Name: l.Name, Root: l.Root, Waiting: []wire.ID{}}
		ids, e := claim.Outgoing(s.Team.Store.Outbox(wire.Address{Host: l.Name}))
		err = cmp.Or(err, e)
		one.Waiting = append(one.Waiting, ids...)
		there, back, e := s.OpenLinked(l)
		if e != nil {
			one.Problem = e.Error()
		} else {
			one.KnownAs = back.Name
			there.Root.Close()
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
			return l, failure.Refused("%s has a link already: %s", dir, l.Name).WithHint("for another name, first: `atm unlink %s`", l.Name)
		case l.Name == name:
			return l, failure.Refused("%s is a link already, to %s", name, l.Root).WithHint("another name; or first: `atm unlink %s`", name)
		}
	}
	if taken := s.nameTaken(name); taken != "" && err == nil {
		err = failure.Refused("%q is %s", name, taken).WithHint("another name: --as %s-2", name)
	}
	if err != nil {
		return hostkey.Link{}, err
	}
	there, err := s.openOther(root)
	if err != nil {
		return hostkey.Link{}, err
	}
	defer there.Root.Close()
	l := hostkey.Link{Name: name, Root: root}
	// With one name for both, a message would not say whose member it is from.
	if back, err := s.Keys().Back(s.Root.Path, l); err == nil && back.Name == name {
		return l, failure.Refused("%s calls this project %s, too", dir, name).WithHint("another name: --as %s-2", name)
	}
	return l, s.Keys().AddLink(s.Root.Path, name, root)
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

// Unlink ends a link of this root, and returns the mail that still waits for the other one in this team.
func (s *Scope) Unlink(name string) (waiting []wire.ID, err error) {
	err = s.Keys().RemoveLink(s.Root.Path, wire.Name(name)) // a damaged one, too
	if errors.Is(err, fs.ErrNotExist) {
		links, _ := s.Root.Links()
		var names []string
		for _, l := range links {
			names = append(names, string(l.Name))
		}
		err = failure.NotFound("there is no link %q", name).WithHint("`atm link` lists them").WithCandidates(names...).WithNearest(name, names)
	}
	if err != nil {
		return nil, err
	}
	teams, err := s.Root.Teams()
	for _, team := range teams { // whose lists have the members there no longer
		if t, e := s.Root.Team(team); e == nil {
			err = cmp.Or(err, t.Dir().Remove(path.Join(teamdir.RowsDir, name+".json")), presence.NoteHeld(t, wire.Name(name), ""))
		}
	}
	waiting, e := claim.Outgoing(s.Team.Store.Outbox(wire.Address{Host: wire.Name(name)}))
	return waiting, cmp.Or(err, e)
}
