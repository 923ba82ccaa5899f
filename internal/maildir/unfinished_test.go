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

func isPassedOver(name string) bool {
	_, isUnfinished := drop.FinishedName(name)
	return isUnfinished || drop.IsLitter(name)
}

// Which names wait, and the name that each is to get.
func TestUnfinishedNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		".report.txt", ".report.txt.AbCdEf", "report.txt~", "#report.txt#", ".#report.txt", "~$report.txt", "report.txt.tmp",
		"report.txt.part", "report.txt.filepart", "report.txt.partial", "report.txt.aria2", "report.txt.crdownload",
		"REPORT.TXT.CRDOWNLOAD", "report.txt.opdownload", "report.txt.sb-12", "report.txt.sb-1a2b3c4d-AbCdEf", "report.txt.swp",
		".report.txt.swp", ".syncthing.report.txt.tmp", "~syncthing~report.txt.tmp", "report.txt.tmp.4711.1764150000",
		"report.txt___jb_tmp___", ".report.txt.~1a2b", ".~lock.report.txt#", "report.txt.!sync", "report.txt.!qB", "report.txt.temp",
	} {
		finished, isUnfinished := drop.FinishedName(name)
		if _, still := drop.FinishedName(finished); !isUnfinished || still || !strings.Contains(strings.ToLower(finished), "report.txt") {
			t.Errorf("%s: %v, to be %s", name, isUnfinished, finished)
		}
	}
	for _, name := range []string{"~", ".", "##", "..tmp"} {
		if finished, isUnfinished := drop.FinishedName(name); !isUnfinished || finished != "unnamed" {
			t.Errorf("%q is to be %q", name, finished)
		}
	}
	for _, name := range []string{"report.txt", "report", "a#b", "#1", "party", "x.tmpl", "tmp", "part", "~home", "x.sb", "report.tmp.md", "11", "x.part.txt"} {
		if isPassedOver(name) {
			t.Errorf("%s waits", name)
		}
	}
	for _, name := range []string{".DS_Store", "desktop.ini", "Thumbs.db", "4913", "._report.txt"} {
		if !drop.IsLitter(name) {
			t.Errorf("%s is not litter", name)
		}
	}
}

// What stays unfinished or empty for an hour is named, and so is what can never be mail; litter never is. What is
// renamed is mail.
func TestLeftFiles(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	old := time.Now().Add(-2 * time.Hour)
	for name, content := range map[string]string{
		"a.part": "x", "new.part": "x", ".env": "x", "empty": "", "new.empty": "", ".DS_Store": "x", "iso": "x", "iso.aria2": "x",
	} {
		dropFile(t, bob, "inbox", name, content)
		if !strings.HasPrefix(name, "new.") {
			must(t, os.Chtimes(filepath.Join(bob.Path(), "inbox", name), old, old))
		}
	}
	must(t, os.Mkdir(filepath.Join(bob.Path(), "inbox", "directory"), 0o700))
	must(t, os.Mkdir(filepath.Join(bob.Path(), "inbox", ".stfolder"), 0o700))
	want := []string{".env", "a.part", "directory", "empty", "iso", "iso.aria2"}
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
	if got := read(t, bob); len(got) != 0 {
		t.Error(got)
	}
	must(t, os.Rename(filepath.Join(bob.Path(), "inbox/a.part"), filepath.Join(bob.Path(), "inbox/a")))
	must(t, os.Remove(filepath.Join(bob.Path(), "inbox/iso.aria2")))
	want = []string{".env", "directory", "empty"}
	check()
	if got := read(t, bob); len(got) != 2 {
		t.Error(got)
	}
}
