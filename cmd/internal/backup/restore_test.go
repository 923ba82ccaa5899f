package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/wire"
)

// entry is one of a hostile tar.
type entry struct {
	name    string
	kind    byte // 0: a regular file
	content string
	link    string
	hole    int64 // the size that a sparse entry pretends to have
	lie     int64 // the size that the header says, which is not the content's
}

// makeTar makes a tar that begins as a backup does. archive/tar writes neither holes nor lies, so this does.
func makeTar(entries ...entry) []byte {
	var b bytes.Buffer
	for _, e := range append([]entry{{name: "FORMAT", content: "1\n"}}, entries...) {
		if e.hole > 0 {
			records := ""
			for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + e.name, fmt.Sprintf("GNU.sparse.realsize=%d", e.hole)} {
				n := len(r) + 2
				for n < len(fmt.Sprintf("%d %s\n", n, r)) {
					n++
				}
				records += fmt.Sprintf("%d %s\n", n, r)
			}
			b.Write(block("x", 'x', records, "", int64(len(records))))
			e.content = fmt.Sprintf("1\n%d\n0\n", e.hole)
			e.content += strings.Repeat("\x00", 512-len(e.content))
		}
		size := int64(len(e.content))
		if e.lie > 0 {
			size = e.lie
		}
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		b.Write(block(e.name, e.kind, e.content, e.link, size))
	}
	b.Write(make([]byte, 1024))
	return b.Bytes()
}

func block(name string, kind byte, content, link string, size int64) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000600\x000000000\x000000000\x00")
	copy(h[124:], fmt.Sprintf("%011o\x00", size))
	copy(h[136:], "00000000000\x00        ")
	h[156] = kind
	copy(h[157:], link)
	copy(h[257:], "ustar\x0000")
	if kind == tar.TypeGNUSparse { // one that has no data
		copy(h[257:], "ustar  \x00")
		copy(h[386:], "00000000000\x0000000000000\x00")
		copy(h[483:], "30000000000\x00")
	}
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	h = append(h, content...)
	return append(h, make([]byte, (512-len(content)%512)%512)...)
}

func mail(to, body string) entry {
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, Body: body}
	data, _ := m.Encode()
	return entry{name: "main/" + to + "/inbox/new/" + string(m.ID) + ".json", content: string(data)}
}

func attachment(content string) entry {
	return entry{name: fmt.Sprintf("main/.files/%x", sha256.Sum256([]byte(content))), content: content}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// size returns how many bytes the files below a directory have.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			info, err := e.Info()
			must(t, err)
			n += info.Size()
		}
		return err
	}))
	return n
}

// What no backup has is refused by name, costs no more than its part of the file, and does not keep the rest from being
// restored.
func TestRestoreHostile(t *testing.T) {
	const large = 3 << 30
	long := strings.Repeat("d/", 40)
	id := string(wire.NewID())
	for name, e := range map[string]entry{
		"a log that is a hole":           {name: "main/bob/events/00000000000000000001.ndjson", hole: large},
		"an attachment that is a hole":   {name: "main/.files/" + strings.Repeat("a", 64), hole: large},
		"a message that is a hole":       {name: "main/bob/inbox/new/" + id + ".json", hole: large},
		"a hole, in the old way":         {name: "main/bob/inbox/note", kind: tar.TypeGNUSparse},
		"an attachment of other content": {name: "main/.files/" + strings.Repeat("a", 64), content: "x"},
		"an attachment without a hash":   {name: "main/.files/readme", content: "x"},
		"a hash in upper case":           {name: "main/.files/" + strings.ToUpper(strings.Repeat("a", 64)), content: "x"},
		"an absolute path":               {name: "/tmp/evil", content: "x"},
		"a path up":                      {name: "main/../../evil", content: "x"},
		"a path up, cleaned":             {name: "main/bob/inbox/../../../../evil", content: "x"},
		"a link":                         {name: "main/bob/inbox/new/" + id + ".json", kind: tar.TypeSymlink, link: "/etc/passwd"},
		"a hard link":                    {name: "main/bob/inbox/x", kind: tar.TypeLink, link: "/etc/passwd"},
		"a device":                       {name: "main/bob/inbox/x", kind: tar.TypeChar},
		"a FIFO":                         {name: "main/bob/inbox/x", kind: tar.TypeFifo},
		"a format":                       {name: "FORMAT", content: "2"},
		"a lock":                         {name: "main/.locks/bob.runner", content: "x"},
		"a socket's place":               {name: "main/bob/run/control.sock", content: "x"},
		"a policy":                       {name: "main/bob/run/policy.json", content: "{}"},
		"a cache":                        {name: "main/bob/state.json", content: "{}"},
		"what was told":                  {name: "main/.bridge/received/" + id + ".bob", content: "{}"},
		"another case":                   {name: "main/Bob/inbox/x", content: "x"},
		"another case of the team":       {name: "MAIN/bob/inbox/x", content: "x"},
		"a file in place of an inbox":    {name: "main/bob/inbox", content: "x"},
		"a directory that is a file":     {name: "main/bob/shared/inbox/x", content: "x"},
		"a path through a file":          {name: "main/bob/inbox/note/x", content: "x"},
		"many directories":               {name: "main/bob/inbox/bad/" + long + "x", content: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			root, team := newTeam(t)
			good := []entry{{name: "main/bob/inbox/note", content: "n"}, mail("bob", "before"), mail("bob", "after"), attachment("content")}
			data := makeTar(good[0], good[1], e, good[2], good[3])
			var got Restored
			var err error
			began := time.Now()
			used := allocated(func() { got, err = restore(root, data) })
			must(t, err)
			isRefused := len(got.Refused) == 1 && got.Refused[0].Name == e.name && got.Refused[0].Reason != ""
			if !isRefused && name != "many directories" { // which may be a directory that was dropped
				t.Errorf("refused %v", got.Refused)
			}
			if got.Messages != 2 {
				t.Errorf("%d messages", got.Messages)
			}
			if used > 8<<20 || time.Since(began) > 20*time.Second {
				t.Errorf("%d bytes of memory, %v", used, time.Since(began))
			}
			if n := size(t, team.Dir().Join(".")); n > int64(len(data)) {
				t.Errorf("%d bytes of %d", n, len(data))
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(root.Path), "evil")); err == nil {
				t.Error("it has left the root")
			}
		})
	}
}

// Sizes that are not true end the restore. What came before is there, and nothing is half there.
func TestRestoreLies(t *testing.T) {
	for name, e := range map[string]entry{
		"too long":           {name: "main/bob/events/00000000000000000001.ndjson", content: "x", lie: 5000},
		"far too long":       {name: "main/bob/events/00000000000000000001.ndjson", content: "x", lie: 8 << 30 >> 1},
		"an attachment":      {name: "main/.files/" + strings.Repeat("a", 64), content: "x", lie: 1 << 30},
		"a message":          {name: "main/bob/inbox/new/" + string(wire.NewID()) + ".json", content: "x", lie: 1 << 30},
		"shorter than it is": {name: "main/bob/inbox/x", content: strings.Repeat("x", 2000), lie: 3},
	} {
		t.Run(name, func(t *testing.T) {
			root, team := newTeam(t)
			data := makeTar(mail("bob", "before"), e)
			var err error
			used := allocated(func() { _, err = restore(root, data) })
			if err == nil || !strings.Contains(err.Error(), "the backup is damaged") || !strings.Contains(err.Error(), "is restored") {
				t.Errorf("error %v", err)
			}
			if used > 8<<20 {
				t.Errorf("%d bytes of memory", used)
			}
			unread, err := team.Box("bob").UnreadIDs()
			if err != nil || len(unread) != 1 {
				t.Error(unread, err)
			}
			for _, dir := range []string{".files", "bob/events", "bob/inbox/new"} {
				names, _ := team.Dir().Names(dir)
				if slices.ContainsFunc(names, func(n string) bool { return n != string(unread[0])+".json" }) {
					t.Errorf("%s has %q", dir, names)
				}
			}
		})
	}
}

// A log is copied piece by piece, also when it is there already.
func TestRestoreLargeLog(t *testing.T) {
	root, team := newTeam(t)
	line := `{"seq":1,"at":"2026-11-20T09:46:47Z","team":"main","agent":"bob","source":"cli","kind":"x","text":"` + strings.Repeat("x", 1<<20) + "\"}\n"
	log := entry{name: "main/bob/events/00000000000000000001.ndjson", content: strings.Repeat(line, 48)}
	data := makeTar(log)
	for range 2 {
		used := allocated(func() { _, err := restore(root, data); must(t, err) })
		if used > 8<<20 {
			t.Errorf("%d bytes of memory for a log of %d", used, len(log.content))
		}
	}
	got, err := os.ReadFile(team.Dir().Join("bob/events/00000000000000000001.ndjson"))
	if err != nil || string(got) != log.content {
		t.Errorf("%d bytes of %d: %v", len(got), len(log.content), err)
	}
}

// Of many entries that are refused the first ones are named. Many members or teams are no backup.
func TestRestoreMany(t *testing.T) {
	root, _ := newTeam(t)
	many := func(n int, name string) (all []entry) {
		for i := range n {
			all = append(all, entry{name: fmt.Sprintf(name, i)})
		}
		return all
	}
	got, err := restore(root, makeTar(append(many(5000, "main/.locks/x%d"), mail("bob", "x"))...))
	if err != nil || len(got.Refused) != maxRefused || got.MoreRefused != 5000-maxRefused || got.Messages != 1 {
		t.Error(len(got.Refused), got.MoreRefused, got.Messages, err)
	}
	if _, err = restore(root, makeTar(many(maxTeams+2, "t%d/x/shared")...)); err == nil || !strings.Contains(err.Error(), "more than 100 teams") {
		t.Error(err)
	}
	old := maxMembers
	maxMembers = 20
	defer func() { maxMembers = old }()
	if _, err = restore(root, makeTar(many(30, "main/m%d/shared")...)); err == nil || !strings.Contains(err.Error(), "more than 20 members") {
		t.Error(err)
	}
}

// A restore that is interrupted, also in the middle of a file, leaves nothing half there, and can be repeated.
func TestRestoreInterrupted(t *testing.T) {
	root, team := newTeam(t)
	data := makeTar(mail("bob", "one"), attachment(strings.Repeat("x", 8<<20)), mail("bob", "two"))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Restore(ctx, root, &endingReader{bytes.NewReader(data), 4 << 20, cancel}, func(int) {})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(team.Dir().Join(".files")); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
	got, err := restore(root, data)
	if err != nil || got.Messages != 2 || got.Skipped != 0 {
		t.Error(got, err)
	}
}

// endingReader calls end after some bytes.
type endingReader struct {
	io.ReadSeeker
	left int
	end  func()
}

func (r *endingReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	if r.left -= n; r.left < 0 {
		r.end()
	}
	return n, err
}

// What was dropped and is mostly holes is left out of a backup, and named; a large file with content is in it.
func TestBackupOfHoles(t *testing.T) {
	root, team := newTeam(t, "bob")
	for _, name := range []string{"inbox/bad/hole", "inbox/dir/hole"} {
		file := filepath.Join(team.Box("bob").Path(), name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, nil, 0o600))
		must(t, os.Truncate(file, drop.MaxSize+1))
	}
	var file bytes.Buffer
	_, missing, err := Write(context.Background(), root, &file, func(int) {})
	must(t, err)
	if missing == nil || strings.Count(missing.Error(), "256.0 MiB, most of it holes") != 2 || file.Len() > 1<<20 {
		t.Errorf("%d bytes; missing: %v", file.Len(), missing)
	}
}
