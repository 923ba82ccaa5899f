// Package teams opens a root, its teams and their members, and does everything that involves several mailboxes:
// sending, acknowledging, tracing, searching, asking. Package mailbox handles a single mailbox.
//
//	<root>/                              see package rootdir
//	<root>/<team>/                       a team: a directory with .locks
//	<root>/<team>/<agent>/               a member, see package mailbox
//	<root>/<team>/.worktrees/<agent>/    a member's own git worktree
//	<root>/<team>/.bridge/<host>/        the outbox for members on another host, until a bridge sends it
//
// There is no roster file that could be damaged. What is in a root may be a stranger's: callers check
// Root.CheckAccepted before they start, type, approve or obey anything. Mailboxes check it before they hand anything
// over.
//
// The package reads neither the environment nor flags nor the working directory. Roots and Teams are safe for
// concurrent use.
//
// Where to look:
//
//	teams, member            the root, its teams, their members; what is known of a member
//	config, state, history   team.toml; a member's state and past, from its events
//	send, ack, answer, ask   a message goes out; what counts as its ack and its answer; a question and its wait
//	due, notify              answers that are overdue; mail of atm's own
//	trace, gate, search      how far a message got; why it waits, and when it will be seen; finding one
//	pending, question        what waits for an answer of a person; who serves a question of a program
//	runner                   members that atm runs
//	program, push            programs that people started themselves; mail is given to those
//	claude, codex            what is special about these; conversation: who gives mail to a thread of Codex
//	session                  sessions of members
//	bridge                   members on other machines
//	workdir, worktree        where members work; git worktrees of their own
package teams

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Root is an opened root.
type Root struct {
	rootdir.Found
	LockTimeout time.Duration // see maildir.Store; set it before a team is opened
	KeysDir     string        // where the keys of the hosts are that this user trusts; "": none are

	// StartFollower starts atm-codex for a program's conversation, for Team.Follow; nil: there is no such program.
	StartFollower func(t *Team, name wire.Name, p Program) error

	dir   *durable.Root
	mu    sync.Mutex
	teams map[wire.Name]*Team
}

// Open opens the root at a path. ErrNotRoot of package rootdir if there is none.
func Open(path string) (*Root, error) {
	f, _, err := rootdir.Find(rootdir.Place{Flag: path, Dir: ".", UID: os.Getuid()})
	if err != nil {
		return nil, err
	}
	return OpenFound(f)
}

// OpenFound opens a root that rootdir.Find has found.
func OpenFound(f rootdir.Found) (*Root, error) {
	dir, err := durable.Open(f.Path)
	return &Root{Found: f, dir: dir, teams: map[wire.Name]*Team{}}, err
}

// Close closes the root and its teams.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := []error{r.dir.Close()}
	for _, t := range r.teams {
		errs = append(errs, t.Store.Close())
	}
	return errors.Join(errs...)
}

// RaiseFormat makes the root's format 2, in which addresses may have a host. An older atm then refuses the root,
// instead of moving such messages to bad.
func (r *Root) RaiseFormat() error { return r.dir.Replace(rootdir.FormatFile, []byte("2\n"), true) }

// Team is a team, with the mailboxes of its members.
type Team struct {
	*maildir.Store
	Name     wire.Name
	Progress func(messages int) // called by Search and Thread with how many they have looked at; nil: nobody asks

	root *Root
}

// ErrNoTeam says that a team does not exist.
var ErrNoTeam = errors.New("no such team")

// LocksError says that a directory has mailboxes but no .locks, without which it is no team.
type LocksError struct{ Path string }

func (e *LocksError) Error() string { return "a team is missing its directory " + e.Path }

// Teams lists the root's teams by name. With an error for those that cannot be opened it lists the others.
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

// Team opens a team, which Root.Close closes. ErrNoTeam if there is none.
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
	t := &Team{Store: maildir.NewStore(d, name), Name: name, root: r}
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
	t.LockTimeout, t.BeforeLook = r.LockTimeout, r.BeforeLook
	r.teams[name] = t
	return t, nil
}

// CheckPaths returns an error if an open team is no longer at its path, since it or the root was removed (ErrNoTeam) or
// replaced.
func (r *Root) CheckPaths() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range r.teams {
		opened, err := t.Dir().Lstat(".")
		if err != nil {
			return err
		}
		current, err := os.Stat(t.Dir().Path())
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("team %q in %s is gone: %w", name, r.Path, ErrNoTeam)
		} else if err == nil && !os.SameFile(opened, current) {
			return fmt.Errorf("team %q in %s was replaced by another directory: start again", name, r.Path)
		}
	}
	return nil
}

// CreateTeam makes a team unless it exists. Until it has .locks, an empty directory is none.
func (r *Root) CreateTeam(name wire.Name) (*Team, error) {
	if t, err := r.Team(name); !errors.Is(err, ErrNoTeam) {
		return t, err
	}
	names, err := r.dir.Names(string(name))
	if len(names) > 0 && !slices.Contains(names, ".locks") { // else another process is as quick
		return nil, fmt.Errorf("%s: the directory %q is not a team", r.Path, name)
	}
	if err := cmp.Or(err, r.dir.MkdirAll(string(name)+"/.locks"), r.dir.Sync(".")); err != nil {
		return nil, err
	}
	return r.Team(name)
}

// Stale lists the unfinished files of killed commands outside the mailboxes. With remove it removes them.
func (r *Root) Stale(remove bool) (stale []string) {
	dirs, before := []string{"."}, time.Now().Add(-maildir.TempAge)
	names, _ := r.Teams()
	for _, n := range names {
		for _, dir := range []string{"", ".locks", ".sessions", maildir.FilesDir, BadEnvelopes, RowsDir, ReceivedDir} {
			dirs = append(dirs, path.Join(string(n), dir))
		}
	}
	for _, dir := range dirs {
		stale = append(stale, r.dir.Stale(dir, before)...)
	}
	if remove {
		stale = slices.DeleteFunc(stale, func(name string) bool { return r.dir.RemoveAll(name) != nil })
	}
	return stale
}

// Root is the team's root.
func (t *Team) Root() *Root { return t.root }

// UnknownError is a maildir.ErrNoAgent for a name that is no member of a team.
type UnknownError struct {
	Name, Team wire.Name
	Members    []wire.Name
	Retired    bool // a retired member has the name, and can be restored
	Planned    bool // team.toml names it, but it has no mailbox yet
}

func (e *UnknownError) Error() string        { return fmt.Sprintf("no agent %q in team %q", e.Name, e.Team) }
func (e *UnknownError) Is(target error) bool { return target == maildir.ErrNoAgent }

// Member returns the mailbox of a member, or an *UnknownError.
func (t *Team) Member(name wire.Name) (*maildir.Box, error) {
	b := t.Box(name)
	err := b.CheckPresent()
	if wire.IsName(string(name)) && !errors.Is(err, maildir.ErrNoAgent) {
		return b, err
	}
	members, err := t.Agents()
	if err != nil {
		return nil, err
	}
	c, _ := t.Config() // doctor reports its mistakes
	_, isPlanned := c.Members[name]
	return nil, &UnknownError{Name: name, Team: t.Name, Members: members, Retired: t.WasRetired(name), Planned: isPlanned}
}

// Mailbox returns the mailbox at an address in any team of the root; for a member on another host, the outbox to it, or
// an *UnknownHostError if that host is not trusted.
func (r *Root) Mailbox(a wire.Address) (*maildir.Box, error) {
	t, err := r.Team(a.Team)
	if err != nil {
		return nil, err
	}
	if a.Host == "" {
		return t.Member(a.Agent)
	}
	hosts, err := hostkey.Dir(r.KeysDir).Hosts()
	if err == nil && !slices.Contains(hosts, a.Host) {
		err = &UnknownHostError{a.Host, hosts}
	}
	return t.Outbox(a), err
}

// UnknownHostError is a maildir.ErrNoAgent for a host whose key is not trusted here.
type UnknownHostError struct {
	Host  wire.Name
	Hosts []wire.Name // the trusted ones
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("no key for host %q is trusted here", e.Host)
}
func (e *UnknownHostError) Is(target error) bool { return target == maildir.ErrNoAgent }

// Boxes returns the mailboxes of all members, by name.
func (t *Team) Boxes() (out []*maildir.Box, err error) {
	names, err := t.Agents()
	for _, n := range names {
		out = append(out, t.Box(n))
	}
	return out, err
}

// UnreadableError names the mailboxes that could not be read, or not completely. The result that comes with it covers
// everything else.
type UnreadableError struct{ error }

func (e *UnreadableError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e *UnreadableError) Unwrap() error { return e.error }

// Unreadable makes an error of a mailbox an *UnreadableError that names it, except a maildir.ErrNoAgent.
func Unreadable(b *maildir.Box, err error) error {
	if _, isNamed := errors.AsType[*UnreadableError](err); err == nil || isNamed || errors.Is(err, maildir.ErrNoAgent) {
		return err
	}
	return &UnreadableError{fmt.Errorf("the mailbox of %s: %w", b.Agent(), err)}
}

// Each calls f for the mailbox of every member, by name. It goes on after an error and returns all as one
// *UnreadableError, without those of members that are retired meanwhile.
func (t *Team) Each(f func(*maildir.Box) error) error {
	boxes, err := t.Boxes()
	if err != nil {
		return err
	}
	errs := make([]error, len(boxes))
	for i, b := range boxes {
		errs[i] = f(b)
	}
	return unreadable(boxes, errs)
}

func unreadable(boxes []*maildir.Box, errs []error) error {
	for i, err := range errs {
		if errs[i] = Unreadable(boxes[i], err); errors.Is(err, maildir.ErrNoAgent) {
			errs[i] = nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &UnreadableError{err}
	}
	return nil
}

// AtOnce calls f with the numbers from 0 to n-1, several at once: what looks at many members waits for runners and
// disks.
func AtOnce(n int, f func(i int)) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range min(n, 2*runtime.NumCPU()) {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i - 1))
			}
		})
	}
	workers.Wait()
}
