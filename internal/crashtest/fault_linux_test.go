package crashtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A fault is a system call that fails, or at which the process is killed: the
// kth of every thread, since that is how strace counts.
type fault struct {
	call string // openat
	how  string // error=EIO, signal=KILL
	k    int
}

func (f fault) String() string { return fmt.Sprintf("%s:%s:when=%d", f.call, f.how, f.k) }

// faults are what may fail, and how: what the kernel answers there when a disk
// is full, broken, read-only, or over its quota.
var faults = []struct {
	call string
	hows []string
}{
	{"openat", []string{"error=EIO", "error=ENOSPC", "error=EROFS"}},
	{"openat2", []string{"error=EIO", "error=ENFILE"}},
	{"newfstatat", []string{"error=EIO"}},
	{"getdents64", []string{"error=EIO"}},
	{"read", []string{"error=EIO"}},
	{"pread64", []string{"error=EIO"}},
	{"write", []string{"error=ENOSPC", "error=EIO", "error=EDQUOT"}},
	{"fsync", []string{"error=EIO", "error=ENOSPC", "error=EDQUOT"}},
	{"linkat", []string{"error=ENOSPC", "error=EIO", "error=EROFS", "error=EDQUOT"}},
	{"renameat2", []string{"error=ENOSPC", "error=EIO", "error=EROFS", "error=EDQUOT"}},
	{"renameat", []string{"error=ENOSPC", "error=EIO", "error=EROFS"}},
	{"mkdirat", []string{"error=ENOSPC", "error=EIO", "error=EROFS", "error=EDQUOT"}},
	{"unlinkat", []string{"error=EIO", "error=EROFS"}},
	{"ftruncate", []string{"error=EIO", "error=ENOSPC"}},
	{"flock", []string{"error=EIO", "error=ENOLCK"}},
}

// strace looks for the tool, and whether it may be used here.
func strace(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("there is no strace")
	}
	if out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-qq", "-o", filepath.Join(t.TempDir(), "log"), "-e", "inject=fsync:error=EIO", "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v: %s", err, out)
	}
}

// under is the command that makes a process run into the fault.
func (f fault) under(log string) []string {
	line := []string{"strace", "-f", "-y", "-q", "-o", log, "-e", "trace=" + f.call, "-e", "inject=" + f.String()}
	if !strings.HasPrefix(f.how, "signal=") {
		line = append(line, "--seccomp-bpf") // half the time; the first thread then gets no signals
	}
	return line
}

var syncedFile = regexp.MustCompile(`fsync\((\d+<[^>]*>)`)

// read reads strace's log.
func (f fault) read(log string, r result) (s struck, err error) {
	file, err := os.Open(log)
	if err != nil {
		return s, err
	}
	defer file.Close()
	s.fired = r.code == -1 && strings.HasPrefix(f.how, "signal=")
	failed := map[string]bool{}
	begun := map[string]string{} // calls that strace tells in two lines, by thread
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		thread, call, _ := strings.Cut(line, " ")
		if strings.HasSuffix(line, "<unfinished ...>") {
			begun[thread] = strings.TrimSuffix(line, "<unfinished ...>")
			continue
		}
		if _, end, resumed := strings.Cut(call, " resumed>"); resumed && begun[thread] != "" {
			line = begun[thread] + end
			delete(begun, thread)
		}
		if m := syncedFile.FindStringSubmatch(line); m != nil {
			if failed[m[1]] && !strings.Contains(line, "(INJECTED)") {
				s.resync = m[1]
			}
			failed[m[1]] = failed[m[1]] || strings.Contains(line, "(INJECTED)")
		}
		if strings.Contains(line, "(INJECTED)") {
			s.fired = true
			s.calls = append(s.calls, line)
			s.mute = s.mute || strings.Contains(line, " write(2<")
			if !strings.Contains(line, "<anon_inode:") && !strings.Contains(line, "/proc/") && !strings.Contains(line, "/sys/") {
				s.ours = true
			}
		}
	}
	return s, nil
}
