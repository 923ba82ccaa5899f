//go:build !unix

package agent

import (
	"os/exec"
	"syscall"
)

// Agents are not run in terminals on this system: control says so.
const resized = syscall.Signal(0x1c)

func detach(*exec.Cmd) {}
