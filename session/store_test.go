package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A large inbox holds up nobody: it is read before the team's lock.
func TestInboxIsReadBeforeTheLock(t *testing.T) {
	st := testTeam(t)
	id := begin(t, st).SessionID
	tell(t, st, id, text("one"))
	dropped := filepath.Join(st.mail.Box("bob").Path(), "inbox", "dropped.txt")
	must(t, os.WriteFile(dropped, []byte("plain mail"), 0o600))
	must(t, os.Chtimes(dropped, time.Time{}, time.Now().Add(-time.Hour)))
	done := make(chan *Session)
	must(t, st.Exclusive(ctx, func() error {
		go func() { done <- refresh(t, st, id) }()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(dropped); err != nil { // whoever reads an inbox takes it in
				break
			} else if time.Now().After(end) {
				t.Fatal("the inbox is read under the lock")
			}
		}
		return nil
	}))
	if m := (<-done).Messages; len(m) != 1 || m[0].Content != "one" {
		t.Errorf("%+v", m)
	}
}

// What arrives between the reading and the lock counts too.
func TestArrivesBeforeTheLock(t *testing.T) {
	st := testTeam(t)
	s := begin(t, st)
	tell(t, st, s.SessionID, text("one"))
	known, err := st.readUnread(ctx, s)
	must(t, err)
	tell(t, st, s.SessionID, text("two"))
	must(t, st.catchUp(ctx, s, known))
	if m := s.Messages; len(m) != 2 || m[0].Content != "one" || m[1].Content != "two" {
		t.Errorf("%+v", m)
	}
}

func TestOpenNothing(t *testing.T) {
	if st, err := Open("", OpenOptions{}); err == nil {
		st.Close()
		t.Error("a directory without a name was opened")
	}
}
