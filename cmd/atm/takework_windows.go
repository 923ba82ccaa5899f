package main

import (
	"os"
	"os/exec"
)

func alone(*exec.Cmd) {}

// tellAll ends the command: there are no signals here.
func tellAll(c *exec.Cmd, _ os.Signal) { c.Process.Kill() }
