//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// entries makes an entry of every kind in d and returns their modes and
// owners.
func entries(t *testing.T, d *Dir) map[string]fs.FileInfo {
	t.Helper()
	s, err := d.Make("dir", "below")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	f, err := d.Append("appended")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := errors.Join(publish(d, "published", "x"), d.Replace("replaced", nil, false)); err != nil {
		t.Fatal(err)
	}
	out := map[string]fs.FileInfo{}
	for _, n := range []string{"dir", "dir/below", "appended", "published", "replaced"} {
		info, err := os.Lstat(filepath.Join(d.Path(), n))
		if err != nil {
			t.Fatal(err)
		}
		out[n] = info
	}
	return out
}

// Rights do not depend on the umask: 0700 and 0600, and the group's bits where
// the directory has them.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		for mode, want := range map[fs.FileMode][2]fs.FileMode{
			0o700: {0o700, 0o600}, 0o755: {0o750, 0o640}, 0o770: {0o770, 0o660}, 0o777: {0o770, 0o660}, 0o750: {0o750, 0o640},
		} {
			top := t.TempDir()
			if err := os.Chmod(top, mode); err != nil {
				t.Fatal(err)
			}
			d, err := Open(top, nil)
			if err != nil {
				t.Fatal(err)
			}
			old := syscall.Umask(umask)
			got := entries(t, d)
			syscall.Umask(old)
			d.Close()
			for n, info := range got {
				w := want[1]
				if info.IsDir() {
					w = want[0]
				}
				if info.Mode().Perm() != w {
					t.Errorf("umask %03o, in a directory %03o: %s is %03o, want %03o", umask, mode, n, info.Mode().Perm(), w)
				}
			}
		}
	}
}

// A directory's group is inherited, and so is the bit that makes what others
// put there inherit it.
func TestGroup(t *testing.T) {
	groups, _ := os.Getgroups()
	gid := -1
	for _, g := range append(groups, 12345) {
		if g != os.Getegid() && (os.Geteuid() == 0 || g != 12345) {
			gid = g
		}
	}
	if gid < 0 {
		t.Skip("this user is in one group only")
	}
	for _, bit := range []fs.FileMode{0, fs.ModeSetgid} {
		top := t.TempDir()
		if err := errors.Join(os.Chown(top, -1, gid), os.Chmod(top, 0o770|bit)); err != nil {
			t.Fatal(err)
		}
		d, err := Open(top, nil)
		if err != nil {
			t.Fatal(err)
		}
		old := syscall.Umask(0o077)
		got := entries(t, d)
		syscall.Umask(old)
		d.Close()
		for n, info := range got {
			if g := int(info.Sys().(*syscall.Stat_t).Gid); g != gid {
				t.Errorf("%s has the group %d, want %d", n, g, gid)
			}
			if info.IsDir() && info.Mode()&fs.ModeSetgid != bit {
				t.Errorf("%s is %v, made in a directory with %v", n, info.Mode(), bit)
			}
		}
	}
}

// What root makes belongs to the directory's owner.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	top := t.TempDir()
	if err := os.Chown(top, 12345, 12346); err != nil {
		t.Fatal(err)
	}
	d, err := Open(top, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for n, info := range entries(t, d) {
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 12346 {
			t.Errorf("%s belongs to %d:%d", n, st.Uid, st.Gid)
		}
	}
}

func TestSameOwner(t *testing.T) {
	a, b := open(t, nil), open(t, nil)
	if !a.SameOwner(b) {
		t.Error("two alike directories differ")
	}
	top := t.TempDir()
	os.Chmod(top, 0o770)
	c, err := Open(top, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if a.SameOwner(c) {
		t.Error("a shared directory and one of mine are alike")
	}
	if !a.Readable() {
		t.Error("I cannot read what I write")
	}
}
