package crashtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A volume is a file system in a file, which can lose its power: what is not
// durable at that moment is gone.
type volume struct {
	t           testing.TB
	kind        string
	image, path string
	mounted     bool
}

// newVolume makes a file system, or skips the test where that is not possible.
func newVolume(t testing.TB, kind string, options ...string) *volume {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	mkfs, err := exec.LookPath("mkfs." + kind)
	if err != nil {
		t.Skipf("there is no mkfs.%s: it comes with %s", kind, map[string]string{"ext4": "e2fsprogs", "xfs": "xfsprogs"}[kind])
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("no loop devices: ", err)
	}
	dir := t.TempDir()
	v := &volume{t: t, kind: kind, image: filepath.Join(dir, "image"), path: filepath.Join(dir, "disk")}
	f, err := os.Create(v.image)
	if err == nil {
		err = f.Truncate(320 << 20) // xfs takes no less than 300 MiB
		f.Close()
	}
	if err == nil {
		err = os.Mkdir(v.path, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, append(append([]string{"-q"}, options...), v.image)...).CombinedOutput(); err != nil {
		t.Skipf("mkfs.%s: %v: %s", kind, err, out)
	}
	t.Cleanup(v.unmount)
	return v
}

func (v *volume) mount(options ...string) {
	v.t.Helper()
	out, err := exec.Command("mount", "-o", strings.Join(append([]string{"loop"}, options...), ","), v.image, v.path).CombinedOutput()
	if err != nil {
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
