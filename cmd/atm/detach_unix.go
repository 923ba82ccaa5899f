//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detached makes a command one that outlives this terminal and this process.
func detached(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
