package child

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

const iutf8 = unix.IUTF8

// census reads the process table.
func census() ([]entry, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	all := make([]entry, 0, len(table))
	for i := range table {
		all = append(all, entryOf(&table[i]))
	}
	return all, nil
}

// look reads one process's line.
func look(pid int) (entry, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return entry{}, false
	}
	return entryOf(k), true
}

func entryOf(k *unix.KinfoProc) entry {
	const zombie = 5 // SZOMB in sys/proc.h
	sid, err := unix.Getsid(int(k.Proc.P_pid))
	if err != nil {
		sid = -1
	}
	return entry{
		pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid), pgid: int(k.Eproc.Pgid), sid: sid,
		start:  uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		zombie: k.Proc.P_stat == zombie,
		name:   unix.ByteSliceToString(k.Proc.P_comm[:]),
	}
}

// block is a process's arguments and what follows them, the environment, as
// kern.procargs2 has it: the count of arguments, the program's path, NULs, then
// the lines.
func block(pid int) (count int, lines []byte) {
	text, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(text) < 4 {
		return 0, nil
	}
	count = int(binary.LittleEndian.Uint32(text))
	_, lines, _ = bytes.Cut(text[4:], []byte{0})
	return count, bytes.TrimLeft(lines, "\x00")
}

// carries says whether a process's environment holds the assignment.
func carries(pid int, assignment string) bool {
	count, lines := block(pid)
	for ; count > 0 && len(lines) > 0; count-- {
		_, lines, _ = bytes.Cut(lines, []byte{0})
	}
	return holdsLine(lines, assignment)
}

func cmdline(pid int) string {
	count, lines := block(pid)
	n := 0
	for ; count > 0 && n < len(lines); count-- {
		if i := bytes.IndexByte(lines[n:], 0); i >= 0 {
			n += i + 1
		} else {
			n = len(lines)
		}
	}
	return joinArguments(lines[:n])
}
