package teamdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Another root of the same user, to which this one has a link, is opened when an address names it. bob@web is then the
// mailbox of bob in the root that is called web here, and mail goes into it directly.

// LinkError says why nothing can go to another root.
type LinkError struct {
	hostkey.Link        // Name is "" if there is no link yet
	From         string // the path of the root that the link is of
	Team         wire.Name
	Err          error
}

func (e *LinkError) Error() string {
	if e.Name == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Name, e.Err)
}

func (e *LinkError) Unwrap() error { return e.Err }

// The causes of a LinkError, beside those of package rootdir, hostkey.ErrNoLink and ErrNoTeam.
var (
	ErrNotThere = errors.New("there is no root at") // it is removed, moved, or on a disk that is not mounted
	ErrSameName = errors.New("it calls this project by the same name")
)

// Links lists the links of this root.
func (r *Root) Links() ([]hostkey.Link, error) { return hostkey.Dir(r.KeysDir).Links(r.Path) }

// link returns the link of a name. Another one may be damaged.
func (r *Root) link(name wire.Name) (l hostkey.Link, ok bool) {
	if name == "" {
		return l, false
	}
	links, _ := r.Links()
	for _, l := range links {
		if l.Name == name {
			return l, true
		}
	}
	return l, false
}

// IsLink reports whether a host's name is that of a link of this root. A link goes before a trusted host of that name.
func (r *Root) IsLink(host wire.Name) bool {
	_, isLink := r.link(host)
	return isLink
}

// IsRemote reports whether an address is of a member on another machine.
func (r *Root) IsRemote(a wire.Address) bool { return a.Host != "" && !r.IsLink(a.Host) }

// TeamOf opens the team that a member belongs to: one of this root or, for bob@web, the one of that name in the root that the
// link web leads to. A member on another machine is of the team here. The error about another root is a *LinkError.
func (r *Root) TeamOf(a wire.Address) (*Team, error) {
	l, isLink := r.link(a.Host)
	if !isLink {
		return r.Team(a.Team)
	}
	t, _, err := r.Linked(l, a.Team)
	return t, err
}

// Linked opens a team in the root that a link leads to, and returns what this root is called there. This root's Close closes
// it.
func (r *Root) Linked(l hostkey.Link, team wire.Name) (t *Team, knownAs wire.Name, err error) {
	there, err := r.other(l.Root)
	var back hostkey.Link
	if err == nil {
		back, err = hostkey.Dir(r.KeysDir).Back(r.Path, l)
	}
	if err == nil && back.Name == l.Name { // both were made at once; a message would not say whose member it is from
		err = ErrSameName
	}
	if err == nil {
		t, err = there.Team(team)
	}
	if err != nil {
		return nil, back.Name, &LinkError{l, r.Path, team, err}
	}
	return t, back.Name, nil
}

// CheckOther returns a *LinkError unless another root has a team, and mail may go to it.
func (r *Root) CheckOther(path string, team wire.Name) error {
	there, err := r.other(path)
	if err == nil {
		_, err = there.Team(team)
	}
	if err != nil {
		err = &LinkError{hostkey.Link{Root: path}, r.Path, team, err}
	}
	return err
}

// linkedBox returns the mailbox of a member of another root.
func (r *Root) linkedBox(l hostkey.Link, a wire.Address) (*maildir.Box, error) {
	t, knownAs, err := r.Linked(l, a.Team)
	if err != nil {
		return nil, err
	}
	box, err := t.Member(a.Agent)
	if unknown, ok := errors.AsType[*UnknownError](err); ok {
		unknown.Name, unknown.Root, unknown.In = a.Agent+"@"+l.Name, l.Root, nil
		for i, name := range unknown.Members {
			unknown.Members[i] = name + "@" + l.Name
		}
	}
	if err != nil {
		return nil, err
	}
	return box.Linked(l.Name, knownAs), nil
}

// openWithin is for how long a command waits for another root, so that a disk that hangs there holds up nothing here.
const openWithin = time.Second

// opening is another root that is being opened, or is open.
type opening struct {
	began time.Time
	done  chan struct{} // closed once root and err are set
	root  *Root
	err   error
}

// other opens another root of this user, or returns it as it was opened before, if it is still the one at the path.
func (r *Root) other(path string) (*Root, error) {
	r.mu.Lock()
	o := r.others[path]
	if o == nil || o.isDone() {
		before := o
		o = &opening{began: time.Now(), done: make(chan struct{})}
		r.others[path] = o
		go func() {
			defer close(o.done)
			o.root, o.err = r.openOther(path, before)
		}()
	}
	r.mu.Unlock()
	select {
	case <-o.done:
		return o.root, o.err
	case <-time.After(openWithin - time.Since(o.began)):
		return nil, fmt.Errorf("the disk of %s does not answer", path)
	}
}

func (o *opening) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

func (r *Root) openOther(path string, before *opening) (*Root, error) {
	if before != nil && before.err == nil {
		if before.root.isAt(path) && before.root.CheckNoted() == nil {
			return before.root, nil
		}
		before.root.Close()
	}
	if _, err := os.Lstat(filepath.Join(path, rootdir.FormatFile)); durable.IsAbsent(err) {
		return nil, fmt.Errorf("%w %s", ErrNotThere, path)
	}
	found, err := r.Found.Other(path)
	if err == nil && found.Path != path {
		err = fmt.Errorf("%s %w: it is a symbolic link", path, rootdir.ErrUntrusted)
	}
	if err = cmp.Or(err, found.CheckAccepted(context.Background())); err != nil {
		return nil, err
	}
	other, err := OpenFound(found, r.told)
	if err == nil {
		other.LockTimeout, other.KeysDir, other.TypeInPane = r.LockTimeout, r.KeysDir, r.TypeInPane
	}
	return other, err
}

// isAt reports whether the open root is the one at a path.
func (r *Root) isAt(path string) bool {
	opened, err := r.dir.Lstat(".")
	now, nowErr := os.Stat(path)
	return err == nil && nowErr == nil && os.SameFile(opened, now)
}
