//go:build !unix

package agent

import "syscall"

// resized is never sent here: package control refuses to run agents in terminals on this system.
const resized = syscall.Signal(0x1c)
