//go:build unix

package testteam

import (
	"os"
	"os/exec"
	"syscall"
)

// runAlone runs this program again, with its environment as it is now, in a session of its own.
func runAlone() {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Run(); cmd.ProcessState == nil {
		os.Exit(1)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}
