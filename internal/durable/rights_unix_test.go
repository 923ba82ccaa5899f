//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// entries makes an entry of every kind under a umask and describes them.
func entries(t *testing.T, top string, umask int) map[string]fs.FileInfo {
	t.Helper()
	r, err := Open(top)
	must(t, err)
	defer r.Close()
	defer syscall.Umask(syscall.Umask(umask))
	f, err := r.OpenFile("appended", os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	must(t, err)
	f.Close()
	must(t, errors.Join(r.MkdirAll("dir/below"), r.Create("created", nil), r.Replace("replaced", nil, false)))
	out := map[string]fs.FileInfo{}
	for _, name := range []string{"dir", "dir/below", "appended", "created", "replaced"} {
		if out[name], err = r.Lstat(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Rights do not depend on the umask: 0700 and 0600, and the group's bits where the
// directory has them.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		for mode, want := range map[fs.FileMode][2]fs.FileMode{
			0o700: {0o700, 0o600}, 0o755: {0o750, 0o640}, 0o770: {0o770, 0o660}, 0o777: {0o770, 0o660}, 0o750: {0o750, 0o640},
		} {
			top := t.TempDir()
			must(t, os.Chmod(top, mode))
			for name, info := range entries(t, top, umask) {
				w := want[1]
				if info.IsDir() {
					w = want[0]
				}
				if info.Mode().Perm() != w {
					t.Errorf("umask %03o, in a directory %03o: %s is %03o, want %03o", umask, mode, name, info.Mode().Perm(), w)
				}
			}
		}
	}
}

// A directory's group is inherited, and so is the bit that makes what others put
// there inherit it.
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
		must(t, errors.Join(os.Chown(top, -1, gid), os.Chmod(top, 0o770|bit)))
		for name, info := range entries(t, top, 0o077) {
			if g := int(info.Sys().(*syscall.Stat_t).Gid); g != gid {
				t.Errorf("%s has the group %d, want %d", name, g, gid)
			}
			if info.IsDir() && info.Mode()&fs.ModeSetgid != bit {
				t.Errorf("%s is %v, made in a directory with %v", name, info.Mode(), bit)
			}
		}
	}
}

// What root makes belongs to the directory's owner; a file that has another name
// elsewhere is not given away.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	top := t.TempDir()
	must(t, os.Chown(top, 12345, 12346))
	for name, info := range entries(t, top, 0o077) {
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 12346 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
	r, err := Open(top)
	must(t, err)
	defer r.Close()
	secret := top + ".secret"
	defer os.Remove(secret)
	must(t, errors.Join(os.WriteFile(secret, nil, 0o600), os.Link(secret, r.Join("log"))))
	f, err := r.OpenFile("log", os.O_WRONLY|os.O_CREATE)
	must(t, err)
	f.Close()
	if info, _ := os.Stat(secret); info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Error("root's own file was given away")
	}
}

// Root of a container cannot give a file to the owner of a shared directory. The group reads it then; where the group
// may not, there is none.
func TestOwnerInContainer(t *testing.T) {
	if dir := os.Getenv("ATM_SHARED"); dir != "" {
		r, err := Open(dir)
		if err == nil {
			err = errors.Join(r.Create("x", nil), r.Mkdir("d"))
		}
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Geteuid() != 0 || exec.Command("unshare", "--map-root-user", "true").Run() != nil {
		t.Skip("needs root and user namespaces")
	}
	for mode, want := range map[fs.FileMode]fs.FileMode{0o770: 0o660, 0o730: 0} {
		dir := t.TempDir()
		must(t, errors.Join(os.Chown(dir, 12345, 0), os.Chmod(dir, fs.ModeSetgid|mode)))
		c := exec.Command("unshare", "--map-root-user", os.Args[0], "-test.run=^TestOwnerInContainer$")
		c.Env = append(os.Environ(), "ATM_SHARED="+dir)
		err := c.Run()
		var got fs.FileMode
		if info, err := os.Stat(dir + "/x"); err == nil {
			got = info.Mode()
		}
		made, _ := os.ReadDir(dir)
		if (err == nil) != (want != 0) || got != want || (len(made) == 2) != (want != 0) {
			t.Errorf("in a directory with %o: %v, %v, %v", mode, err, got, made)
		}
	}
}

// A maker killed before it gave the rights: the next to open for writing does.
func TestRightsAreMended(t *testing.T) {
	r := open(t, nil)
	os.Chmod(r.Path(), 0o770)
	write(t, r, "log", "")
	f, err := r.OpenFile("log", os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	must(t, err)
	f.Close()
	if info, _ := r.Lstat("log"); info.Mode().Perm() != 0o660 {
		t.Error(info.Mode())
	}
	if !r.OwnerCanRead(".") || r.Writable(".") != nil || r.Writable("none") == nil {
		t.Error("what I may do here")
	}
}

// A directory that may not be opened is named by its full path.
func TestSubMayNotBeOpened(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may open every directory")
	}
	r := open(t, nil)
	must(t, os.Mkdir(r.Join("team"), 0))
	if _, err := r.Sub("team"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), r.Join("team")+": ") {
		t.Error(err)
	}
}
