//go:build linux || darwin

package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/process"
)

func TestMain(m *testing.M) {
	if run := os.Getenv("STUCK_RUN"); run != "" {
		stuck(run)
	}
	os.Exit(m.Run())
}

// stuck starts a program of a run, and never ends by itself.
func stuck(run string) {
	stuckAfter = 10 * time.Millisecond
	ctx, _ := output.UntilSignal(context.Background())
	endIfStuck(ctx, run)
	c := exec.Command("sleep", "1000")
	c.Env = append(os.Environ(), "ATM_RUN="+run)
	if err := c.Start(); err != nil {
		panic(err)
	}
	fmt.Println("started")
	select {}
}

// A runner that is stuck when it is told to end does end, with what it started.
func TestEndIfStuck(t *testing.T) {
	t.Parallel()
	run := fmt.Sprint("stuck-", os.Getpid())
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "STUCK_RUN="+run)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); process.EndLeftovers(run) })
	out.Read(make([]byte, 100))
	left, err := process.Leftovers(run)
	for until := time.Now().Add(time.Minute); len(left) != 1 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		left, err = process.Leftovers(run) // the mark of a process is not seen while the kernel is starting it
	}
	if len(left) != 1 {
		t.Fatalf("running: %v, %v", left, err)
	}
	c.Process.Signal(syscall.SIGTERM)
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != failure.ExitFailed {
		t.Errorf("it exited with %d", code)
	}
	if left, err := process.Leftovers(run); len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
