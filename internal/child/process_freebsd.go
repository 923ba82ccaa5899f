package child

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

const iutf8 = 0x4000 // IUTF8 in sys/_termios.h since FreeBSD 14; before, no bit at all

// Places in struct kinfo_proc of sys/user.h on a 64-bit machine. The structure's
// first word is its size, and is checked.
const (
	kinfoSize  = 1088
	kinfoPID   = 72
	kinfoPPID  = 76
	kinfoPGID  = 80
	kinfoSID   = 88
	kinfoStart = 336 // a timeval
	kinfoStat  = 388
	kinfoComm  = 447 // 20 bytes
)

// census reads the process table.
func census() ([]entry, error) {
	table, err := unix.SysctlRaw("kern.proc.proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	var all []entry
	for ; len(table) >= kinfoSize; table = table[kinfoSize:] {
		e, ok := entryOf(table)
		if !ok {
			return nil, fmt.Errorf("read the process table: its lines are %d bytes long, not %d", binary.NativeEndian.Uint32(table), kinfoSize)
		}
		all = append(all, e)
	}
	return all, nil
}

// look reads one process's line.
func look(pid int) (entry, bool) {
	line, err := unix.SysctlRaw("kern.proc.pid", pid)
	if err != nil || len(line) < kinfoSize {
		return entry{}, false
	}
	e, ok := entryOf(line)
	return e, ok && e.pid == pid
}

func entryOf(line []byte) (entry, bool) {
	const zombie = 5 // SZOMB in sys/proc.h
	number := func(at int) int { return int(int32(binary.NativeEndian.Uint32(line[at:]))) }
	long := func(at int) uint64 { return binary.NativeEndian.Uint64(line[at:]) }
	if number(0) != kinfoSize {
		return entry{}, false
	}
	return entry{
		pid: number(kinfoPID), ppid: number(kinfoPPID), pgid: number(kinfoPGID), sid: number(kinfoSID),
		start:  long(kinfoStart)*1e6 + long(kinfoStart+8),
		zombie: line[kinfoStat] == zombie,
		name:   unix.ByteSliceToString(line[kinfoComm : kinfoComm+20]),
	}, true
}

// carries says whether a process's environment holds the assignment.
func carries(pid int, assignment string) bool {
	env, err := unix.SysctlRaw("kern.proc.env", pid)
	return err == nil && holdsLine(env, assignment)
}

func cmdline(pid int) string {
	text, _ := unix.SysctlRaw("kern.proc.args", pid)
	return joinArguments(text)
}
