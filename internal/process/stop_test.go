//go:build linux || darwin

package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const grace = 250 * time.Millisecond

// A nap is an argument of sleep that no other test uses, to be found in the process table.
var naps atomic.Int64

func nap() string { return fmt.Sprintf("1000.%d%04d", os.Getpid(), naps.Add(1)) }

// nappers counts the processes with that nap.
func nappers(t *testing.T, nap string) (n int) {
	for line := range strings.Lines(ps(t, "args=")) {
		if strings.Contains(line, nap) {
			n++
		}
	}
	return n
}

// A marked process that always begins another program is marked at each look.
func TestMarkOfWhatBeginsAProgram(t *testing.T) {
	findsAll(t)
	script := filepath.Join(t.TempDir(), "again")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700))
	mark := newMark(t)
	cmd := exec.Command(script)
	cmd.Env = append(os.Environ(), "ATM_RUN="+mark)
	must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for began, n := time.Now(), 0; time.Since(began) < time.Second; n++ {
		if !hasMark(cmd.Process.Pid, mark) {
			t.Fatalf("not at look %d, after %v", n, time.Since(began))
		}
	}
}

// Where the PIDs are a sandbox's own, a process may be in a session that is not in the process table.
func TestMarkOfWhatBeginsAProgramInASandbox(t *testing.T) {
	findsAll(t)
	sandbox := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc"}
	if err := exec.Command("unshare", append(sandbox, "true")...).Run(); err != nil {
		t.Skip("no sandbox here:", err)
	}
	out, err := exec.Command("unshare", append(sandbox, os.Args[0], "-test.run=^TestMarkOfWhatBeginsAProgram$", "-test.v")...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// What has no environment is known to have none: a program, a process that is gone, and a part of the kernel.
func TestMarkOfWhatHasNoEnvironment(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{}
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	defer cmd.Wait()
	defer in.Close()
	gone := exec.Command("true")
	must(t, gone.Run())
	pids := []int{cmd.Process.Pid, gone.Process.Pid}
	for _, p := range Named("kthreadd") {
		pids = append(pids, p.PID)
	}
	for _, pid := range pids {
		eventually(t, func() bool {
			lines, isCertain := environment(pid)
			return lines == "" && isCertain
		}, func() string { return fmt.Sprint("certainly no environment of ", pid) })
	}
}

// zombies counts our unreaped children.
func zombies(t *testing.T) (n int) {
	for line := range strings.Lines(ps(t, "ppid=", "-o", "stat=")) {
		f := strings.Fields(line)
		if f[0] == fmt.Sprint(os.Getpid()) && f[1][0] == 'Z' {
			n++
		}
	}
	return n
}

// ps gives each column an -o of its own: for macOS, a header without text ends the argument.
func ps(t *testing.T, columns ...string) string {
	t.Helper()
	out, err := exec.Command("ps", append([]string{"-A", "-ww", "-o"}, columns...)...).Output()
	must(t, err)
	return string(out)
}

// findsAll skips a test on macOS, which has no subreaper and hides the environment of the programs that come with it.
func findsAll(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not every process is found here")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
}

// What Stop must end, by how a program may keep it alive. NAP stands for a nap; each script must have its number of
// nappers before it is stopped.
var keepers = []struct {
	name    string
	script  string
	nappers int
	grace   time.Duration // long where the process ends in time even on a busy machine, short where all of it passes
}{
	{"a plain program", `exec sleep NAP`, 1, 5 * time.Second},
	{"a job in the background", `sleep NAP & exec sleep NAP`, 2, 5 * time.Second},
	{"nohup", `nohup sleep NAP >/dev/null & exec sleep NAP`, 2, 5 * time.Second},
	{"a session of its own", `setsid sleep NAP & exec sleep NAP`, 2, 5 * time.Second},
	{"forked twice, environment cleared", `(setsid env -i sleep NAP </dev/null >/dev/null 2>&1 &); exec sleep NAP`, 2, 5 * time.Second},
	{"sessions within sessions", `setsid sh -c 'setsid sh -c "setsid sleep NAP & sleep NAP; :"; :' & exec sleep NAP`, 5, 5 * time.Second},
	{"deaf to TERM", `trap '' TERM; sleep NAP; sleep NAP`, 2, 500 * time.Millisecond},
	{"deaf to TERM and HUP", `trap '' TERM HUP; sleep NAP; sleep NAP`, 2, 50 * time.Millisecond},
	{"deaf in a session of its own", `setsid sh -c 'trap "" TERM HUP INT; sleep NAP; sleep NAP' & exec sleep NAP`, 3, 5 * time.Second},
	{"stopped", `sleep NAP & kill -STOP $!; setsid sh -c 'kill -STOP $$; sleep NAP' & exec sleep NAP`, 3, 5 * time.Second},
	{"stopped itself", `sleep NAP & kill -STOP $$; wait`, 2, 5 * time.Second},
	{"stopped and deaf", `trap '' TERM HUP; sleep NAP & kill -STOP $$; wait; sleep NAP`, 2, 50 * time.Millisecond},
	{"in the foreground of a shell", `set -m; sleep NAP; sleep NAP`, 2, 5 * time.Second},
}

func TestStopLeavesNothing(t *testing.T) {
	findsAll(t)
	for i, k := range append(keepers, keepers...) {
		hasPipes := i >= len(keepers)
		t.Run(fmt.Sprintf("%s, pipes %v", k.name, hasPipes), func(t *testing.T) {
			nap := nap()
			s := begin(t, Command{Argv: []string{"sh", "-c", strings.ReplaceAll(k.script, "NAP", nap)}, Pipes: hasPipes})
			eventually(t, func() bool { return nappers(t, nap) >= k.nappers },
				func() string { return fmt.Sprintf("%d processes; there are %d", k.nappers, nappers(t, nap)) })
			others, err := s.Stop(context.Background(), k.grace)
			if n := nappers(t, nap); n != 0 {
				t.Errorf("%d processes are left", n)
			}
			if n := zombies(t); n != 0 {
				t.Errorf("%d zombies are left", n)
			}
			if err != nil {
				t.Errorf("ended: %v, %v", others, err)
			}
			select {
			case <-s.Done():
			default:
				t.Error("it is not done")
			}
		})
	}
}

// A shell at its prompt ignores SIGTERM, and ends with its terminal: nobody waits for what it does not hear.
func TestStopEndsAShellAtOnce(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	s := begin(t, Command{Argv: []string{bash, "--norc", "--noprofile"}, Env: append(os.Environ(), "PS1=here> ")})
	s.sees("here> ")
	began := time.Now()
	others, err := s.Stop(context.Background(), time.Hour)
	if took := time.Since(began); took > time.Minute || len(others) > 0 || err != nil {
		t.Errorf("it took %v, and ended %v, %v", took, others, err)
	}
}

// A daemon like those of Python libraries: two forks, a session, no terminal, an empty environment, all signals
// ignored.
func TestStopEndsADaemon(t *testing.T) {
	findsAll(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	nap := nap()
	s := begin(t, Command{Argv: []string{python, "-c", `
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        fd = os.open("/dev/null", os.O_RDWR)
        for n in (0, 1, 2): os.dup2(fd, n)
        os.execve("/bin/sh", ["sh", "-c", "sleep " + sys.argv[1] + "; :"], {})
    os._exit(0)
os.wait()
print("daemon", flush=True)
time.sleep(1000)
`, nap}})
	s.sees("daemon")
	eventually(t, func() bool { return nappers(t, nap) >= 3 }, func() string { return "the daemon" })
	others, err := s.Stop(context.Background(), 100*time.Millisecond)
	if n := nappers(t, nap); n != 0 || zombies(t) != 0 || err != nil {
		t.Errorf("%d processes and %d zombies are left; ended: %v, %v", n, zombies(t), others, err)
	}
	if !slices.ContainsFunc(others, func(p Info) bool { return p.Name == "sh" }) {
		t.Errorf("ended: %v, which does not name the daemon", others)
	}
}

// A program that forks faster than the process table is read is killed by its group.
func TestStopEndsWhatKeepsForking(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	nap := nap()
	s := begin(t, Command{Argv: []string{python, "-c", `
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
print("hopping", flush=True)
if os.fork() == 0:
    while True:
        if os.fork() != 0: os._exit(0)
signal.pause()
`, nap}})
	s.sees("hopping")
	others, err := s.Stop(context.Background(), 50*time.Millisecond)
	if n := nappers(t, nap); n != 0 || err != nil {
		t.Errorf("%d processes are left; ended: %v, %v", n, others, err)
	}
}

func TestLastWordsAreRead(t *testing.T) {
	s := shell(t, `trap 'seq 2000; echo last words; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	s.sees("ready")
	s.Stop(context.Background(), time.Minute)
	<-s.eof
	if got := s.text(); !strings.HasSuffix(got, "2000\r\nlast words\r\n") {
		t.Errorf("it ends with %q", got[max(0, len(got)-40):])
	}
}

func TestStopIsCancelled(t *testing.T) {
	s := shell(t, `trap '' TERM HUP; echo ready; while :; do sleep 0.01; done`)
	s.sees("ready")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	s.Stop(ctx, time.Hour)
	if got := s.Exit(); got != (Exit{137, "SIGKILL"}) {
		t.Errorf("ended: %+v", got)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// Stop ends what is left when the program exits by itself.
func TestStopEndsSurvivors(t *testing.T) {
	nap := nap()
	s := shell(t, `trap '' HUP; nohup sleep `+nap+` >/dev/null 2>&1 & exit 0`)
	s.ends(Exit{})
	if _, err := s.Stop(context.Background(), grace); err != nil {
		t.Error(err)
	}
	if n := nappers(t, nap); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := s.Stop(context.Background(), grace); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

// Two programs in one process do not end each other's descendants.
func TestStopSparesOthers(t *testing.T) {
	findsAll(t)
	mine, theirs := nap(), nap()
	a := shell(t, `setsid sleep `+mine+` & exec sleep `+mine)
	b := shell(t, `(setsid sleep `+theirs+` &); exec sleep `+theirs)
	stranger := exec.Command("sleep", theirs)
	must(t, stranger.Start())
	defer stranger.Wait()
	defer stranger.Process.Kill()
	eventually(t, func() bool { return nappers(t, mine) == 2 && nappers(t, theirs) == 3 }, func() string { return "five processes" })
	a.Stop(context.Background(), 100*time.Millisecond)
	if n := nappers(t, mine); n != 0 {
		t.Errorf("%d of its own processes are left", n)
	}
	eventually(t, func() bool { return nappers(t, theirs) == 3 }, // a shell that forks is one more
		func() string { return fmt.Sprintf("three processes of the others; there are %d", nappers(t, theirs)) })
	b.Stop(context.Background(), 100*time.Millisecond)
	if n := nappers(t, theirs); n != 1 {
		t.Errorf("%d processes are left, want the stranger", n)
	}
}

func TestLeftovers(t *testing.T) {
	findsAll(t)
	nap, run := nap(), newMark(t)
	// As after a runner's death: orphans with the mark in their environment, one ignoring signals and one suspended.
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(`
		setsid sleep NAP & setsid sh -c 'trap "" TERM; sleep NAP; sleep NAP' &
		setsid sh -c 'kill -STOP $$; sleep NAP' & :`, "NAP", nap))
	cmd.Env = append(os.Environ(), "ATM_RUN="+run)
	must(t, cmd.Run())
	var ps []Info
	var err error
	eventually(t, func() bool { // right after the fork it has its parent's name
		ps, err = Leftovers(run)
		names := fmt.Sprint(ps)
		return nappers(t, nap) == 4 && strings.Count(names, "sleep") == 2 && strings.Count(names, "setsid") == 0
	}, func() string { return fmt.Sprintf("two shells and two sleeps: %v, %v", ps, err) })
	if err != nil || len(ps) != 4 {
		t.Fatalf("left over: %v, %v", ps, err)
	}
	for _, p := range ps {
		if p.Start == 0 || p.Name == "" {
			t.Errorf("left over: %+v", p)
		}
	}
	if other, err := Leftovers(run + "1"); err != nil || len(other) != 0 {
		t.Errorf("left over of another run: %v, %v", other, err)
	}
	if left, err := Leftovers(""); err != nil || len(left) > 0 {
		t.Errorf("left over of no run: %v, %v", left, err)
	}

	// A process with this PID that started at another time is another process.
	var moved []Info
	for _, p := range ps {
		p.Start++
		moved = append(moved, p)
	}
	signalAll(moved, unix.SIGKILL)
	if n := nappers(t, nap); n != 4 {
		t.Fatalf("%d processes are left of four strangers", n)
	}
	if ended, err := EndLeftovers(run); err != nil || fmt.Sprint(ended) != fmt.Sprint(ps) {
		t.Errorf("ended: %v, %v", ended, err)
	}
	eventually(t, func() bool { return nappers(t, nap) == 0 && zombies(t) == 0 }, func() string { return "their end" })
	if ended, err := EndLeftovers(run); err != nil || len(ended) > 0 {
		t.Errorf("what has ended: %v, %v", ended, err)
	}
}

// A suspended process gets SIGTERM, because it is resumed.
func TestEndWakesTheStopped(t *testing.T) {
	findsAll(t)
	run, said := newMark(t), t.TempDir()+"/said"
	cmd := exec.Command("sh", "-c", `trap 'echo goodbye >"$0"; exit' TERM; kill -STOP $$; sleep 1000`, said)
	cmd.Env = append(os.Environ(), "ATM_RUN="+run)
	must(t, cmd.Start())
	defer cmd.Wait()
	stopped := func() bool {
		out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(cmd.Process.Pid)).Output()
		return strings.HasPrefix(string(out), "T")
	}
	eventually(t, stopped, func() string { return "its stop" })
	ended, err := endAll(t.Context(), time.Minute, 0, func() ([]Info, error) { return Leftovers(run) })
	if err != nil || len(ended) != 1 {
		t.Errorf("ended: %v, %v", ended, err)
	}
	if text, err := os.ReadFile(said); err != nil || string(text) != "goodbye\n" {
		t.Errorf("it said %q, %v", text, err)
	}
}
