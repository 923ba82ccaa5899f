// Package testteam makes teams for the tests of atm's programs, which run as processes.
package testteam

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/testprogram"
)

// Main runs the tests of a package, with atm's programs and fakeagent first on their PATH.
func Main(m *testing.M) {
	ClearEnviron()
	testprogram.Main(m, testprogram.Beside)
}

// ClearEnviron removes what the environment says to atm and to agents. If an agent runs the tests, atm would know by what
// the processes above were started with: then the tests run again in a session of their own, and this process ends.
func ClearEnviron() {
	isMarked := slices.ContainsFunc(programs.Marks(), func(mark string) bool { return os.Getenv(mark) != "" })
	for _, name := range append(programs.Marks(), "ATM_ROOT", "ATM_TEAM", "ATM_AGENT", "ATM_PROJECT", "NO_COLOR", "EDITOR", "VISUAL") {
		os.Unsetenv(name)
	}
	if isMarked {
		runAlone()
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would sleep a second at the end of each process
}

// A Team is in a directory of its own, which is also its home directory.
type Team struct {
	testing.TB
	Dir string
	Env []string // of its commands, beside the test's
}

// New makes a team with members.
func New(t testing.TB, members ...string) *Team {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("nothing runs agents here")
	}
	team := &Team{TB: t, Dir: t.TempDir()}
	team.Env = []string{"HOME=" + team.Dir, "XDG_STATE_HOME=" + filepath.Join(team.Dir, ".state")}
	team.Atm(append([]string{"init"}, members...)...)
	return team
}

// Write writes a file below the team's directory.
func (t *Team) Write(file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(t.Dir, file), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Command makes a command that runs in the team's directory.
func (t *Team) Command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.Env = t.Dir, slices.Concat(os.Environ(), t.Env)
	return c
}

// Atm runs atm and returns what it prints.
func (t *Team) Atm(args ...string) string {
	t.Helper()
	out, err := t.Command("atm", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("atm %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Eventually waits until something is so.
func (t *Team) Eventually(what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was never so: ", what)
		}
	}
}
