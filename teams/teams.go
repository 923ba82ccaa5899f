// Package teams is the root, its teams and their members: who there is, and what is done with mail across several
// mailboxes. What one mailbox does is package mailbox.
//
//	<root>/                              see package rootdir
//	<root>/<team>/                       a team: a directory with .locks
//	<root>/<team>/<agent>/               a member, see package mailbox
//	<root>/<team>/.worktrees/<agent>/    a member's own git worktree
//	<root>/<team>/.bridge/<host>/        mail for members on another machine, until a bridge sends it
//
// There is no roster that could be damaged. A root may have come with a cloned repository: callers that start, type,
// approve or hand something to a hook check Root.Accepted.
//
// Nothing here reads the environment, flags or the working directory. A Root and its Teams may be used by several
// goroutines at once; Turns and Outgoing may not.
package teams

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Root is an opened root.
type Root struct {
	rootdir.Found
	LockTimeout time.Duration // of every team, as mailbox.Store's; set it first
	Keys        hostkey.Dir   // of the other hosts that this user trusts; "": of none

	dir   *durable.Root
	mu    sync.Mutex
	teams map[wire.Name]*Team
}

// Open opens a root that was found. fault is nil but in tests.
func Open(f rootdir.Found, fault durable.Fault) (*Root, error) {
	dir, err := durable.Open(f.Path, fault)
	return &Root{Found: f, dir: dir, teams: map[wire.Name]*Team{}}, err
}

// Close lets go of the root and its teams.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := []error{r.dir.Close()}
	for _, t := range r.teams {
		errs = append(errs, t.Store.Close())
	}
	return errors.Join(errs...)
}

// Dir is the root's directory.
func (r *Root) Dir() *durable.Root { return r.dir }

// Raise makes the root's format 2, whose addresses may have a host: an older atm, which would set such a message
// aside as bad, refuses the root from then on.
func (r *Root) Raise() error { return r.dir.Replace(rootdir.FormatFile, []byte("2\n"), true) }

// Team is a team: the mailboxes of its members.
type Team struct {
	*mailbox.Store
	Name wire.Name
	root *Root
}

// ErrNoTeam is wrapped by the error for a team that is not there.
var ErrNoTeam = errors.New("no such team")

// LocksError is for a directory that holds mailboxes and no .locks: it is a team once that is made.
type LocksError struct{ Path string }

func (e *LocksError) Error() string { return "a team has lost its directory " + e.Path }

// Teams lists the root's teams by name. One that cannot be opened is an error, not an absence; it hides no other.
func (r *Root) Teams() (teams []wire.Name, err error) {
	names, err := r.dir.Names(".")
	for _, n := range names {
		if !wire.IsName(n) {
			continue
		}
		_, e := r.Team(wire.Name(n))
		if e == nil {
			teams = append(teams, wire.Name(n))
		} else if !errors.Is(e, ErrNoTeam) && !errors.Is(e, durable.ErrNotDirectory) {
			err = errors.Join(err, e)
		}
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
	none := fmt.Errorf("team %q in %s: %w", name, r.Path, ErrNoTeam)
	d, err := r.dir.Sub(string(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none
	} else if err != nil {
		return nil, err
	}
	t := &Team{Store: mailbox.NewStore(d, name), Name: name, root: r}
	if err = d.IsDir(".locks"); errors.Is(err, fs.ErrNotExist) {
		err = none
		if members, _ := t.Agents(); len(members) > 0 {
			err = &LocksError{d.Join(".locks")}
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	t.LockTimeout = r.LockTimeout
	r.teams[name] = t
	return t, nil
}

// Lost is an ErrNoTeam when a team that was opened does not lie at its path any
// more: it or the root was removed or renamed.
func (r *Root) Lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range r.teams {
		was, err := t.Dir().Lstat(".")
		if err != nil {
			return err
		}
		now, err := os.Stat(t.Dir().Path())
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("team %q in %s: %w any more", name, r.Path, ErrNoTeam)
		} else if err == nil && !os.SameFile(was, now) {
			return fmt.Errorf("team %q in %s was replaced by another directory: begin again", name, r.Path)
		}
	}
	return nil
}

// CreateTeam makes a team unless it is there. An empty directory that has its name becomes one.
func (r *Root) CreateTeam(name wire.Name) (*Team, error) {
	if t, err := r.Team(name); !errors.Is(err, ErrNoTeam) {
		return t, err
	}
	build := fmt.Sprintf(".%s.%s.making", name, wire.NewID()) // two at once make two
	defer r.dir.Remove(build)
	defer r.dir.Remove(build + "/.locks")
	if err := r.dir.MkdirAll(build + "/.locks"); err != nil {
		return nil, err
	}
	moveErr := r.dir.Move(build, string(name))
	if errors.Is(moveErr, fs.ErrExist) && r.dir.Remove(string(name)) == nil { // it was empty
		moveErr = r.dir.Move(build, string(name))
	}
	t, err := r.Team(name) // also where somebody else was quicker
	if errors.Is(err, ErrNoTeam) && errors.Is(moveErr, fs.ErrExist) {
		return nil, fmt.Errorf("%s: a directory %q is there and is no team", r.Path, name)
	}
	if err != nil {
		return nil, cmp.Or(moveErr, err)
	}
	return t, r.dir.Sync(".")
}

// Stale lists what killed commands left half made beside the mailboxes of all teams; with remove it goes.
func (r *Root) Stale(remove bool) (stale []string) {
	dirs, before := []string{"."}, time.Now().Add(-mailbox.TempAge)
	names, _ := r.Teams()
	for _, n := range names {
		dirs = append(dirs, string(n), string(n)+"/.sessions", string(n)+"/"+mailbox.FilesDir)
	}
	for _, dir := range dirs {
		stale = append(stale, r.dir.Stale(dir, before)...)
	}
	if remove {
		stale = slices.DeleteFunc(stale, func(name string) bool { return r.dir.RemoveAll(name) != nil })
	}
	return stale
}

// Root is where the team lies.
func (t *Team) Root() *Root { return t.root }

// UnknownError is for an agent that is not in a team. It is a mailbox.ErrNoAgent.
type UnknownError struct {
	Name, Team wire.Name
	Members    []wire.Name
	Retired    bool // there was one, and it can be restored
}

func (e *UnknownError) Error() string        { return fmt.Sprintf("no agent %q in team %q", e.Name, e.Team) }
func (e *UnknownError) Is(target error) bool { return target == mailbox.ErrNoAgent }

// Member is the mailbox of a member, or an *UnknownError.
func (t *Team) Member(name wire.Name) (*mailbox.Box, error) {
	b := t.Box(name)
	err := b.Present()
	if wire.IsName(string(name)) && !errors.Is(err, mailbox.ErrNoAgent) {
		return b, err
	}
	members, err := t.Agents()
	if err != nil {
		return nil, err
	}
	return nil, &UnknownError{Name: name, Team: t.Name, Members: members, Retired: t.WasRetired(name)}
}

// Mailbox is the mailbox at an address, in whatever team of the root; of a member on another machine the outbox.
// An *UnknownHostError for a machine that is not trusted.
func (r *Root) Mailbox(a wire.Address) (*mailbox.Box, error) {
	t, err := r.Team(a.Team)
	if err != nil {
		return nil, err
	}
	if a.Host == "" {
		return t.Member(a.Agent)
	}
	hosts, err := r.Keys.Hosts()
	if err == nil && !slices.Contains(hosts, a.Host) {
		err = &UnknownHostError{a.Host, hosts}
	}
	return t.Outbox(a), err
}

// UnknownHostError is for a host whose key is not trusted here. It is a mailbox.ErrNoAgent.
type UnknownHostError struct {
	Host  wire.Name
	Hosts []wire.Name // that are trusted
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("no key of a host %q is trusted here", e.Host)
}
func (e *UnknownHostError) Is(target error) bool { return target == mailbox.ErrNoAgent }

// Boxes are the mailboxes of all members, by name.
func (t *Team) Boxes() (out []*mailbox.Box, err error) {
	names, err := t.Agents()
	for _, n := range names {
		out = append(out, t.Box(n))
	}
	return out, err
}

// UnreadableError says which mailboxes could not be read, or not to the end. What there is to
// say in spite of that comes with it.
type UnreadableError struct{ error }

func (e *UnreadableError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e *UnreadableError) Unwrap() error { return e.error }

// Unreadable says of an error whose mailbox it is about; that there is none stays as it is.
func Unreadable(b *mailbox.Box, err error) error {
	if _, isSaid := errors.AsType[*UnreadableError](err); err == nil || isSaid || errors.Is(err, mailbox.ErrNoAgent) {
		return err
	}
	return &UnreadableError{fmt.Errorf("the mailbox of %s: %w", b.Agent(), err)}
}

// Each calls f for the mailbox of every member, by name. One that is retired meanwhile is
// passed over, and an error hides nobody else: an *UnreadableError tells of all.
func (t *Team) Each(f func(*mailbox.Box) error) error {
	boxes, err := t.Boxes()
	if err != nil {
		return err
	}
	for _, b := range boxes {
		if e := Unreadable(b, f(b)); !errors.Is(e, mailbox.ErrNoAgent) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		err = &UnreadableError{err}
	}
	return err
}

// AmbiguousError is for a fragment of an id that matches several messages in the place where it was found.
type AmbiguousError struct {
	Fragment   string
	Candidates []wire.ID
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q matches %d messages", e.Fragment, len(e.Candidates))
}

// Find finds the message that a person means by a fragment of its id: in my own mailbox first, then in the team's. The
// first place with a match decides; an *AmbiguousError when there are two. box is where it was found. An item whose
// State is "" lies elsewhere: the owner of box sent it.
func (t *Team) Find(me *mailbox.Box, fragment string) (it *mailbox.Item, box *mailbox.Box, err error) {
	f, err := wire.ParseFragment(fragment)
	if err != nil {
		return nil, nil, err
	}
	var ids []wire.ID
	match := func(b *mailbox.Box) error {
		found, err := b.Match(f)
		if len(ids) == 0 {
			box = b
		}
		ids = append(ids, found...)
		return err
	}
	if me != nil {
		err = match(me)
	}
	if err == nil && len(ids) == 0 {
		err = t.Each(match) // what cannot be read hides no other
	}
	if kept, _ := t.Retired(""); err == nil && len(ids) == 0 {
		for _, b := range kept {
			match(b)
		}
	}
	slices.Sort(ids) // of a message to several each has a copy
	switch ids = slices.Compact(ids); len(ids) {
	case 0:
		return nil, nil, cmp.Or(err, fmt.Errorf("message %s: %w", fragment, mailbox.ErrNotFound))
	case 1:
		it, err = t.message(ids[0], box)
		return it, box, err
	}
	return nil, nil, &AmbiguousError{fragment, ids}
}

// message is a message that box's owner got or sent. What a power cut has torn in the
// index of what was sent lies with a recipient.
func (t *Team) message(id wire.ID, box *mailbox.Box) (*mailbox.Item, error) {
	it, err := ownMessage(box, id)
	if !errors.Is(err, mailbox.ErrNotFound) {
		return it, err
	}
	boxes, _ := t.Boxes()
	outboxes, _ := t.Outboxes()
	for _, b := range append(boxes, outboxes...) {
		if it, e := b.Get(id); e == nil && it.From == box.Address() {
			return &mailbox.Item{Message: it.Message}, nil
		}
	}
	return nil, err
}

func ownMessage(box *mailbox.Box, id wire.ID) (*mailbox.Item, error) {
	it, err := box.Get(id)
	if errors.Is(err, mailbox.ErrNotFound) {
		it = &mailbox.Item{}
		it.Message, err = box.Sent(id)
	}
	return it, err
}

// OwnMessage is a message that a mailbox's owner got or sent, nil if neither.
func OwnMessage(box *mailbox.Box, id wire.ID) *wire.Message {
	if it, err := ownMessage(box, id); err == nil {
		return it.Message
	}
	return nil
}
