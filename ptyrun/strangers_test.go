//go:build linux || darwin

package ptyrun_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/ptyrun"
)

// An agent that ends takes no other child of its process with it, not even one in a session of its own, and leaves it to
// be waited for.
func TestEndSparesStrangers(t *testing.T) {
	inSession := func(argv ...string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	running, ended := inSession("sleep", "1000"), inSession("sh", "-c", "exit 7")
	agent, err := ptyrun.Start(context.Background(), ptyrun.Options{Command: []string{"sh", "-c", "setsid true; true"}})
	if err != nil {
		t.Fatal(err)
	}
	agent.Wait()
	if err := agent.Close(); err != nil {
		t.Error(err)
	}
	if err := ended.Wait(); fmt.Sprint(err) != "exit status 7" {
		t.Errorf("the child that had ended: %v", err)
	}
	running.Process.Kill()
	if err := running.Wait(); fmt.Sprint(err) != "signal: killed" {
		t.Errorf("the other child was ended: %v", err)
	}
}
