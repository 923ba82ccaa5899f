package mailbox

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// scratch is a directory for tests that make thousands of files: in memory
// where the system has such a place, since ext4 slows down for a minute after
// many files were removed beside new ones.
func scratch(t testing.TB) string {
	t.Helper()
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shm, "atm-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// tb is what tests and rapid's property tests have in common.
type tb interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
}

// census is where everything lies in a mailbox, looked at from outside, with
// nothing of the package but the decoder.
type census struct {
	places map[wire.ID][]string // the directories that each message lies in
	texts  map[wire.ID]*wire.Message
	torn   []string // under a message's name, and no such message
	bad    []string // without the reasons
	tmp    []string
	inbox  []string // files that lie in the inbox itself
	drops  []string // originals kept in the archive
}

func takeCensus(t tb, team string, agent wire.Name) census {
	t.Helper()
	return censusOf(t, team, filepath.Join(team, string(agent)), filepath.Join(team, ".archive", string(agent)))
}

// censusOf is takeCensus for a mailbox that lies elsewhere.
func censusOf(t tb, team, agentDir, archive string) census {
	t.Helper()
	c := census{places: map[wire.ID][]string{}, texts: map[wire.ID]*wire.Message{}}
	for _, top := range []string{
		filepath.Join(agentDir, "inbox", "new"), filepath.Join(agentDir, "inbox", "cur"),
		filepath.Join(agentDir, "inbox", "aside"), filepath.Join(agentDir, "inbox", "done"), filepath.Join(agentDir, "inbox", "withdrawn"),
		filepath.Join(archive, "done"),
	} {
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if e.IsDir() {
				return nil
			}
			name := strings.TrimSuffix(e.Name(), ".json")
			if !wire.IsID(name) || name == e.Name() {
				return nil
			}
			rel, _ := filepath.Rel(team, filepath.Dir(path))
			c.places[wire.ID(name)] = append(c.places[wire.ID(name)], rel)
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			m, err := wire.Decode(data)
			if err != nil || string(m.ID) != name {
				c.torn = append(c.torn, rel+"/"+e.Name())
				return nil
			}
			c.texts[m.ID] = m
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.bad = filesIn(t, filepath.Join(agentDir, "inbox", "bad"), func(n string) bool { return !strings.HasSuffix(n, ".reason") && n[0] != '.' })
	c.tmp = filesIn(t, filepath.Join(agentDir, "inbox", "tmp"), nil)
	c.inbox = filesIn(t, filepath.Join(agentDir, "inbox"), nil)
	c.drops = filesIn(t, filepath.Join(archive, "drops"), nil)
	return c
}

func filesIn(t tb, dir string, keep func(string) bool) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		if !e.IsDir() && (keep == nil || keep(e.Name())) {
			out = append(out, e.Name())
		}
	}
	return out
}

// sound fails the test if a message is torn or lies in two places.
func (c census) sound(t tb) {
	t.Helper()
	for _, path := range c.torn {
		t.Errorf("torn: %s", path)
	}
	for id, in := range c.places {
		if len(in) != 1 {
			t.Errorf("%s is in %d places: %s", id, len(in), strings.Join(in, ", "))
		}
	}
}

// place is the kind of place that a message lies in: new, cur, done, withdrawn,
// archive; "" when it is nowhere.
func (c census) place(id wire.ID) string {
	if len(c.places[id]) == 0 {
		return ""
	}
	rel := filepath.ToSlash(c.places[id][0])
	_, inbox, ok := strings.Cut(rel, "/inbox/")
	if !ok {
		return placeArchive
	}
	kind, _, _ := strings.Cut(inbox, "/")
	return kind
}

// ids are the messages that are somewhere, sorted.
func (c census) ids() []wire.ID {
	var out []wire.ID
	for id := range c.places {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// eventsOf reads the whole log through a cursor and fails the test if there is
// a gap.
func eventsOf(t tb, b *Box) []wire.Event {
	t.Helper()
	c := b.Events(0)
	defer c.Close()
	var out []wire.Event
	for {
		e, gap, err := c.Next()
		if err != nil {
			return out
		}
		if gap != nil {
			t.Errorf("events of %s: %d to %d are missing", b.Agent(), gap.From, gap.To)
		}
		out = append(out, e)
	}
}

// teamPath is the directory of a store's team.
func teamPath(s *Store) string { return s.dir.Path() }

// drop puts a file into a mailbox as a person does: written elsewhere, then
// moved.
func drop(t tb, b *Box, where, name string, content []byte) {
	t.Helper()
	from := filepath.Join(teamPath(b.store), ".dropping")
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, filepath.Join(b.Path(), where, name)); err != nil {
		t.Fatal(err)
	}
}

func takeIn(t tb, b *Box) Taken {
	t.Helper()
	taken, err := b.TakeIn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// oldID is an id whose time lies so many days back.
func oldID(days int) wire.ID {
	now := wire.NewID()
	at := now.Time().AddDate(0, 0, -days).UnixMilli()
	const digits = "0123456789abcdef"
	b := []byte(now)
	for i, shift := 0, 44; shift >= 0; shift -= 4 {
		if b[i] == '-' {
			i++
		}
		b[i] = digits[at>>shift&15]
		i++
	}
	return wire.ID(b)
}

// openDir opens a new team's directory.
func openDir(path string) (*atomicfile.Dir, error) {
	d, err := atomicfile.Open(path, nil)
	if err != nil {
		return nil, err
	}
	l, err := d.Make(".locks")
	if err != nil {
		return nil, err
	}
	return d, l.Close()
}
