package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// Whatever operation on the session's file fails, the session is as it was, and
// the next change succeeds.
func TestFailedChange(t *testing.T) {
	var fail atomic.Value
	fail.Store("")
	boom := errors.New("boom")
	path := t.TempDir()
	st := openFaulty(t, path, func(op, name string) error {
		if op == fail.Load() && strings.Contains(name, sessionsDir) {
			return boom
		}
		return nil
	}, "bob")
	defer st.Mail.Close()
	s := begin(t, st, "bob")
	pause := func(op string) error {
		fail.Store(op)
		defer fail.Store("")
		_, err := st.Change(ctx, s.SessionID, func(s *Session) error { return s.Move(wire.SessionPaused, "", now()) })
		return err
	}
	file := filepath.Join(path, sessionsDir, string(s.SessionID)+extension)
	for _, op := range []string{"open", "read", "write", "fsync", "rename"} {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := pause(op); !errors.Is(err, boom) {
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
	if err := pause("fsync directory"); !errors.Is(err, boom) {
		t.Error(err)
	}
	if got, err := st.Get(s.SessionID); err != nil || got.State != wire.SessionPaused {
		t.Errorf("%v, %v", got, err)
	}
	move(t, st, s.SessionID, wire.SessionActive)
}
