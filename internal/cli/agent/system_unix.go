//go:build unix

package agent

import (
	"os/exec"
	"syscall"
)

const resized = syscall.SIGWINCH

// detach runs a command in a session of its own, so that it outlives this terminal and this process.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
