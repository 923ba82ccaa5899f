package lockfile

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holder looks in /proc/locks for a process that holds the lock's file. A line:
//
//	1: FLOCK  ADVISORY  WRITE 4242 fd:01:131074 0 EOF
//
// major and minor device in hex, then the inode. Who waits has "->" in the
// second field. On btrfs and overlays the device is not the one that stat
// gives; there the process must have the file open under its path.
func (d *Dir) holder(name string) (pid int, command string) {
	at, err := d.look(name)
	if err != nil {
		return 0, ""
	}
	dev := uint64(at.Dev)
	device := fmt.Sprintf("%02x:%02x", unix.Major(dev), unix.Minor(dev))
	inode := strconv.FormatUint(at.Ino, 10)

	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) < 6 || w[1] != "FLOCK" {
			continue
		}
		dev, ok := strings.CutSuffix(w[5], ":"+inode)
		if !ok || dev != device && !hasOpen(w[4], d.filePath(name)) {
			continue
		}
		// The lock of a process that ended may live on in a child's file.
		comm, err := os.ReadFile("/proc/" + w[4] + "/comm")
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(w[4]); err == nil && n > 0 {
			return n, strings.TrimSpace(string(comm))
		}
	}
	return 0, ""
}

func hasOpen(pid, path string) bool {
	dir := "/proc/" + pid + "/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == path {
			return true
		}
	}
	return false
}
