package main

import (
	"os/exec"
	"syscall"
)

// alone gives a command a process group of its own, and has it ended should this
// process be killed: who holds no lease any more shall not go on working.
func alone(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
