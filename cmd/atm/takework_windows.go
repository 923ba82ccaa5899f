package main

import (
	"os"
	"os/exec"
)

func alone(*exec.Cmd) {}

// startGuard starts none: a guard could not see here what belongs to a command.
func startGuard() (*guard, error) { return nil, nil }

// tellAll ends the command: there are no signals here.
func tellAll(c *exec.Cmd, _ os.Signal) { c.Process.Kill() }
