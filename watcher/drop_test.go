package watcher

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
)

// dropFile moves a file into a mailbox's inbox, one that is not settling any more.
func dropFile(t testing.TB, b *maildir.Box, name, text string) {
	t.Helper()
	tmp := filepath.Join(filepath.Dir(b.Path()), filepath.Base(name))
	must(t, os.WriteFile(tmp, []byte(text), 0o600))
	past := time.Now().Add(-2 * maildir.Settling)
	must(t, os.Chtimes(tmp, past, past))
	must(t, os.Rename(tmp, filepath.Join(b.Path(), "inbox", name)))
}

func TestDroppedFileBeingWrittenArrivesWholeAndOnce(t *testing.T) {
	for _, place := range []string{"slow.txt", "new/slow.txt"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			_, bob := bobs(t)
			w := watch(t, Options{Messages: true}, bob)
			f, err := os.Create(filepath.Join(bob.Path(), "inbox", place))
			must(t, err)
			want := ""
			for range 10 {
				f.WriteString("line\n")
				want += "line\n"
				time.Sleep(30 * time.Millisecond)
			}
			f.Close()
			expect(t, w, want)
			nothing(t, w, bob)
		})
	}
}
