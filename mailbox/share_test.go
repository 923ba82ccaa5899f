//go:build unix

package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// become makes this process another user's, as ATM_TEST_USER says: "uid gid".
func become() {
	w := strings.Fields(os.Getenv("ATM_TEST_USER"))
	if len(w) == 0 {
		return
	}
	uid, _ := strconv.Atoi(w[0])
	gid, _ := strconv.Atoi(w[1])
	if err := errors.Join(syscall.Setgroups([]int{gid}), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		panic(err)
	}
	syscall.Umask(0o077)
}

// does does what ATM_TEST_DO says, a word each, to bob's mailbox, and says what
// came of it.
func (p *process) does() {
	b := p.store.Box("bob")
	for _, what := range strings.Fields(os.Getenv("ATM_TEST_DO")) {
		var err error
		said := ""
		switch what {
		case "create":
			err = p.store.Create(ctx, "bob")
		case "deliver":
			m := message("alice", "a body")
			said = string(m.ID)
			post := &Post{Message: m, To: []*Box{b}, Given: true}
			Deliver(ctx, post)
			err = post.Outcomes[0].Err
		case "read":
			var batch Batch
			batch, err = b.Read(ctx, ReadOptions{}, takeAll)
			err = errors.Join(err, batch.Unmarked, batch.Unlogged)
			said = fmt.Sprint(len(batch.Items))
		case "peek":
			var batch Batch
			batch, err = b.Peek(ctx, ReadOptions{})
			said = fmt.Sprint(len(batch.Items))
		case "takein":
			var taken Taken
			taken, err = b.TakeIn(ctx)
			said = fmt.Sprintf("%d %d", len(taken.Messages), taken.Waiting)
		case "attach":
			_, err = p.store.Attach("x", strings.NewReader("content"))
		case "gc":
			_, err = b.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2)})
		case "examine":
			var h Health
			h, err = b.Examine(false)
			said = strings.Join(h.Unreadable, " ")
		}
		word := "ok"
		switch {
		case errors.Is(err, ErrUnreadable):
			word = "unreadable"
		case errors.Is(err, ErrNoAgent):
			word = "nobody"
		case errors.Is(err, fs.ErrPermission):
			word = "forbidden"
		case err != nil:
			word = "error " + err.Error()
		}
		p.say("%s", strings.TrimSpace(what+": "+word+" "+said))
	}
	os.Exit(0)
}

// as does something as another user and returns what the process said.
func as(t *testing.T, path string, uid, gid int, do string) []string {
	t.Helper()
	c, out := start(t, "does", path, fmt.Sprintf("ATM_TEST_USER=%d %d", uid, gid), "ATM_TEST_DO="+do)
	var lines []string
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	return lines
}

// shared is a team's directory that other users can get to. Needs root, who
// alone can be several users.
func shared(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be other users")
	}
	path := scratch(t)
	if err := os.Chmod(path, 0o701); err != nil { // by others, and not by a group
		t.Fatal(err)
	}
	if self, err := os.Executable(); err != nil {
		t.Fatal(err)
	} else if info, err := os.Stat(self); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Skip("the test binary cannot be started again")
	}
	return path
}

const (
	anne, ben, other = 21001, 21002, 21003 // users
	crew             = 22001               // a group
)

// give gives everything below a directory to a user.
func give(t *testing.T, path string, uid, gid int) {
	t.Helper()
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, uid, gid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What root does in another's mailbox belongs to that one, who can go on.
func TestRootForAnother(t *testing.T) {
	t.Parallel()
	path := shared(t)
	openStore(t, path, nil, "bob", "alice")
	give(t, path, anne, anne)
	s := openStore(t, path, nil)
	bob := s.Box("bob")
	for range 2 {
		p := &Post{Message: message("alice", "x"), To: []*Box{bob}, Sender: s.Box("alice")}
		Deliver(ctx, p)
		if p.Outcomes[0].Err != nil {
			t.Fatal(p.Outcomes[0].Err)
		}
	}
	drop(t, bob, "inbox", "note", []byte("x"))
	drop(t, bob, "inbox", "bad.json", []byte("{"))
	drop(t, bob, "inbox", "binary", []byte("\x00"))
	give(t, filepath.Join(bob.Path(), "inbox"), anne, anne)
	if b, err := bob.Read(ctx, ReadOptions{Limit: 2}, takeAll); err != nil || len(b.Items) != 2 {
		t.Fatal(b, err)
	}
	if _, err := bob.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2)}); err != nil {
		t.Fatal(err)
	}
	n := 0
	filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error {
		info, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if st := info.Sys().(*syscall.Stat_t); st.Uid != anne || st.Gid != anne {
			t.Errorf("%s belongs to %d:%d", p, st.Uid, st.Gid)
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if p != path && info.Mode().Perm() != want {
			t.Errorf("%s is %v", p, info.Mode())
		}
		return nil
	})
	if n < 20 {
		t.Errorf("%d entries", n)
	}
	same(t, as(t, path, anne, anne, "read deliver read gc"), "read: ok 2", lastDelivery(t, s, "bob"), "read: ok 1", "gc: ok")
	// Who may not is told so, and not that there is no such agent.
	os.Chmod(path, 0o705)
	os.Chmod(filepath.Join(path, ".locks"), 0o705)
	got := as(t, path, other, other, "peek read deliver")
	if len(got) == 3 {
		got[2], _, _ = strings.Cut(got[2], " 0")
	}
	same(t, got, "peek: forbidden 0", "read: forbidden 0", "deliver: forbidden")
}

// lastDelivery is what the process said of the newest message.
func lastDelivery(t *testing.T, s *Store, agent wire.Name) string {
	ids := takeCensus(t, teamPath(s), agent).ids()
	return "deliver: ok " + string(ids[len(ids)-1])
}

// A team that several users share by their group, whatever their umask.
func TestGroupShared(t *testing.T) {
	t.Parallel()
	for _, bit := range []fs.FileMode{0, fs.ModeSetgid} {
		path := shared(t)
		if err := errors.Join(os.Chown(path, anne, crew), os.Chmod(path, 0o770|bit), os.Mkdir(filepath.Join(path, ".locks"), 0),
			os.Chown(filepath.Join(path, ".locks"), anne, crew), os.Chmod(filepath.Join(path, ".locks"), 0o770|bit)); err != nil {
			t.Fatal(err)
		}
		same(t, as(t, path, anne, crew, "create attach"), "create: ok", "attach: ok")
		for i, user := range []int{anne, ben, anne, ben} {
			got := as(t, path, user, crew, "deliver")
			if len(got) != 1 || !strings.HasPrefix(got[0], "deliver: ok") {
				t.Fatal(i, got)
			}
			same(t, as(t, path, anne+ben-user, crew, "read attach gc"), "read: ok 1", "attach: ok", "gc: ok")
		}
		filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error {
			info, err := os.Lstat(p)
			if err != nil {
				t.Fatal(err)
			}
			want := fs.FileMode(0o660)
			if e.IsDir() {
				want = 0o770
			}
			if info.Mode().Perm() != want || info.Sys().(*syscall.Stat_t).Gid != crew {
				t.Errorf("%s is %v of group %d", p, info.Mode(), info.Sys().(*syscall.Stat_t).Gid)
			}
			return nil
		})
	}
}

// Nothing is put where its owner could not read it.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	path := shared(t)
	openStore(t, path, nil, "bob")
	give(t, path, anne, anne)
	for _, mode := range []fs.FileMode{0o777, 0o707} {
		filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error {
			if e.IsDir() {
				return os.Chmod(p, mode)
			}
			return nil
		})
		got := as(t, path, other, other, "deliver")
		if len(got) != 1 || !strings.HasPrefix(got[0], "deliver: unreadable") {
			t.Errorf("mode %o: %q", mode, got)
		}
	}
	if c := takeCensus(t, path, "bob"); len(c.places)+len(c.tmp) > 0 {
		t.Error(c.places, c.tmp)
	}
	// What is no mail is not opened to a group that is not the directory's.
	if err := errors.Join(os.Chown(path, anne, crew), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(path, ".files")
	same(t, as(t, path, other, other, "attach"), "attach: ok")
	if info, err := os.Lstat(files); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	if err := errors.Join(os.RemoveAll(files), os.Mkdir(files, 0), os.Chown(files, anne, crew), os.Chmod(files, 0o777)); err != nil {
		t.Fatal(err)
	}
	same(t, as(t, path, other, other, "attach"), "attach: ok")
	for _, n := range filesIn(t, files, nil) {
		if info, err := os.Lstat(filepath.Join(files, n)); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
	}
}

// Who owns no file gets no lease on it: then it is taken in when it has not
// changed for a second, and kept.
func TestDropOfAnother(t *testing.T) {
	t.Parallel()
	path := shared(t)
	s := openStore(t, path, nil, "bob")
	bob := s.Box("bob")
	give(t, path, anne, anne)
	note := filepath.Join(bob.Path(), "inbox", "note")
	if err := errors.Join(os.WriteFile(note, []byte("hello"), 0o644), os.Chmod(note, 0o644), os.Chown(note, ben, ben)); err != nil {
		t.Fatal(err)
	}
	// As long as it changes, it is left alone.
	stop, stopped := make(chan struct{}), make(chan time.Time)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- time.Now()
				return
			case <-time.After(20 * time.Millisecond):
				os.Chmod(note, 0o644)
			}
		}
	}()
	for range 2 {
		same(t, as(t, path, anne, anne, "takein"), "takein: ok 0 1")
	}
	close(stop)
	dropped := <-stopped
	for range 100 {
		if got := as(t, path, anne, anne, "takein"); got[0] == "takein: ok 1 0" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if age := time.Since(dropped); age < 900*time.Millisecond { // the last change was up to 20 ms before
		t.Errorf("taken in after %v", age)
	}
	c := takeCensus(t, path, "bob")
	if len(c.texts) != 1 || len(c.drops) != 1 || len(c.inbox)+len(c.tmp)+len(c.bad) > 0 {
		t.Errorf("%v, drops %q, inbox %q, tmp %q", c.places, c.drops, c.inbox, c.tmp)
	}
	for _, m := range c.texts {
		if m.Body != "hello" || *m.Origin.UID != ben {
			t.Errorf("%s", m.Append(nil))
		}
	}
}

// A file that cannot be read stays, and keeps nothing else from being taken in.
func TestDropThatCannotBeRead(t *testing.T) {
	t.Parallel()
	path := shared(t)
	s := openStore(t, path, nil, "bob")
	bob := s.Box("bob")
	drop(t, bob, "inbox", "a", []byte("hidden"))
	drop(t, bob, "inbox", "b", []byte("hello"))
	give(t, path, anne, anne)
	if err := os.Chmod(filepath.Join(bob.Path(), "inbox", "a"), 0); err != nil {
		t.Fatal(err)
	}
	same(t, as(t, path, anne, anne, "read read examine"), "read: ok 1", "read: ok 0", "examine: ok a")
	if c := takeCensus(t, path, "bob"); len(c.inbox) != 1 {
		t.Error(c.inbox)
	}
}
