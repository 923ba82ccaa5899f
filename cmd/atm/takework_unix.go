//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// tellAll sends a signal to a command and what it started.
func tellAll(c *exec.Cmd, s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		syscall.Kill(-c.Process.Pid, n)
	}
}
