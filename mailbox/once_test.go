package mailbox

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// A name always means the same id, to whoever asks, however many at once; what it
// answers and whom it is for are part of it.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "alice", "bob")
	var mu sync.Mutex
	ids, news := map[wire.ID]bool{}, 0
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			e := &Errand{Name: "job/1", To: []string{"bob@main"}}
			known, err := s.Box("alice").Once(e)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[e.ID] = true
			if !known {
				news++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || news != 1 {
		t.Fatalf("%d ids, new for %d", len(ids), news)
	}
	for _, other := range []*Errand{
		{Name: "job/2", To: []string{"bob@main"}},
		{Name: "job/1", To: []string{"carol@main"}},
		{Name: "job/1", To: []string{"bob@main", "carol@main"}},
		{Name: "job/1", To: []string{"bob@main"}, Re: wire.NewID()},
	} {
		if known, err := s.Box("alice").Once(other); known || err != nil || ids[other.ID] {
			t.Errorf("%+v: known %v, %v", other, known, err)
		}
	}
	theirs := &Errand{Name: "job/1", To: []string{"bob@main"}}
	if known, err := s.Box("bob").Once(theirs); known || err != nil || ids[theirs.ID] {
		t.Errorf("another sender's: known %v, %v", known, err)
	}
	if c := takeCensus(t, teamPath(s), "alice"); len(c.places) != 0 {
		t.Error(c.places)
	}
	for _, name := range []string{"", " ", "a\nb", "\xff", strings.Repeat("x", 201)} {
		if _, err := s.Box("alice").Once(&Errand{Name: name}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if _, err := s.Box("nobody").Once(&Errand{Name: "x"}); err == nil {
		t.Error("a mailbox that is not there has noted something")
	}
}

// A note that is not what it should be is an error: another id would send twice.
func TestOnceUnreadable(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "alice")
	if _, err := s.Box("alice").Once(&Errand{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(teamPath(s), "alice", "sent", "once", "*.json"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	for _, text := range []string{"", "{", `{"name":"y","id":"01900000-0000-7000-8000-000000000000"}`, `{"name":"x","id":"../x"}`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Box("alice").Once(&Errand{Name: "x"}); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// Whatever fails on the way, the name has no id or one that lasts.
func TestOnceFault(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		dir := scratch(t)
		openStore(t, dir, nil, "alice")
		left, hit := n, false
		fault := func(op atomicfile.Op, name string) error {
			if left--; left == -1 {
				hit = true
				return os.ErrInvalid
			}
			return nil
		}
		d, err := atomicfile.Open(dir, fault)
		if err != nil {
			continue
		}
		s, err := OpenStore(d, "main")
		if err != nil {
			t.Fatal(err)
		}
		e := &Errand{Name: "x"}
		_, err = s.Box("alice").Once(e)
		if !hit {
			return // all of it has failed once
		}
		again := &Errand{Name: "x"}
		if _, bad := s.Box("alice").Once(again); bad != nil || err == nil && again.ID != e.ID {
			t.Errorf("fault %d: %v, then %v; %s and %s", n, err, bad, e.ID, again.ID)
		}
	}
	t.Error("it never went without a fault")
}
