//go:build unix

package agent

import (
	"os/exec"
	"syscall"
)

const resized = syscall.SIGWINCH

// detach gives a command a session of its own: it outlives this terminal and this process.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
