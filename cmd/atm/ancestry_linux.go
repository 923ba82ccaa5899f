package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// lineage is a process and those that started it, the nearest first.
func lineage(pid int) (pids []int) {
	for ; pid > 1 && len(pids) < deepest; pid = parentOf(pid) {
		pids = append(pids, pid)
	}
	return pids
}

// deepest bounds the way up.
const deepest = 64

// marked is what the nearest of a process and those that started it has in its
// environment that names a run. What drops its environment is still started by
// somebody.
func marked(pid int) (env map[string]string, ok bool) {
	for range deepest {
		if pid <= 1 {
			break
		}
		if env, ok := runOf(pid); ok {
			return env, true
		}
		pid = parentOf(pid)
	}
	return nil, false
}

// runOf is what a process was told about the run that it belongs to.
func runOf(pid int) (map[string]string, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, false
	}
	env := map[string]string{}
	for _, kv := range bytes.Split(data, []byte{0}) {
		if name, value, _ := bytes.Cut(kv, []byte{'='}); bytes.HasPrefix(name, []byte("ATM_")) && len(value) > 0 {
			env[string(name)] = string(value)
		}
	}
	return env, env["ATM_RUN"] != ""
}

// parentOf is who started a process, or took it over; 0: it is gone.
func parentOf(pid int) int {
	fields := statOf(pid)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// statOf is what the system says of a process, from its state on; nil: it is
// gone.
func statOf(pid int) [][]byte {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// pid (name) state ppid: the name may hold anything.
	return bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
}

// life is when a process began, in the system's ticks, and whether it lives. One
// that nobody has waited for yet does not.
func life(pid int) (born string, alive bool) {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return "", false
	}
	fields := statOf(pid)
	if len(fields) < 20 {
		return "", true // not ours to see
	}
	return string(fields[19]), fields[0][0] != 'Z' && fields[0][0] != 'X'
}
