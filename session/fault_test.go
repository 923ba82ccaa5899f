package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Whatever operation on the session's file fails, the session is as it was, and
// the next change succeeds.
func TestFailedChange(t *testing.T) {
	var fail atomic.Value
	fail.Store(atomicfile.Op(""))
	boom := errors.New("boom")
	fault := func(op atomicfile.Op, name string) error {
		if op == fail.Load() && strings.Contains(name, sessionsDir) {
			return boom
		}
		return nil
	}
	path := t.TempDir()
	d, err := atomicfile.Open(path, fault)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := d.Make(".locks")
	if err != nil {
		t.Fatal(err)
	}
	locks.Close()
	mail, err := mailbox.OpenStore(d, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer mail.Close()
	if err := mail.Create(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	st := &Store{Mail: mail}
	s := begin(t, st, "bob")
	file := filepath.Join(path, sessionsDir, string(s.SessionID)+extension)
	for _, op := range []atomicfile.Op{atomicfile.OpOpen, atomicfile.OpRead, atomicfile.OpCreate, atomicfile.OpWrite, atomicfile.OpSync, atomicfile.OpRename} {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fail.Store(op)
		_, err = st.Change(ctx, s.SessionID, func(s *Session) error { return s.Move(wire.SessionPaused, "", now()) })
		fail.Store(atomicfile.Op(""))
		if !errors.Is(err, boom) {
			t.Errorf("%s fails: %v", op, err)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
			t.Errorf("%s fails, and the file is %q, %v", op, after, err)
		}
		if names, _ := os.ReadDir(filepath.Dir(file)); len(names) != 1 {
			t.Errorf("%s fails, and leaves %v", op, names)
		}
	}
	// The directory's sync comes after the new file is in place: an error, and
	// whole all the same.
	fail.Store(atomicfile.OpSyncDir)
	_, err = st.Change(ctx, s.SessionID, func(s *Session) error { return s.Move(wire.SessionPaused, "", now()) })
	fail.Store(atomicfile.Op(""))
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	if got, err := st.Get(s.SessionID); err != nil || got.State != wire.SessionPaused {
		t.Errorf("%v, %v", got, err)
	}
	move(t, st, s.SessionID, wire.SessionActive)
}
