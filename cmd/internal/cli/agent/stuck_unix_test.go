//go:build linux || darwin

package agent_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/testteam"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STUCK_RUNNER"); dir != "" {
		stuckRunner(dir, os.Args[1])
		return
	}
	testteam.Main(m)
}

// stuck is a runner that greets and answers so many times how it is, and nothing else.
type stuck struct {
	control.Runner
	answers atomic.Int32
}

func (s *stuck) CheckRight(control.Right, int, string) error { return nil }

func (s *stuck) Status(ctx context.Context) (control.Status, error) {
	if s.answers.Add(-1) < 0 {
		<-ctx.Done()
	}
	return control.Status{State: "idle"}, ctx.Err()
}

func (s *stuck) Screen(ctx context.Context, _ control.ScreenRequest) (control.Screen, error) {
	<-ctx.Done()
	return control.Screen{}, ctx.Err()
}

func (s *stuck) Stop(ctx context.Context) (control.Outcome, error) {
	<-ctx.Done()
	return control.Outcome{}, ctx.Err()
}

// stuckRunner is bob's runner in the directory of a team, which has started a program and claimed his unread mail, and
// answers so often.
func stuckRunner(team, often string) {
	run := "run-of-" + strconv.Itoa(os.Getpid())
	program := exec.Command("sh", "-c", `trap "" TERM HUP; while :; do sleep 1; done`)
	program.Env = append(os.Environ(), "ATM_RUN="+run)
	answers, err := strconv.Atoi(often)
	dir, openErr := durable.Open(team)
	if err := cmp.Or(err, openErr, program.Start()); err != nil {
		panic(err)
	}
	box, runDir := maildir.NewStore(dir, "main").Box("bob"), filepath.Join(team, "bob", "run")
	hold, err := claim.HoldRunner(context.Background(), box.Store(), "bob")
	if err != nil {
		panic(err)
	}
	unread, _ := box.UnreadIDs()
	_, claimErr := hold.Claim(context.Background(), unread)
	runs, err := (*durable.Root)(nil), os.MkdirAll(runDir, 0o700)
	if err == nil {
		runs, err = durable.Open(runDir)
	}
	info := runinfo.Info{Run: run, Runner: os.Getpid(), PID: program.Process.Pid, Started: time.Now(), Command: []string{"sh"}}
	if err := cmp.Or(claimErr, err, info.Write(runs)); err != nil {
		panic(err)
	}
	server, err := control.Listen(runDir)
	if err != nil {
		panic(err)
	}
	s := &stuck{}
	s.answers.Store(int32(answers))
	server.Serve(context.Background(), s)
}

// start starts a stuck runner, and returns its process and its program's.
func start(t *testing.T, answers int) (team *testteam.Team, runner *exec.Cmd, run string) {
	t.Helper()
	team = testteam.New(t, "bob", "me")
	team.Atm("send", "bob", "hello", "--as", "me")
	dir := filepath.Join(team.Dir, ".atm", "main")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner = team.Command(self, fmt.Sprint(answers))
	runner.Env = append(runner.Env, "STUCK_RUNNER="+dir)
	runner.Stderr = os.Stderr
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { runner.Wait(); close(ended) }()
	t.Cleanup(func() {
		runner.Process.Kill()
		<-ended
		process.EndLeftovers(run)
	})
	team.Eventually("the runner listens", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "bob", "run", "control.sock"))
		return err == nil
	})
	return team, runner, "run-of-" + strconv.Itoa(runner.Process.Pid)
}

// A runner whose loop is stuck, busy or blocked, is ended by stop, down and a suspension's end, with everything that it
// started. Its mail is free again, and its exit is recorded.
func TestStopStuckRunner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers int // until it is stuck
		verb    string
		stop    bool // it is suspended
	}{
		"stop": {0, "stop", false}, "down": {0, "down", false}, "stuck while it stops": {2, "stop", false}, "suspended": {9, "stop", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			team, runner, run := start(t, c.answers)
			if c.stop {
				runner.Process.Signal(syscall.SIGSTOP)
			}
			if out := team.Atm(c.verb, "bob"); !strings.Contains(out, "did not answer and was killed") || !strings.Contains(out, "bob: stopped") {
				t.Error(out)
			}
			if left, err := process.Leftovers(run); len(left) > 0 || err != nil {
				t.Errorf("%v still runs, %v", left, err)
			}
			if out := team.Atm("read", "--as", "bob"); !strings.Contains(out, "hello") {
				t.Error("its mail is not free:", out)
			}
			if out := team.Atm("events", "bob"); !strings.Contains(out, "  exited  ") {
				t.Error(out)
			}
			if out := team.Atm("team"); !regexp.MustCompile(`bob +off .*stopped`).MatchString(out) {
				t.Error(out)
			}
		})
	}
}

// What asks such a runner says that it does not answer, and what ends it.
func TestAskStuckRunner(t *testing.T) {
	t.Parallel()
	team, _, _ := start(t, 0)
	for _, words := range [][]string{
		{"interrupt", "bob"}, {"restart", "bob"}, {"type", "bob", "x"}, {"screen", "bob"}, {"attach", "bob", "--read-only"},
	} {
		t.Run(words[0], func(t *testing.T) {
			t.Parallel()
			out, err := team.Command("atm", words...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "the runner of bob does not answer\natm: hint: atm stop bob ends it") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if out := team.Atm("team"); !regexp.MustCompile(`bob .*not answering`).MatchString(out) {
		t.Error(out)
	}
}
