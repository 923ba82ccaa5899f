package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// What stood open from an earlier delivery counts only while it is what lies at
// its path.
func TestStandingIsLookedAtAnew(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
	t.Parallel()
	path := t.TempDir()
	s, other := openStore(t, path, nil, "alice", "bob"), openStore(t, path, nil)
	bob := s.Box("bob")
	deliver(t, bob, message("alice", "one"))
	if _, err := other.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	p := &Post{Message: message("alice", "two"), To: []*Box{bob}}
	Deliver(ctx, p)
	if o := p.Outcomes[0]; !errors.Is(o.Err, ErrNoAgent) || o.Stored {
		t.Errorf("to one who is retired: %+v", o)
	}
	if err := other.Create(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	m := message("alice", "three")
	deliver(t, bob, m)
	if ids, _, err := other.Box("bob").UnreadIDs(0); len(ids) != 1 || ids[0] != m.ID || err != nil {
		t.Errorf("to one of the same name: %v, %v", ids, err)
	}

	// Only new, or only tmp, is another one.
	for _, dir := range []string{"new", "tmp"} {
		at := filepath.Join(bob.Path(), "inbox", dir)
		if err := errors.Join(os.Rename(at, at+".old"), os.Mkdir(at, 0o700)); err != nil {
			t.Fatal(err)
		}
		m := message("alice", "four")
		deliver(t, bob, m)
		if _, err := os.Stat(filepath.Join(bob.Path(), "inbox", "new", string(m.ID)+".json")); err != nil {
			t.Errorf("%s is another one: %v", dir, err)
		}
	}
}

// The rights of a mailbox count as they are when something is delivered.
func TestStandingRights(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such rights")
	}
	t.Parallel()
	s := openStore(t, t.TempDir(), nil, "alice", "bob")
	bob := s.Box("bob")
	for _, c := range []struct{ dir, file os.FileMode }{{0o700, 0o600}, {0o770, 0o660}, {0o700, 0o600}} {
		if err := os.Chmod(filepath.Join(bob.Path(), "inbox", "tmp"), c.dir); err != nil {
			t.Fatal(err)
		}
		m := message("alice", "x")
		deliver(t, bob, m)
		info, err := os.Stat(filepath.Join(bob.Path(), "inbox", "new", string(m.ID)+".json"))
		if err != nil || info.Mode().Perm() != c.file {
			t.Errorf("in a directory %o: %v, %v", c.dir, info.Mode(), err)
		}
	}
}

func TestStandingsAreFew(t *testing.T) {
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	var names []wire.Name
	for i := range maxStanding + 20 {
		names = append(names, wire.Name(fmt.Sprint("bob", i)))
	}
	s := openStore(t, t.TempDir(), nil, names...)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range names {
				deliver(t, s.Box(names[(n+i*10)%len(names)]), message("alice", "x"))
			}
		})
	}
	all.Wait()
	if n := len(s.standings.at); n > maxStanding {
		t.Errorf("%d mailboxes stand open", n)
	}
	for _, st := range s.standings.at {
		if st.users != 0 {
			t.Errorf("%d deliveries to %s have not ended", st.users, st.box.agent)
		}
	}
	s.standings.close()
	after, _ := os.ReadDir("/proc/self/fd")
	if len(after) > len(before)+40 { // locks, the store, the runtime's own
		t.Errorf("%d files open, %d before", len(after), len(before))
	}
}
