package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// tree returns the content of the files below a directory that a restore is about.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		data, err := os.ReadFile(path)
		isUnfinished := strings.Contains(name, "/inbox/tmp/") || strings.HasSuffix(name, ".tmp")
		if !isUnfinished && !strings.Contains(name, "/.locks/") && filepath.Base(name) != rootdir.RestoredFile {
			files[name] = string(data)
		}
		return err
	}))
	return files
}

// restoreUntil restores a backup into a new root, or goes on there, and is killed at its n-th operation. It reports
// whether it came to its end before.
func restoreUntil(t *testing.T, path string, data []byte, n int) (isOver bool) {
	t.Helper()
	killed := errors.New("killed")
	var mu sync.Mutex // several messages are written at once
	fault := func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if n--; n < 0 {
			return killed
		}
		return nil
	}
	root, err := teamdir.OpenFound(rootdir.Found{Path: path, Fault: fault}, notices.Tell)
	must(t, err)
	defer root.Close()
	content, err := Check(bytes.NewReader(data))
	must(t, err)
	err = root.BeginRestore("all.tar", content.SHA256)
	if err == nil {
		_, err = restore(root, data)
	}
	if err == nil {
		err = root.EndRestore()
	}
	if err != nil && !errors.Is(err, killed) {
		t.Fatal(err)
	}
	return err == nil
}

// A restore that is killed, at whatever operation, says so until it is repeated, and then nothing is missing or there
// twice, whatever the members did in between.
func TestRestoreKilled(t *testing.T) {
	ctx := context.Background()
	r, team := newTeam(t, "alice", "bob", "gone")
	attached, err := filestore.Add(team.Dir(), "a.txt", strings.NewReader("content"))
	must(t, err)
	must(t, team.Box("gone").MarkRead(ctx, postMail(t, team, "alice", "gone", "to one who is retired")))
	if _, err := team.Retire(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		postMail(t, team, "alice", "bob", fmt.Sprint("unread ", i), attached)
		must(t, team.Box("bob").MarkRead(ctx, postMail(t, team, "alice", "bob", fmt.Sprint("read ", i))))
	}
	must(t, team.Box("alice").Log().Append(ctx, wire.Event{Source: "cli", Kind: "turn_started"}))
	must(t, os.WriteFile(team.Dir().Join("team.toml"), []byte("# nothing\n"), 0o600))
	var file bytes.Buffer
	if _, missing, err := Write(ctx, r, &file, func(int) {}); missing != nil || err != nil {
		t.Fatal(missing, err)
	}
	data := file.Bytes()

	makeRoot := func() string {
		path := filepath.Join(t.TempDir(), "root")
		_, err := rootdir.Make(path)
		must(t, err)
		return path
	}
	whole := makeRoot()
	restoreUntil(t, whole, data, 1<<30)
	want := tree(t, whole)

	points := 0
	for isOver := false; !isOver; points += 3 {
		path := makeRoot()
		isOver = restoreUntil(t, path, data, points)
		_, isUnfinished := errors.AsType[*rootdir.UnfinishedError](rootdir.CheckRestored(path))
		got := tree(t, path)
		if isWhole := cmp.Equal(got, want); isUnfinished && isOver || !isUnfinished && !isWhole && len(got) > 2 {
			t.Fatalf("killed at %d: unfinished %v, with %d files", points, isUnfinished, len(got))
		}
		if isUnfinished && openRoot(t, path).BeginRestore("other.tar", "other") == nil {
			t.Fatalf("killed at %d: another backup is restored over it", points)
		}
		var arrived wire.ID
		var read []wire.ID
		hasWorked := points%2 > 0
		if hasWorked {
			arrived, read = work(t, openRoot(t, path))
		}
		restoreUntil(t, path, data, 1<<30)
		if checkMail(t, path, want, arrived, read); !hasWorked {
			if diff := cmp.Diff(want, tree(t, path)); diff != "" {
				t.Fatalf("killed at %d: (-whole +repeated)\n%s", points, diff)
			}
		}
	}
	t.Logf("killed at %d operations", points)
}

func openRoot(t *testing.T, path string) *teamdir.Root {
	t.Helper()
	r, err := teamdir.Open(path, notices.Tell)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// work does in a root what the members that are there can do: bob reads all of his mail, and gets some.
func work(t *testing.T, root *teamdir.Root) (arrived wire.ID, read []wire.ID) {
	t.Helper()
	team, err := root.Team("main")
	if errors.Is(err, teamdir.ErrNoTeam) {
		return "", nil
	}
	must(t, err)
	bob := team.Box("bob")
	if bob.CheckPresent() != nil {
		return "", nil
	}
	m := &wire.Message{ID: wire.NewID(), From: bob.Address(), To: []wire.Address{bob.Address()}, Body: "meanwhile"}
	p := &maildir.Post{Message: m, To: []*maildir.Box{bob}, Sender: bob}
	maildir.Deliver(context.Background(), p)
	must(t, p.Outcomes[0].Err)
	read, err = bob.UnreadIDs()
	must(t, err)
	for _, id := range read {
		must(t, bob.MarkRead(context.Background(), id))
	}
	must(t, bob.Log().Append(context.Background(), wire.Event{Source: "cli", Kind: "turn_idle"}))
	return m.ID, read
}

// checkMail checks that a root has all messages of another tree, each once, and what has happened in between.
func checkMail(t *testing.T, path string, want map[string]string, arrived wire.ID, read []wire.ID) {
	t.Helper()
	places := map[string][]string{} // of each message, by its mailbox and id
	got := tree(t, path)
	for name := range got {
		if agent, below, isIn := strings.Cut(name, "/inbox/"); isIn && strings.HasSuffix(name, ".json") {
			key := agent + " " + filepath.Base(name)
			places[key] = append(places[key], below)
		}
	}
	for name, content := range want {
		agent, _, isIn := strings.Cut(name, "/inbox/")
		if isIn && strings.HasSuffix(name, ".json") {
			if at := places[agent+" "+filepath.Base(name)]; len(at) != 1 {
				t.Fatalf("%s is at %q", name, at)
			}
		} else if !isIn && !strings.HasPrefix(got[name], content) {
			t.Fatalf("%s is %q, not %q", name, got[name], content)
		}
	}
	for _, id := range read {
		at := places["main/bob "+string(id)+".json"]
		if len(at) != 1 || !strings.HasPrefix(at[0], "done/") {
			t.Fatalf("%s, which was read, is at %q", id, at)
		}
	}
	if arrived != "" && len(places["main/bob "+string(arrived)+".json"]) != 1 {
		t.Fatal("what arrived in between is lost")
	}
}
