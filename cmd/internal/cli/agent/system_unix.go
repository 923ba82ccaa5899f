//go:build unix

package agent

import "syscall"

const resized = syscall.SIGWINCH
