package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// closeFilesOnExec keeps our open files from the next program, also inherited ones, such as a pipe whose reader would
// wait for ever. Linux before 5.11 cannot.
func closeFilesOnExec() { unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) }

// readTable reads the process table, the oldest first. It leaves out processes that end meanwhile.
func readTable() ([]Info, error) {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	var all []Info
	for _, d := range dir {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue // not a process
		}
		if p, ok := readInfo(pid); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, isOlder)
	return all, nil
}

// readInfo reads about a process: see proc_pid_stat(5).
func readInfo(pid int) (Info, bool) { return readInfoOf(strconv.Itoa(pid)) }

// readInfoOf is readInfo for the name of a process's directory.
func readInfoOf(name string) (Info, bool) {
	start, f := readFields(name)
	open := bytes.IndexByte(start, '(')
	if open < 0 || len(f) < 20 {
		return Info{}, false
	}
	p := Info{Name: string(start[open+1:]), isZombie: f[0] == "Z" || f[0] == "X"}
	p.PID, _ = strconv.Atoi(string(bytes.TrimSpace(start[:open])))
	p.ppid, _ = strconv.Atoi(f[1])
	p.pgid, _ = strconv.Atoi(f[2])
	p.sid, _ = strconv.Atoi(f[3])
	p.Start, _ = strconv.ParseUint(f[19], 10, 64)
	return p, true
}

// readFields returns what the stat of a process has up to the end of its name, which may contain blanks and parentheses, and
// the fields after it.
func readFields(name string) (start []byte, fields []string) {
	text := readStat(name)
	end := bytes.LastIndexByte(text, ')')
	return text[:max(end, 0)], strings.Fields(string(text[end+1:]))
}

// readStat reads the stat of a process, which is there whole at the first read; nil if there is none. A process looks at all its
// ancestors, so this makes no more system calls than it must.
func readStat(name string) []byte {
	fd, err := unix.Open("/proc/"+name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	text := make([]byte, 4<<10)
	n, _ := unix.Read(fd, text)
	return text[:max(n, 0)]
}

// Terminal reports whether a process has a terminal, by its path, as its controlling one, and whether its group is the one
// that gets the keys there.
func Terminal(pid int, tty string) (has, isInFront bool) {
	var st unix.Stat_t
	_, f := readFields(strconv.Itoa(pid))
	if len(f) < 6 || unix.Stat(tty, &st) != nil {
		return false, false
	}
	n, _ := strconv.ParseUint(f[4], 10, 64)
	has = n != 0 && unix.Mkdev(uint32(n>>8&0xfff), uint32(n&0xff|n>>12&0xfff00)) == st.Rdev
	return has, has && f[2] == f[5]
}

// ignoresTerm reports whether a process is known to ignore SIGTERM: see proc_pid_status(5).
func ignoresTerm(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "\nSigIgn:\t")
	line, _, _ := strings.Cut(after, "\n")
	ignored, _ := strconv.ParseUint(line, 16, 64)
	return ignored&(1<<(unix.SIGTERM-1)) != 0
}

// arguments returns lines that end with NUL.
func arguments(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}

// environment returns lines that end with NUL. While a process begins a program there are none yet, so they are not certain.
func environment(pid int) (lines string, isCertain bool) {
	lines, err := readEnvironment(pid)
	return lines, lines != "" || err != nil || hasNoEnvironment(pid)
}

// readEnvironment takes one read, since the file ends when the process begins another program.
func readEnvironment(pid int) (string, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", err
	}
	defer f.Close()
	all := make([]byte, 64<<10)
	n, _ := f.Read(all)
	if n < len(all) {
		return string(all[:n]), nil
	}
	rest, _ := io.ReadAll(f)
	return string(append(all, rest...)), nil
}

// hasNoEnvironment reports whether a process is known to have none: it has ended, or has no memory, like a zombie and a part of
// the kernel, or its environment ends where it starts. The end has its final place before the code has an address.
func hasNoEnvironment(pid int) bool {
	_, f := readFields(strconv.Itoa(pid))
	if len(f) < 49 {
		return true
	}
	size, code, start, end := f[20], f[23], f[47], f[48]
	return size == "0" || code != "0" && start == end
}

// Dir returns the directory that a process is in, as far as it can be seen.
func Dir(pid int) string {
	dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return dir
}

// self returns this process's PID in the process table; 0 if there is none.
func self() int {
	link, _ := os.Readlink("/proc/self")
	pid, _ := strconv.Atoi(link)
	return pid
}

// Parent returns the PID of this process's parent in the process table, which in some sandboxes is the host's.
func Parent() int {
	p, _ := readInfoOf("self")
	return p.ppid
}

// CheckTable returns ErrNoTable unless the PIDs in the process table, in which Stop finds the descendants, are those that
// signals go to.
func CheckTable() error {
	if self() != os.Getpid() {
		return ErrNoTable
	}
	return nil
}

var reaper sync.Once

// Subreaper makes this process, for its life, the parent of every orphaned descendant, which it reaps, and of which Stop
// takes those in other sessions for its program's. So it is for a process that does nothing but run programs: whatever it
// starts in a session of its own must be started by this package. Call it before the first Start. It returns CheckTable's
// error.
func Subreaper() error {
	if err := CheckTable(); err != nil {
		return fmt.Errorf("run a program: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphaned descendants: %w", err)
	}
	adoptsOrphans.Store(true)
	reaper.Do(func() {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, unix.SIGCHLD)
		go func() {
			for range ended {
				reapOrphans()
			}
		}()
	})
	return nil
}

// reapOrphans reaps the orphans that have ended, by PID: waiting for any child would steal the exit status of
// other code's children.
func reapOrphans() {
	runningLock.Lock()
	defer runningLock.Unlock()
	all, _ := readTable()
	for _, p := range all {
		if p.isZombie && isOrphan(p) && running[p.PID] == nil {
			unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
		}
	}
}
