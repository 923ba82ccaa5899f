package lockfile

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder looks in /proc/locks for a process that holds a lock on a file. A line:
//
//	1: FLOCK  ADVISORY  WRITE 4242 fd:01:131074 0 EOF
//
// major and minor device in hex, then the inode. A process that waits has "->" in
// the second field. On btrfs and overlays the device is not the one that stat gives;
// there the process must have the file open.
func holder(file fs.FileInfo) (pid int, command string) {
	at := file.Sys().(*syscall.Stat_t)
	device := fmt.Sprintf("%02x:%02x", unix.Major(uint64(at.Dev)), unix.Minor(uint64(at.Dev)))
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
		dev, ok := strings.CutSuffix(w[5], ":"+strconv.FormatUint(at.Ino, 10))
		if !ok || dev != device && !hasOpen(w[4], file) {
			continue
		}
		// The lock of a process that ended may live on in a child's file.
		comm, err := os.ReadFile("/proc/" + w[4] + "/comm")
		if n, e := strconv.Atoi(w[4]); err == nil && e == nil && n > 0 {
			return n, strings.TrimSpace(string(comm))
		}
	}
	return 0, ""
}

func hasOpen(pid string, file fs.FileInfo) bool {
	open, _ := filepath.Glob("/proc/" + pid + "/fd/*")
	for _, fd := range open {
		if info, err := os.Stat(fd); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}
