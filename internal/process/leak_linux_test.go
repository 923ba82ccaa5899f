package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An orphan that exits while the program runs is reaped, and other code's children are not.
func TestAdoptedAreReaped(t *testing.T) {
	other := exec.Command("sh", "-c", "exit 9")
	must(t, other.Start())
	s := shell(t, `for i in 1 2 3 4 5; do (setsid sh -c 'echo orphan $$' &); done; echo ready; read x`)
	s.sees("ready")
	eventually(t, func() bool { return strings.Count(s.text(), "orphan") == 5 && zombies(t) <= 1 },
		func() string { return fmt.Sprintf("the orphans' end; zombies: %d", zombies(t)) })
	err := other.Wait()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 9 {
		t.Errorf("the other child ended with %v", err)
	}
}

// Nothing polls: an idle program costs no processor time.
func TestIdleCostsNothing(t *testing.T) {
	s := shell(t, "echo ready; exec sleep 1000")
	s.sees("ready")
	used := func() time.Duration {
		var r unix.Rusage
		must(t, unix.Getrusage(unix.RUSAGE_SELF, &r))
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	// This process has other things to do now and then; polling would show all the time.
	eventually(t, func() bool {
		before := used()
		time.Sleep(300 * time.Millisecond)
		return used()-before <= 30*time.Millisecond
	}, func() string { return "300 ms without 30 ms of processor time" })
}

func TestLookAtOddNames(t *testing.T) {
	nap := nap()
	odd := t.TempDir() + "/a ) R (b"
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	must(t, os.Symlink(sleep, odd))
	c, err := Start(Command{Argv: []string{odd, nap}, Cols: 80, Rows: 24})
	must(t, err)
	defer c.Stop(t.Context(), grace)
	go io.Copy(io.Discard, c)
	eventually(t, func() bool { return nappers(t, nap) == 1 }, func() string { return "sleep" })
	if p, ok := readInfo(c.PID()); !ok || p.ppid != os.Getpid() || p.sid != c.PID() || p.Name != "a ) R (b" {
		t.Errorf("its line: %+v, %v", p, ok)
	}
}

// The program inherits its terminal and no other file of ours.
func TestNoDescriptorIsInherited(t *testing.T) {
	shell(t, "exec sleep 1000") // another terminal is open
	s := shell(t, "ls -l /proc/self/fd")
	s.ends(Exit{})
	<-s.eof
	if n := strings.Count(s.text(), " -> "); n != 4 { // with the directory itself
		t.Errorf("it has %s", s.text())
	}
}

// In a PID namespace with the /proc of another, the parent is found there, and no program is started.
func TestForeignProcessTable(t *testing.T) {
	c := exec.Command("unshare", "--map-root-user", "--pid", "--fork", os.Args[0])
	c.Env = append(os.Environ(), "ATM_PROCESS_TEST=sandbox")
	out, err := c.Output()
	if err != nil {
		t.Skip("no PID namespace:", err)
	}
	if want := fmt.Sprintf("%d run a program: %v", c.Process.Pid, ErrNoTable); string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
