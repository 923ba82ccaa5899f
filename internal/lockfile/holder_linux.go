package lockfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// holder looks in /proc/locks for a process that holds a lock on a file. A line:
//
//	1: FLOCK  ADVISORY  WRITE 4242 fd:01:131074 0 EOF
//
// The device in it is not the one that stat gives on btrfs and overlays, so the
// process must have the file open. The lock of a process that ended may live on in
// its child's file.
func holder(file fs.FileInfo) (pid int, command string) {
	inode := ":" + strconv.FormatUint(file.Sys().(*syscall.Stat_t).Ino, 10)
	locks, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(locks)) {
		w := strings.Fields(line)
		if len(w) < 6 || w[1] != "FLOCK" || !strings.HasSuffix(w[5], inode) || !hasOpen(w[4], file) {
			continue
		}
		comm, _ := os.ReadFile("/proc/" + w[4] + "/comm")
		if pid, err := strconv.Atoi(w[4]); err == nil && len(comm) > 0 {
			return pid, strings.TrimSpace(string(comm))
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
