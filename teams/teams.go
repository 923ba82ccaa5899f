// Package teams is the root, its teams and their members: who there is, and
// what is done with mail across several mailboxes. What one mailbox does is
// package mailbox.
//
//	<root>/FORMAT        "1"
//	<root>/<team>/       a team: a directory with .locks
//	<root>/<team>/<agent>/
//	<root>/<team>/.worktrees/<agent>/    a member's own git worktree
//
// A root, a team and an agent are directories, each made under a dot name and
// renamed into place: a half-made one is none, and there is no roster that
// could be damaged.
//
// Finding a root (Find) tells a root that this user named, made or accepted
// from one that merely lies there, as in a cloned repository. From the latter
// nothing may be started, typed, approved or handed to a hook: callers that do
// such things check Root.Accepted.
//
// Nothing here reads the environment, flags or the working directory. All
// types may be used by several goroutines at once.
package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Root is an opened root.
type Root struct {
	Found
	LockTimeout time.Duration // of every team, as mailbox.Store's; set it first

	dir   *durable.Root
	mu    sync.Mutex
	teams map[wire.Name]*Team
}

// Open opens a root that Find found. fault is nil but in tests.
func Open(f Found, fault durable.Fault) (*Root, error) {
	dir, err := durable.Open(f.Path, fault)
	if err != nil {
		return nil, err
	}
	return rootOf(f, dir), nil
}

func rootOf(f Found, dir *durable.Root) *Root {
	return &Root{Found: f, dir: dir, teams: map[wire.Name]*Team{}}
}

// Close lets go of the root and its teams.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, t := range r.teams {
		errs = append(errs, t.Store.Close())
	}
	return errors.Join(append(errs, r.dir.Close())...)
}

// Dir is the root's directory.
func (r *Root) Dir() *durable.Root { return r.dir }

const formatFile = "FORMAT"

// Make makes a root at path unless there is one, and reports whether it did.
// It is built beside and renamed into place; a directory that is there and is
// no root becomes one by its FORMAT, written last.
func Make(path string) (made bool, err error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return false, err
		}
		parent = filepath.Dir(path)
	}
	d, err := durable.Open(parent, nil)
	if err != nil {
		return false, err
	}
	defer d.Close()
	name := filepath.Base(path)
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return false, fmt.Errorf("%s is not a directory", path)
		}
		r, err := durable.Open(path, nil)
		if err != nil {
			return false, err
		}
		defer r.Close()
		if has, err := r.Exists(formatFile); has || err != nil {
			return false, err
		}
		return true, r.Replace(formatFile, []byte("1\n"), true)
	}
	build := fmt.Sprintf(".%s.making.%d", strings.TrimPrefix(name, "."), os.Getpid())
	if err := os.Mkdir(filepath.Join(parent, build), 0o700); err != nil {
		return false, err
	}
	r, err := d.Sub(build)
	if err != nil {
		return false, err
	}
	defer r.Close()
	if err := os.Chmod(filepath.Join(parent, build), 0o700); err != nil {
		return false, err
	}
	if err := r.Replace(formatFile, []byte("1\n"), true); err != nil {
		return false, err
	}
	if err := d.Move(build, name); err != nil {
		os.RemoveAll(filepath.Join(parent, build))
		if errors.Is(err, fs.ErrExist) {
			return Make(path) // somebody else was quicker
		}
		return false, err
	}
	return true, d.Sync(".")
}

// Team is a team: the mailboxes of its members.
type Team struct {
	*mailbox.Store
	Name wire.Name
	root *Root
}

// ErrNoTeam is wrapped by the error for a team that is not there.
var ErrNoTeam = errors.New("no such team")

// Teams lists the root's teams by name: directories that hold .locks. One that
// cannot be opened is an error, not an absence.
func (r *Root) Teams() ([]wire.Name, error) {
	names, err := r.dir.Names(".")
	var teams []wire.Name
	for _, n := range names {
		if !wire.IsName(n) {
			continue
		}
		_, err := r.Team(wire.Name(n))
		if errors.Is(err, ErrNoTeam) || errors.Is(err, durable.ErrNotDirectory) {
			continue
		}
		if err != nil {
			return teams, err
		}
		teams = append(teams, wire.Name(n))
	}
	return teams, err
}

// Team opens a team; the root closes it. ErrNoTeam when there is none.
func (r *Root) Team(name wire.Name) (*Team, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.teams[name]; t != nil {
		return t, nil
	}
	if _, err := wire.ParseName(string(name)); err != nil {
		return nil, err
	}
	d, err := r.dir.Sub(string(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("team %q in %s: %w", name, r.Path, ErrNoTeam)
	}
	if err != nil {
		return nil, err
	}
	info, err := d.Lstat(".locks")
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("team %q in %s: %w", name, r.Path, ErrNoTeam)
	} else if err == nil && !info.IsDir() {
		err = fmt.Errorf("team %q: %s/.locks %w", name, d.Path(), durable.ErrNotDirectory)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	s := mailbox.NewStore(d, name)
	s.LockTimeout = r.LockTimeout
	t := &Team{Store: s, Name: name, root: r}
	r.teams[name] = t
	return t, nil
}

// Lost is an error when a team that was opened does not lie at its path any
// more: it or the root was removed or renamed. It wraps ErrNoTeam.
func (r *Root) Lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range r.teams {
		was, err := t.Dir().Lstat(".")
		if err != nil {
			return err
		}
		if now, err := os.Stat(t.Dir().Path()); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(was, now) {
			return fmt.Errorf("team %q in %s: %w any more", name, r.Path, ErrNoTeam)
		}
	}
	return nil
}

// CreateTeam makes a team unless it is there, and reports whether it did.
func (r *Root) CreateTeam(name wire.Name) (made bool, err error) {
	if _, err := wire.ParseName(string(name)); err != nil {
		return false, err
	}
	if _, err := r.Team(name); !errors.Is(err, ErrNoTeam) {
		return false, err
	}
	build := "." + string(name) + ".making"
	if err := r.dir.MkdirAll(build + "/.locks"); err != nil {
		return false, err
	}
	if err := r.dir.Move(build, string(name)); err != nil {
		// Somebody else may have been quicker, with the same directory even.
		if _, e := r.Team(name); e == nil {
			return false, nil
		}
		if errors.Is(err, fs.ErrExist) {
			return false, fmt.Errorf("%s: a directory %q is there and is no team", r.Path, name)
		}
		return false, err
	}
	return true, r.dir.Sync(".")
}

// Root is where the team lies.
func (t *Team) Root() *Root { return t.root }

// UnknownError is for an agent that is not in a team.
type UnknownError struct {
	Name    wire.Name
	Team    wire.Name
	Members []wire.Name
	Retired bool // there was one, and it can be restored
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no agent %q in team %q", e.Name, e.Team)
}

// Is makes the error a mailbox.ErrNoAgent.
func (e *UnknownError) Is(target error) bool { return target == mailbox.ErrNoAgent }

// Member is the mailbox of a member, or an *UnknownError.
func (t *Team) Member(name wire.Name) (*mailbox.Box, error) {
	b := t.Box(name)
	if err := b.Present(); err == nil {
		return b, nil
	} else if !errors.Is(err, mailbox.ErrNoAgent) {
		return nil, err
	}
	members, err := t.Agents()
	if err != nil {
		return nil, err
	}
	return nil, &UnknownError{Name: name, Team: t.Name, Members: members, Retired: t.WasRetired(name)}
}

// WasRetired reports whether mailboxes of that name lie in the archive.
func (t *Team) WasRetired(name wire.Name) bool {
	_, err := t.LastRetired(name)
	return err == nil
}

// Mailbox is the mailbox at an address, in whatever team of the root.
func (r *Root) Mailbox(a wire.Address) (*mailbox.Box, error) {
	t, err := r.Team(a.Team)
	if err != nil {
		return nil, err
	}
	return t.Member(a.Agent)
}

// Boxes are the mailboxes of all members, by name.
func (t *Team) Boxes() ([]*mailbox.Box, error) {
	names, err := t.Agents()
	if err != nil {
		return nil, err
	}
	out := make([]*mailbox.Box, len(names))
	for i, n := range names {
		out[i] = t.Box(n)
	}
	return out, nil
}

// AmbiguousError is for a fragment of an id that fits several messages in the
// place where it was found.
type AmbiguousError struct {
	Fragment   string
	Candidates []wire.ID
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits %d messages", e.Fragment, len(e.Candidates))
}

// Lookup finds the message that a person means by a fragment of its id: in my
// own mailbox first (new and cur, then done from the newest day), then, unless
// only mine counts, in the team's. The first place with a match decides; an
// *AmbiguousError when there are two. box is where it lies.
func (t *Team) Lookup(ctx context.Context, me *mailbox.Box, fragment string, mine bool) (id wire.ID, box *mailbox.Box, err error) {
	f, err := wire.ParseFragment(fragment)
	if err != nil {
		return "", nil, err
	}
	boxes := []*mailbox.Box{}
	if me != nil {
		boxes = append(boxes, me)
	}
	if !mine {
		all, err := t.Boxes()
		if err != nil {
			return "", nil, err
		}
		for _, b := range all {
			if me == nil || b.Address() != me.Address() {
				boxes = append(boxes, b)
			}
		}
	}
	for i, b := range boxes {
		found, err := b.Match(f)
		if err != nil {
			if i > 0 && errors.Is(err, mailbox.ErrNoAgent) {
				continue // retired meanwhile
			}
			return "", nil, err
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], b, nil
		}
		return "", nil, &AmbiguousError{fragment, found}
	}
	return "", nil, fmt.Errorf("message %s: %w", fragment, mailbox.ErrNotFound)
}

// Message finds a message by its full id: in box, in what box's owner sent,
// or in the mailbox of one of its recipients. When it lies in no mailbox the
// item's State is "".
func (t *Team) Message(id wire.ID, box *mailbox.Box) (*mailbox.Item, error) {
	it, err := box.Get(id)
	if !errors.Is(err, mailbox.ErrNotFound) {
		return it, err
	}
	m, err := box.Sent(id)
	if errors.Is(err, mailbox.ErrNotFound) {
		// Its name is in the index; a recipient has the whole.
		boxes, _ := t.Boxes()
		for _, b := range boxes {
			if it, e := b.Get(id); e == nil && it.From == box.Address() {
				return &mailbox.Item{Message: it.Message}, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return &mailbox.Item{Message: m}, nil
}
