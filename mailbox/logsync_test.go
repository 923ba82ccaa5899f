package mailbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// syncs notes which files are synced; those named in broken fail.
type syncs struct {
	mu     sync.Mutex
	done   []string
	broken string
}

func (s *syncs) fault(op atomicfile.Op, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op != atomicfile.OpSync {
		return nil
	}
	s.done = append(s.done, filepath.Base(name))
	if s.broken != "" && strings.HasSuffix(name, s.broken) {
		return syscall.EIO
	}
	return nil
}

func note(id string) wire.Event { return wire.Event{Kind: "note", Source: "cli", EventID: id} }

// A segment is synced when the next is begun: a power cut takes the end of a log,
// never its middle.
func TestSegmentIsSyncedBeforeTheNext(t *testing.T) {
	smallSegments(t, 200)
	var s syncs
	bob := openStore(t, scratch(t), s.fault, "bob").Box("bob")
	for range 3 {
		appendEvents(t, bob, "one", "two") // over 200 bytes
	}
	if want := []string{segmentName(1), segmentName(3)}; !slices.Equal(s.done, want) {
		t.Errorf("synced %v, want %v", s.done, want)
	}
}

// Where that fails, an event that is to survive is not said to; the segment is not
// synced again.
func TestSegmentCannotBeSynced(t *testing.T) {
	smallSegments(t, 200)
	s := syncs{broken: segmentName(1)}
	bob := openStore(t, scratch(t), s.fault, "bob").Box("bob")
	appendEvents(t, bob, "one", "two")
	if err := bob.Append(ctx, AppendOptions{Sync: true}, note("")); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
	for range 2 {
		if err := bob.Append(ctx, AppendOptions{Sync: true}, note("")); err != nil {
			t.Error(err)
		}
	}
	c := bob.Events(0)
	defer c.Close()
	same(t, next(t, c), "1 one", "2 two", "3 note", "4 note", "5 note")
	if n := len(s.done); s.done[0] != segmentName(1) || slices.Contains(s.done[1:], segmentName(1)) {
		t.Errorf("%d syncs: %v", n, s.done)
	}
}

// An event that is in the log already is made durable for who asks for that: who
// wrote it may have been killed before.
func TestKnownEventIsSynced(t *testing.T) {
	var s syncs
	bob := openStore(t, scratch(t), s.fault, "bob").Box("bob")
	if err := bob.Append(ctx, AppendOptions{}, note("e1")); err != nil {
		t.Fatal(err)
	}
	if err := bob.Append(ctx, AppendOptions{Sync: true}, note("e1")); err != nil {
		t.Fatal(err)
	}
	if want := []string{segmentName(1)}; !slices.Equal(s.done, want) {
		t.Errorf("synced %v, want %v", s.done, want)
	}
}

// Where all segments are gone numbers go on after the base; one that cannot be
// read is no reason to begin anew.
func TestNumbersGoOnAfterTheBase(t *testing.T) {
	broken := true
	bob := openStore(t, scratch(t), func(op atomicfile.Op, name string) error {
		if broken && op == atomicfile.OpRead && filepath.Base(name) == baseFile {
			return syscall.EIO
		}
		return nil
	}, "bob").Box("bob")
	if err := os.MkdirAll(filepath.Join(bob.Path(), "events"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bob.Path(), "events", baseFile), []byte(`{"version":1,"seq":7,"crc":1,"state":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bob.Append(ctx, AppendOptions{}, note("")); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
	broken = false
	appendEvents(t, bob, "eight")
	c := bob.Events(7)
	defer c.Close()
	same(t, next(t, c), "8 eight")
}
