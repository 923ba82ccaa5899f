package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// Whatever operation on the session's file fails, the session is as it was, and
// the next change succeeds. Only the directory's sync comes after the new file is
// in place: an error, and whole all the same.
func TestFailedChange(t *testing.T) {
	var fail string
	boom := errors.New("boom")
	path := t.TempDir()
	st := openTeam(t, path, func(op, name string) error {
		if op == fail && strings.Contains(name, sessionsDir) {
			return boom
		}
		return nil
	})
	defer st.Mail.Close()
	s := begin(t, st)
	file := filepath.Join(path, sessionsDir, string(s.SessionID)+extension)
	for _, op := range []string{"open", "read", "write", "fsync", "rename", "fsync directory"} {
		before, err := os.ReadFile(file)
		must(t, err)
		fail = op
		_, err = st.Change(ctx, s.SessionID, func(s *Session) error { return s.Move(wire.SessionPaused, "", now()) })
		fail = ""
		if !errors.Is(err, boom) {
			t.Errorf("%s fails: %v", op, err)
		}
		after, err := os.ReadFile(file)
		must(t, err)
		if isChanged := string(after) != string(before); isChanged != (op == "fsync directory") {
			t.Errorf("%s fails, and the file is %q", op, after)
		}
		if names, _ := os.ReadDir(filepath.Dir(file)); len(names) != 1 {
			t.Errorf("%s fails, and leaves %v", op, names)
		}
	}
	move(t, st, s.SessionID, wire.SessionActive)
}
