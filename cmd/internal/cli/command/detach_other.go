//go:build !unix

package command

import "os/exec"

// Detach does nothing: what it is for runs on Unix only.
func Detach(*exec.Cmd) {}
