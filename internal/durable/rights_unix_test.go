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

// Rights depend neither on the umask nor on the directory: 0700 and 0600.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		for _, mode := range []fs.FileMode{0o700, 0o755, 0o770, 0o777} {
			top := t.TempDir()
			must(t, os.Chmod(top, mode))
			for name, info := range entries(t, top, umask) {
				want := fs.FileMode(0o600)
				if info.IsDir() {
					want = 0o700
				}
				if info.Mode().Perm() != want {
					t.Errorf("umask %03o, in a directory %03o: %s is %03o, want %03o", umask, mode, name, info.Mode().Perm(), want)
				}
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

// Root of a container cannot give a file to an owner that the container does not know. Then nothing is made, which that
// owner could not read.
func TestOwnerInContainer(t *testing.T) {
	if dir := os.Getenv("ATM_SHARED"); dir != "" {
		r, err := Open(dir)
		must(t, err)
		if r.Create("x", nil) == nil || r.Mkdir("d") == nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Geteuid() != 0 || exec.Command("unshare", "--map-root-user", "true").Run() != nil {
		t.Skip("needs root and user namespaces")
	}
	dir := t.TempDir()
	must(t, errors.Join(os.Chown(dir, 12345, 0), os.Chmod(dir, 0o770)))
	c := exec.Command("unshare", "--map-root-user", os.Args[0], "-test.run=^TestOwnerInContainer$")
	c.Env = append(os.Environ(), "ATM_SHARED="+dir)
	err := c.Run()
	if made, _ := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Error(err, made)
	}
}

// A maker killed before it gave the rights: the next to open for writing does.
func TestRightsAreMended(t *testing.T) {
	r := open(t, nil)
	write(t, r, "log", "")
	must(t, os.Chmod(r.Join("log"), 0o644))
	f, err := r.OpenFile("log", os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	must(t, err)
	f.Close()
	if info, _ := r.Lstat("log"); info.Mode().Perm() != 0o600 {
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
