//go:build unix

package mailbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
	"golang.org/x/sys/unix"
)

func claimPath(b *Box, id wire.ID, name string) string {
	return filepath.Join(b.Path(), "inbox", "tmp", string(id)+"."+name+".drop")
}

// The original of a message that is there already, and may say something else,
// is kept.
func TestDropOfAKnownID(t *testing.T) {
	t.Parallel()
	for _, move := range []string{placeNew, placeCur, placeDone, placeWithdrawn, placeArchive} {
		t.Run(move, func(t *testing.T) {
			s := openStore(t, scratch(t), nil, "bob")
			bob := s.Box("bob")
			m := message("alice", "the first")
			m.ID, m.RequiresAck = oldID(2), move == placeCur
			deliver(t, bob, m)
			var err error
			switch move {
			case placeCur, placeDone, placeArchive:
				_, err = bob.Take(ctx, m.ID)
			case placeWithdrawn:
				_, err = bob.Withdraw(ctx, m.ID, m.From)
			}
			if move == placeArchive && err == nil {
				_, err = bob.GC(ctx, GCOptions{Before: time.Now()})
			}
			if err != nil {
				t.Fatal(err)
			}
			other := `{"id":"` + string(m.ID) + `","body":"something else"}`
			drop(t, bob, "inbox", "m.json", []byte(other))
			settleDrops(t, bob)
			c := takeCensus(t, teamPath(s), "bob")
			c.sound(t)
			if c.place(m.ID) != move || c.texts[m.ID].Body != "the first" || len(c.places) != 1 || len(c.bad)+len(c.tmp)+len(c.inbox) > 0 {
				t.Errorf("%v, bad %q, tmp %q, inbox %q", c.places, c.bad, c.tmp, c.inbox)
			}
			if len(c.drops) != 1 || !strings.HasSuffix(c.drops[0], ".m.json") {
				t.Fatalf("kept: %q", c.drops)
			}
			if got, _ := os.ReadFile(filepath.Join(teamPath(s), ".archive", "bob", "drops", c.drops[0])); string(got) != other {
				t.Errorf("kept: %q", got)
			}
		})
	}
}

// A claim that somebody left is carried on under its id, whatever was done of
// it and wherever the message is by now.
func TestClaimIsCarriedOn(t *testing.T) {
	t.Parallel()
	const own = gone
	id := oldID(0)
	for _, c := range []struct {
		about, name, content string
		before               func(*Box) // what was done of it
		want                 wire.ID
		place                string
	}{
		{"not read yet", "note", "hello", nil, id, placeNew},
		{"not read yet, its own id", "m.json", `{"id":"` + own + `","body":"hello"}`, nil, own, placeNew},
		{"delivered", "note", "hello", func(b *Box) { deliverText(b, id, "hello") }, id, placeNew},
		{"delivered under its own id", "m.json", `{"id":"` + own + `","body":"hello"}`, func(b *Box) { deliverText(b, own, "hello") }, own, placeNew},
		{"delivered and read", "note", "hello", func(b *Box) { deliverText(b, id, "hello"); b.Take(ctx, id) }, id, placeDone},
		{"delivered and withdrawn", "note", "hello", func(b *Box) { deliverText(b, id, "hello"); b.Withdraw(ctx, id, wire.Address{}) }, id, placeWithdrawn},
		{"delivered and archived", "note", "hello", func(b *Box) {
			deliverText(b, id, "hello")
			b.Take(ctx, id)
			b.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2)})
		}, id, placeArchive},
	} {
		t.Run(c.about, func(t *testing.T) {
			s := openStore(t, scratch(t), nil, "bob")
			bob := s.Box("bob")
			if c.before != nil {
				c.before(bob)
			}
			if err := os.WriteFile(claimPath(bob, id, c.name), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				settleDrops(t, bob)
			}
			got := takeCensus(t, teamPath(s), "bob")
			got.sound(t)
			if got.place(c.want) != c.place || len(got.places) != 1 || got.texts[c.want].Body != "hello" || len(got.tmp)+len(got.bad) > 0 {
				t.Errorf("%v, tmp %q, bad %q", got.places, got.tmp, got.bad)
			}
			if len(got.drops) != 1 { // nobody knows who else wrote to it
				t.Errorf("kept: %q", got.drops)
			}
		})
	}
}

func deliverText(b *Box, id wire.ID, body string) {
	m := message("drop", body)
	m.ID = id
	Deliver(ctx, &Post{Message: m, To: []*Box{b}})
}

func TestClaimOfAnEvent(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	id := wire.NewID()
	content := []byte(`{"kind":"turn_started"}`)
	if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "turn_started", Source: "drop", EventID: string(id), Wire: content}); err != nil {
		t.Fatal(err)
	}
	appendEvents(t, bob, "later")
	os.WriteFile(claimPath(bob, id, "e.json"), content, 0o600)
	settleDrops(t, bob)
	same(t, next(t, bob.Events(0)), "1 turn_started", "2 later")
	if c := takeCensus(t, teamPath(s), "bob"); len(c.tmp)+len(c.bad)+len(c.places) > 0 || len(c.drops) != 1 {
		t.Error(c)
	}
}

// A claim whose content is bad goes to bad under its first name; where that is
// taken, with the id behind it.
func TestClaimThatIsBad(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	for range 3 {
		os.WriteFile(claimPath(bob, wire.NewID(), "t.json"), []byte("{"), 0o600)
		settleDrops(t, bob)
	}
	bad, err := bob.BadFiles(0)
	if err != nil || len(bad) != 3 {
		t.Fatal(bad, err)
	}
	plain := 0
	for _, b := range bad {
		if b.Name == "t.json" {
			plain++
		} else if !strings.HasPrefix(b.Name, "t.json.") || !wire.IsID(strings.TrimPrefix(b.Name, "t.json.")) {
			t.Errorf("set aside as %s", b.Name)
		}
	}
	if plain != 1 {
		t.Error(bad)
	}
}

// A file that changes between its reading and the end of its taking in is
// delivered as it was read, and kept as it is now.
func TestDropThatChanges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"note", "note.reason"} {
		t.Run(name, func(t *testing.T) { dropThatChanges(t, name) })
	}
}

func dropThatChanges(t *testing.T, name string) {
	var tmp string
	var once sync.Once
	s := openStore(t, scratch(t), func(op atomicfile.Op, name string) error {
		if op == atomicfile.OpLink && strings.Contains(name, "/inbox/new/") {
			once.Do(func() {
				for _, n := range filesIn(t, tmp, nil) {
					scribble(t, filepath.Join(tmp, n), []byte(" and more"))
				}
			})
		}
		return nil
	}, "bob")
	bob := s.Box("bob")
	tmp = filepath.Join(bob.Path(), "inbox", "tmp")
	drop(t, bob, "inbox", name, []byte("hello"))
	settleDrops(t, bob)
	c := takeCensus(t, teamPath(s), "bob")
	bad, err := bob.BadFiles(0)
	if err != nil || len(bad) != 1 || !strings.HasPrefix(bad[0].Name, name) || !strings.HasPrefix(bad[0].Reason, "changed while") {
		t.Fatal(bad, err)
	}
	if len(c.texts) != 1 || len(c.tmp)+len(c.inbox) > 0 {
		t.Fatalf("%v, tmp %q", c.places, c.tmp)
	}
	for _, m := range c.texts {
		if m.Body != "hello" {
			t.Error(m.Body)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(bob.Path(), "inbox", "bad", bad[0].Name)); string(got) != "hello and more" {
		t.Errorf("bad has %q", got)
	}
}

// While a file is renamed to its claim nobody can begin to write it: the lease
// is held through the rename.
func TestLeaseIsHeldThroughTheRename(t *testing.T) {
	t.Parallel()
	var path string
	tried := false
	s := openStore(t, scratch(t), func(op atomicfile.Op, name string) error {
		if op == atomicfile.OpRename && name == path {
			tried = true
			f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				f.Close()
				t.Error("it could be opened for writing")
			} else if !errors.Is(err, syscall.EAGAIN) {
				t.Error(err)
			}
		}
		return nil
	}, "bob")
	bob := s.Box("bob")
	path = filepath.Join(bob.Path(), "inbox", "note")
	drop(t, bob, "inbox", "note", []byte("hello"))
	leases(t, path)
	settleDrops(t, bob)
	if !tried {
		t.Error("it was not renamed")
	}
}

// Files are taken in from the oldest on, and each in one place, though many
// look at once.
func TestDropOrder(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	bob := s.Box("bob")
	begin := time.Now().Add(-time.Hour)
	var want []string
	for i := range 20 {
		name := string(rune('z' - i))
		drop(t, bob, []string{"inbox", "inbox/new"}[i%2], name, []byte("x"))
		at := begin.Add(time.Duration(i) * time.Second)
		os.Chtimes(filepath.Join(bob.Path(), []string{"inbox", "inbox/new"}[i%2], name), at, at)
		want = append(want, name)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { openStore(t, path, nil).Box("bob").TakeIn(ctx) })
	}
	all.Wait()
	settleDrops(t, bob)
	c := takeCensus(t, path, "bob")
	c.sound(t)
	var got []string
	for _, id := range c.ids() {
		got = append(got, c.texts[id].Subject)
		if at := c.texts[id].SentAt; at.Before(begin) || at.After(begin.Add(20*time.Second)) {
			t.Errorf("sent at %v", at)
		}
	}
	same(t, got, want...)
}

// A second name of a dropped file is its own, and keeps what it has.
func TestDropOfAHardLink(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	outside := filepath.Join(teamPath(s), ".mine")
	os.WriteFile(outside, []byte("hello"), 0o644)
	for _, n := range []string{"a", "b"} {
		if err := os.Link(outside, filepath.Join(bob.Path(), "inbox", n)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	settleDrops(t, bob)
	if c := takeCensus(t, teamPath(s), "bob"); len(c.texts) != 2 || len(c.inbox)+len(c.tmp)+len(c.bad) > 0 {
		t.Error(c.places, c.inbox, c.tmp, c.bad)
	}
	if got, err := os.ReadFile(outside); err != nil || !bytes.Equal(got, []byte("hello")) {
		t.Errorf("%q, %v", got, err)
	}
	if info, _ := os.Stat(outside); info.Mode().Perm() != 0o644 {
		t.Errorf("its rights are %v", info.Mode())
	}
}

// While somebody else takes in, everybody else looks at what is there.
func TestDropsHeld(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	held, err := s.locks.Try("bob.drops", lockfile.Exclusive, nil)
	if err != nil {
		t.Fatal(err)
	}
	drop(t, bob, "inbox", "note", []byte("x"))
	drop(t, bob, "inbox/new", "note", []byte("x"))
	if taken := takeIn(t, bob); len(taken.Messages) > 0 {
		t.Error("taken in beside the holder")
	}
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) > 0 {
		t.Error(b, err)
	}
	held.Unlock()
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) != 2 {
		t.Error(b, err)
	}
}

// A time that no message can have is replaced by the present one.
func TestDropWithAnImpossibleTime(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	drop(t, bob, "inbox", "note", []byte("x"))
	path := filepath.Join(bob.Path(), "inbox", "note")
	at := unix.NsecToTimespec(0)
	at.Sec = 884_541_600_000 // in the year 30000
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, 0); err != nil {
		t.Skip("not here: ", err)
	}
	if info, err := os.Stat(path); err != nil || info.ModTime().Year() < 10000 {
		t.Skip("this file system knows no such time: ", info.ModTime(), err)
	}
	settleDrops(t, bob)
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) != 1 || time.Since(b.Items[0].SentAt).Abs() > time.Minute {
		t.Error(b, err)
	}
}
