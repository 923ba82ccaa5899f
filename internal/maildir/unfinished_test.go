package maildir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/inbox"
)

func isPassedOver(name string) bool { return name[0] == '.' || drop.Finished(name) != name }

// What stays unfinished or empty for an hour is named, and so is what can never be mail; hidden files never are.
// What is renamed is mail.
func TestLeftFiles(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	old := time.Now().Add(-2 * time.Hour)
	for name, content := range map[string]string{
		"a.part": "x", "new.part": "x", ".env": "x", "empty": "", "new.empty": "", "b~": "x", "x.tmp.txt": "x", "#x#": "x",
	} {
		dropFile(t, bob, "inbox", name, content)
		if !strings.HasPrefix(name, "new.") {
			must(t, os.Chtimes(filepath.Join(bob.Path(), "inbox", name), old, old))
		}
	}
	must(t, os.Mkdir(filepath.Join(bob.Path(), "inbox", "directory"), 0o700))
	must(t, os.Mkdir(filepath.Join(bob.Path(), "inbox", ".stfolder"), 0o700))
	want := []string{"a.part", "b~", "directory", "empty"}
	check := func() {
		t.Helper()
		settleDrops(t, bob)
		var got []string
		bad, err := drop.BadFiles(bob)
		must(t, err)
		for _, f := range bad {
			got = append(got, f.Name)
		}
		equal(t, "left", got, want...)
		c, err := inbox.Count(ctx, bob)
		must(t, err)
		b, err := inbox.Read(ctx, bob, inbox.ReadOptions{}, func(inbox.Batch) (int, error) { return 0, nil })
		must(t, err)
		if c.Bad != len(want) || b.Bad != len(want) {
			t.Errorf("counted %d, read tells of %d", c.Bad, b.Bad)
		}
	}
	check()
	if got := read(t, bob); len(got) != 2 {
		t.Error(got)
	}
	must(t, os.Rename(filepath.Join(bob.Path(), "inbox/a.part"), filepath.Join(bob.Path(), "inbox/a")))
	want = []string{"b~", "directory", "empty"}
	check()
	if got := read(t, bob); len(got) != 1 {
		t.Error(got)
	}
}
