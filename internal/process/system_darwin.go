package process

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// closeFilesOnExec does nothing: the files opened here are O_CLOEXEC.
func closeFilesOnExec() {}

func readTable() ([]Info, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	var all []Info
	for i := range table {
		all = append(all, infoOf(&table[i]))
	}
	slices.SortFunc(all, isOlder)
	return all, nil
}

func readInfo(pid int) (Info, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return Info{}, false
	}
	return infoOf(k), true
}

func infoOf(k *unix.KinfoProc) Info {
	const zombie = 5                         // SZOMB in sys/proc.h
	sid, _ := unix.Getsid(int(k.Proc.P_pid)) // -1 if it has ended
	return Info{
		PID:   int(k.Proc.P_pid),
		Name:  unix.ByteSliceToString(k.Proc.P_comm[:]),
		Start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		ppid:  int(k.Eproc.Ppid), pgid: int(k.Eproc.Pgid), sid: sid,
		isZombie: k.Proc.P_stat == zombie,
	}
}

// Terminal reports whether a process has a terminal, by its path, as its controlling one, and whether its group is the one
// that gets the keys there.
func Terminal(pid int, tty string) (has, isInFront bool) {
	var st unix.Stat_t
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	has = err == nil && int(k.Proc.P_pid) == pid && unix.Stat(tty, &st) == nil && k.Eproc.Tdev == st.Rdev
	return has, has && k.Eproc.Pgid == k.Eproc.Tpgid
}

// ignoresTerm reports whether a process is known to ignore SIGTERM.
func ignoresTerm(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && k.Proc.P_sigignore&(1<<(unix.SIGTERM-1)) != 0
}

// environment returns lines that end with NUL, and so does arguments. The programs that come with macOS show none.
func environment(pid int) (lines string, isCertain bool) {
	_, lines = argumentsAndEnvironment(pid)
	return lines, true
}

func arguments(pid int) string {
	lines, _ := argumentsAndEnvironment(pid)
	return lines
}

// argumentsAndEnvironment reads kern.procargs2, which has the number of arguments, the program's path, NULs, the
// arguments, and the environment.
func argumentsAndEnvironment(pid int) (arguments, environment string) {
	text, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(text) < 4 {
		return "", ""
	}
	_, lines, _ := strings.Cut(string(text[4:]), "\x00")
	lines = strings.TrimLeft(lines, "\x00")
	environment = lines
	for n := binary.LittleEndian.Uint32(text); n > 0 && environment != ""; n-- {
		_, environment, _ = strings.Cut(environment, "\x00")
	}
	return strings.TrimSuffix(lines, environment), environment
}

// Dir returns the directory that a process was started in, as far as it can be seen.
func Dir(pid int) string { return Variables(Environment(pid))["PWD"] }

// Parent returns the PID of this process's parent.
func Parent() int { return os.Getppid() }

// CheckTable returns nil: the process table can be read.
func CheckTable() error { return nil }

// Subreaper does nothing: launchd adopts and reaps orphans, which are found by their session and mark.
func Subreaper() error { return nil }

func reapOrphans() {}
