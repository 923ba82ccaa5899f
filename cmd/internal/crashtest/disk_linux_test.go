package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A volume is a file system in a file, which can lose its power: what is not durable at that moment
// is gone.
type volume struct {
	t           *testing.T
	kind        string
	image, path string
	mounted     bool
}

// newVolume makes a file system, or skips the test where that is not possible.
func newVolume(t *testing.T, kind string, options ...string) *volume {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	v := &volume{t: t, kind: kind, image: filepath.Join(dir, "image"), path: filepath.Join(dir, "disk")}
	if err := os.Mkdir(v.path, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.unmount)
	if kind == "tmpfs" {
		return v
	}
	if err := os.WriteFile(v.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(v.image, 320<<20); err != nil { // xfs takes no less than 300 MiB
		t.Fatal(err)
	}
	// It comes with e2fsprogs or xfsprogs.
	if out, err := exec.Command("mkfs."+kind, append(append([]string{"-q"}, options...), v.image)...).CombinedOutput(); err != nil {
		t.Skipf("mkfs.%s: %v: %s", kind, err, out)
	}
	return v
}

func (v *volume) mount(options ...string) {
	v.t.Helper()
	args := []string{"-o", strings.Join(append(options, "loop"), ","), v.image, v.path}
	if v.kind == "tmpfs" {
		args = []string{"-t", "tmpfs", "-o", strings.Join(options, ","), "tmpfs", v.path}
	}
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		v.t.Skipf("mount %s: %v: %s", v.kind, err, out)
	}
	v.mounted = true
}

func (v *volume) unmount() {
	if !v.mounted {
		return
	}
	if out, err := exec.Command("umount", v.path).CombinedOutput(); err != nil {
		v.t.Errorf("umount: %v: %s", err, out)
		exec.Command("umount", "-l", v.path).Run()
	}
	v.mounted = false
}

// cut takes the power away: FS_IOC_SHUTDOWN, without writing the log out.
func (v *volume) cut() {
	v.t.Helper()
	f, err := os.Open(v.path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer f.Close()
	const shutdown, noLogFlush = 0x8004587d, 2
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noLogFlush); err != nil {
		v.t.Skipf("%s cannot be shut down: %v", v.kind, err)
	}
}

// A disk is a volume that really can be full, or read-only.
type disk struct {
	name, kind, options string
	lacks               string // bytes, inodes, leave
	*volume
}

var disks = []disk{
	{name: "tmpfs full", kind: "tmpfs", options: "size=4m", lacks: "bytes"},
	{name: "tmpfs without inodes", kind: "tmpfs", options: "nr_inodes=1000", lacks: "inodes"},
	{name: "tmpfs read-only", kind: "tmpfs", options: "size=4m", lacks: "leave"},
	{name: "ext4 full", kind: "ext4", options: "rw", lacks: "bytes"},
	{name: "ext4 read-only", kind: "ext4", options: "rw", lacks: "leave"},
}

// exhaust takes what the disk lacks, to the last of it.
func (d *disk) exhaust() {
	switch d.lacks {
	case "leave":
		d.remount("ro")
	case "inodes":
		for n := 0; ; n++ {
			f, err := os.Create(filepath.Join(d.path, fmt.Sprint("filler", n)))
			if err != nil {
				return
			}
			f.Close()
		}
	case "bytes":
		f, err := os.Create(filepath.Join(d.path, "filler"))
		if err != nil {
			d.t.Fatal(err)
		}
		defer f.Close()
		for size := 1 << 20; size > 0; {
			if _, err := f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
	}
}

func (d *disk) restore() {
	if d.lacks == "leave" {
		d.remount("rw")
	}
	fillers, _ := filepath.Glob(filepath.Join(d.path, "filler*"))
	for _, f := range fillers {
		if err := os.Remove(f); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *disk) remount(how string) {
	if out, err := exec.Command("mount", "-o", "remount,"+how, d.path).CombinedOutput(); err != nil {
		d.t.Fatalf("remount %s: %v: %s", how, err, out)
	}
}

// On a disk that is full or read-only, looking works, reading shows and says that it could not mark,
// sending fails, says why and loses nothing; and with room again, everything works. With locks from
// before, and without.
func TestFaultsDisk(t *testing.T) {
	needFaults(t)
	p := newTemplate(t)
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			d.volume = newVolume(t, d.kind)
			d.mount(d.options)
			for i, a := range actions {
				p.attempt(t, a.name, fault{disk: &d}, filepath.Join(d.path, fmt.Sprint(i)))
			}
		})
	}
}

// judgeExhausted judges what an action did, and what else works, where the disk has nothing to give.
func (p *template) judgeExhausted(w *world, name string, r result) {
	looks := []string{"ls", "events", "status", "pending"}
	if r.code != 0 && (slices.Contains(looks, name) || name == "read" && !strings.Contains(r.err, "not marked")) {
		w.wrong("looking needs room: %s", r)
	}
	if r.code != 0 && (r.code != 1 || !strings.Contains(r.err+r.out, "no space") && !strings.Contains(r.err+r.out, "read-only")) {
		w.wrong("it does not say why: %s", r)
	}
	if name != "send" {
		return
	}
	for _, args := range [][]string{
		{"ls", "--as", "bob"}, {"read", "--peek", "--as", "bob"}, {"show", p.unread, "--as", "bob"}, {"ls", "--count", "--as", "bob"},
		{"team"}, {"status", "bob"}, {"events", "bob"}, {"trace", p.unread, "--as", "alice"},
	} {
		r := w.run(call{args: args})
		shows := args[0] != "ls" && args[0] != "read" && args[0] != "show" || args[1] == "--count"
		if r.code != 0 || !shows && !strings.Contains(r.out, p.unread[30:]) {
			w.wrong("looking needs room: %s", r)
		}
	}
}
