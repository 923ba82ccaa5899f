//go:build !unix

package app

import "os/exec"

// Detach does nothing: what it is for runs on Unix only.
func Detach(*exec.Cmd) {}
