package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A disk is a small file system that really is full, or read-only.
type disk struct {
	name string
	make func(t *testing.T) string    // makes and mounts it
	full func(t *testing.T, d string) // until nothing more fits
	free func(t *testing.T, d string)
}

func mountTmpfs(options string) func(*testing.T) string {
	return func(t *testing.T) string {
		d := t.TempDir()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", d).CombinedOutput(); err != nil {
			t.Skipf("mount tmpfs: %v: %s", err, out)
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", d).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		})
		return d
	}
}

// fill writes one file until there is no room, to the last byte.
func fill(t *testing.T, d string) {
	f, err := os.OpenFile(filepath.Join(d, "filler"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func unfill(t *testing.T, d string) {
	fillers, _ := filepath.Glob(filepath.Join(d, "filler*"))
	for _, f := range fillers {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

// crowd makes empty files until there is no inode.
func crowd(t *testing.T, d string) {
	for n := 0; ; n++ {
		f, err := os.Create(filepath.Join(d, fmt.Sprintf("filler%d", n)))
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

func remount(how string) func(*testing.T, string) {
	return func(t *testing.T, d string) {
		if out, err := exec.Command("mount", "-o", "remount,"+how, d).CombinedOutput(); err != nil {
			t.Fatalf("remount %s: %v: %s", how, err, out)
		}
	}
}

var disks = []disk{
	{"tmpfs full", mountTmpfs("size=128k"), fill, unfill},
	{"tmpfs without inodes", mountTmpfs("nr_inodes=100"), crowd, unfill},
	{"tmpfs read-only", mountTmpfs("size=1m"), remount("ro"), remount("rw")},
	{"ext4 full", mountExt4, fill, unfill},
	{"ext4 read-only", mountExt4, remount("ro"), remount("rw")},
}

func mountExt4(t *testing.T) string {
	v := newVolume(t, "ext4")
	v.mount()
	return v.path
}

// On a disk that is full or read-only, looking works, reading shows and says
// that it could not mark, sending fails and loses nothing; and with room again,
// everything works.
func TestFaultsDisk(t *testing.T) {
	if os.Getenv("ATM_FAULTS") == "" {
		t.Skip("it mounts file systems: set ATM_FAULTS=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, d := range disks {
		for _, used := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, read before %v", d.name, used), func(t *testing.T) {
				dir := d.make(t)
				s := &scarce{world: newWorld(t, dir, takers...), dir: dir, disk: d}
				s.prepare(used)
				d.full(t, dir)
				s.look()
				s.write()
				s.call()
				s.read()
				s.judge(t, take(t, s.team()))
				d.free(t, dir)
				s.recover()
			})
		}
	}
}

// scarce is a team on a disk that has nothing to give.
type scarce struct {
	*world
	dir    string
	disk   disk
	tokens []token // unread by bob
	last   string  // id of the last of them
	retry  []string
}

// prepare sends some mail, and has a file lie in the inbox.
func (s *scarce) prepare(used bool) {
	send := func(flags ...string) token {
		tok, text := write(200)
		s.begin(tok, "alice", "bob")
		r := s.must(append(append([]string{"send", "bob", "--as", "alice", "--json"}, flags...), "--", text)...)
		s.stored(tok, r)
		s.last = s.posts[key{"bob", tok}].id
		return tok
	}
	if used {
		// Locks, a day of done and a log are there.
		send()
		send("--ack")
		s.pipe(call{args: []string{"read", "--as", "bob"}}, "bob", []int{0}, all)
	}
	s.tokens = []token{send("--ack"), send(), send()}
	tok, text := write(100)
	s.lay("bob", tok, drop{name: "note.txt"})
	if err := os.WriteFile(filepath.Join(s.team(), "bob", "inbox", "note.txt"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.laid("bob", tok, true, true)
}

// look: what marks nothing works as ever.
func (s *scarce) look() {
	for _, args := range [][]string{{"ls", "--as", "bob", "--json"}, {"read", "--peek", "--as", "bob"}, {"show", s.last, "--as", "bob"}, {"ls", "--count", "--as", "bob"}, {"team"}, {"status", "bob"}, {"events", "bob"}, {"trace", s.last, "--as", "alice"}} {
		r := s.run(call{args: args})
		s.expect(r, 0)
		for i, t := range s.tokens {
			seen := strings.Contains(r.out, string(t))
			if !seen && (args[0] == "ls" && len(args) == 4 && args[3] == "--json" || args[0] == "read" || args[0] == "show" && i == 2) {
				s.t.Errorf("it does not show %s: %s", t, r)
			}
		}
	}
}

// write: what needs room fails and says so.
func (s *scarce) write() {
	tok, text := write(5000)
	s.begin(tok, "alice", "bob", "carol")
	s.retry = []string{"send", "bob,carol", "--as", "alice", "--json", "--id", newID(0), "--", text}
	for _, c := range []call{
		{args: s.retry},
		{args: []string{"reply", s.last, "--as", "bob", strings.Repeat("No room. ", 1000)}},
		{args: []string{"ack", s.last, "--as", "bob", "--text", strings.Repeat("No room. ", 1000)}},
		{args: []string{"send", "--batch", "--as", "alice"}, text: `{"to":"bob","body":"` + strings.Repeat("x", 5000) + `"}` + "\n"},
		{args: []string{"event", "note", "text=" + strings.Repeat("No room. ", 1000), "--as", "bob"}},
		{args: []string{"event", "--stdin", "--as", "bob"}, text: `{"kind":"note","text":"` + strings.Repeat("x", 5000) + `"}` + "\n"},
		{args: []string{"team", "add", "dora", "emil", "fritz", "gustav", "hanna", "ida", "jonas"}},
	} {
		r := s.run(c)
		if c.args[1] == "add" && r.code == 0 && s.disk.name != "tmpfs read-only" {
			continue // directories take no room in memory
		}
		if c.args[0] == "event" && r.code == 0 && s.disk.name == "tmpfs without inodes" {
			continue // a log that is there takes none
		}
		s.expect(r, 1)
		if !strings.Contains(r.err+r.out, "no space") && !strings.Contains(r.err+r.out, "read-only") {
			s.t.Errorf("it does not say why: %s", r)
		}
	}
	if now := take(s.t, s.team()); len(now.messages) > len(s.posts) {
		s.t.Errorf("%d messages where %d were sent", len(now.messages), len(s.posts))
	}
}

// call: a hook exits with 0 and prints nothing, or one whole document.
func (s *scarce) call() {
	c := s.newSession("bob")
	c.failing = true
	c.tell(c.starts("startup"))
	c.tell(c.prompts())
	c.tool()
	c.tell(c.stops(false))
	c.tell(c.ends("other"))
}

// read shows, and says so where it could not mark.
func (s *scarce) read() {
	r := s.run(call{args: []string{"read", "--as", "bob"}})
	s.saw("bob", r.out)
	s.expect(r, 0)
	c := take(s.t, s.team())
	for _, t := range s.tokens {
		if s.got[key{"bob", t}] == 0 {
			s.t.Errorf("read does not show %s: %s", t, r)
		}
		id := s.posts[key{"bob", t}].id
		if c.lies("bob", id, "new") == nil && !strings.Contains(r.err, "not marked") {
			s.t.Errorf("%s was shown and is unread, which nobody says: %s", id, r)
		}
	}
}

// recover: with room again, everything is as it should be.
func (s *scarce) recover() {
	t, _ := tokenOf(s.retry[len(s.retry)-1])
	s.stored(t, s.must(s.retry...))
	s.must("ack", s.last, "--as", "bob")
	s.must("team", "add", "dora")
	c := s.newSession("bob")
	c.tell(c.prompts())
	c.tell(c.stops(true))
	s.judgeStatus(s.t, "bob", "alice")
	for range 2 {
		s.pipe(call{args: []string{"read", "--full", "--as", "bob"}}, "bob", []int{0}, all)
	}
	s.excuse("bob", s.last)
	s.judge(s.t, s.settle())
}
