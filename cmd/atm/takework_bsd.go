//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// alone gives a command a process group of its own.
func alone(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
