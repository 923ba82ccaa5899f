package teamdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Root is an opened root.
type Root struct {
	rootdir.Found
	LockTimeout time.Duration // see maildir.Store; set it before a team is opened
	KeysDir     string        // where the keys of the hosts are that this user trusts; "": none are

	// TypeInPane starts a process that types a member's unread mail into its program, which its person started in a pane of
	// tmux; nil: nobody does.
	TypeInPane func(t *Team, name wire.Name) error

	// MayAct is as in maildir.Store; set it before a team is opened. At first it is CheckAccepted.
	MayAct func(context.Context) error

	dir    *durable.Root
	told   Told
	mu     sync.Mutex
	teams  map[wire.Name]*Team
	others map[string]*opening // by path: see linked.go
}

// Told is told of events that were appended to a member's log.
type Told func(ctx context.Context, t *Team, name wire.Name, events []wire.Event)

// Open opens the root at a path, which needs nobody's yes: see rootdir.Own. ErrNotRoot of package rootdir if there is none.
// told is notices.Tell, which is built on teams; nil: nobody is told.
func Open(path string, told Told) (*Root, error) {
	f, err := rootdir.Own(path)
	if err != nil {
		return nil, err
	}
	return OpenFound(f, told)
}

// OpenFound opens a root that rootdir.Find has found, and brings one of an older format to this one: see moveOver.
func OpenFound(f rootdir.Found, told Told) (*Root, error) {
	dir, err := durable.OpenFaulty(f.Path, f.Fault)
	r := &Root{Found: f, MayAct: f.CheckAccepted, dir: dir, told: told, teams: map[wire.Name]*Team{}, others: map[string]*opening{}}
	if err == nil && f.IsOlder() {
		err = r.moveOver(context.Background())
		for _, t := range r.teams { // opened without what the caller is about to set
			t.Store.Close()
			t.sessions.Close()
		}
		if clear(r.teams); err != nil {
			r.Close()
		}
	}
	return r, err
}

// Close closes the root and its teams.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := []error{r.dir.Close()}
	for _, t := range r.teams {
		errs = append(errs, t.Store.Close(), t.sessions.Close())
	}
	for _, o := range r.others {
		if o.isDone() && o.err == nil {
			errs = append(errs, o.root.Close())
		}
	}
	return errors.Join(errs...)
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
	t.Store.IsOfRoot = true
	t.Store.LockTimeout, t.Store.MayAct = r.LockTimeout, r.MayAct
	if r.told != nil {
		t.Store.Appended = func(ctx context.Context, name wire.Name, events []wire.Event) { r.told(ctx, t, name, events) }
	}
	if err == nil {
		o := session.OpenOptions{CheckInput: t.CheckInput, LockTimeout: t.Store.LockTimeout, MayAct: t.Store.MayAct, Appended: t.Store.Appended}
		t.sessions, err = session.Open(d.Path(), o)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
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
	dirs, before := []string{"."}, time.Now().Add(-keep.TempAge)
	names, _ := r.Teams()
	for _, n := range names {
		for _, dir := range []string{"", ".locks", ".sessions", SubscriptionsDir, filestore.Dir, BadEnvelopes, RowsDir, ReceivedDir} {
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

// Mailbox returns the mailbox at an address in any team of the root, or of a root that this one has a link to; for a member on
// another host, the outbox to it, or an *UnknownHostError if that host is not trusted.
func (r *Root) Mailbox(a wire.Address) (*maildir.Box, error) {
	if l, isLink := r.link(a.Host); isLink {
		return r.linkedBox(l, a)
	}
	t, err := r.Team(a.Team)
	if err != nil {
		return nil, err
	}
	if a.Host == "" {
		return t.Member(a.Agent)
	}
	hosts, err := r.Hosts()
	if slices.Contains(hosts, a.Host) { // another one may be damaged
		return t.Store.Outbox(a), nil
	}
	return t.Store.Outbox(a), cmp.Or(err, error(&UnknownHostError{a.Host, hosts}))
}

// Hosts lists the hosts that mail can be sent to: those whose keys this user trusts, and the roots that this one has
// links to.
func (r *Root) Hosts() ([]wire.Name, error) {
	hosts, err := hostkey.Dir(r.KeysDir).Hosts()
	links, linkErr := r.Links()
	for _, l := range links {
		hosts = append(hosts, l.Name)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), cmp.Or(err, linkErr)
}

// UnknownHostError is a maildir.ErrNoMailbox for a host whose key is not trusted here.
type UnknownHostError struct {
	Host  wire.Name
	Hosts []wire.Name // the trusted ones
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("no key for host %q is trusted here", e.Host)
}
func (e *UnknownHostError) Is(target error) bool { return target == maildir.ErrNoMailbox }
