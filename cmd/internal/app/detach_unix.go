//go:build unix

package app

import (
	"os/exec"
	"syscall"
)

// Detach has a command run in a session of its own, so that it outlives this terminal and this process.
func Detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
