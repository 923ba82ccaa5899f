//go:build unix

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCommands compares the processor time of commands of this build with another one's, in turns: `make bench BIN=DIR`.
// Both programs are copied first: what a linker has just written is slower to start than the same bytes copied.
func TestCommands(t *testing.T) {
	dirs := os.Getenv("ATM_BENCH_COMMANDS")
	if dirs == "" {
		t.Skip("needs another build: make bench BIN=DIR")
	}
	const rounds = 60
	var builds []commandBuild
	for bin := range strings.SplitSeq(dirs, ":") {
		data, err := os.ReadFile(filepath.Join(bin, "atm"))
		if err != nil {
			t.Fatal(err)
		}
		b := commandBuild{t, t.TempDir()}
		if err := os.WriteFile(filepath.Join(b.dir, "atm"), data, 0o700); err != nil {
			t.Fatal(err)
		}
		b.run("", "init", "alice", "bob", "me")
		builds = append(builds, b)
	}
	for _, of := range []struct {
		name, stdin string
		args        []string
	}{
		{name: "version", args: []string{"version"}},
		{name: "send", args: []string{"send", "bob", "hello", "--as", "alice"}},
		{name: "read", args: []string{"read", "--as", "bob"}},
		{name: "ls", args: []string{"ls", "--as", "bob"}},
		{name: "team", args: []string{"team", "--as", "bob"}},
		{name: "a hook", args: []string{"hook", "claude", "--as", "alice"},
			stdin: `{"session_id":"s1","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`},
	} {
		took := make([][]time.Duration, len(builds))
		for round := range rounds {
			for n := range builds {
				i := (n + round) % len(builds) // each is the first as often
				if of.name == "read" {
					builds[i].run("", "send", "bob", "hello", "--as", "alice")
				}
				took[i] = append(took[i], builds[i].run(of.stdin, of.args...))
			}
		}
		line := fmt.Sprintf("%-8s", of.name)
		ratios := ""
		for i := range builds {
			if i > 0 { // of each round: other programs disturb both sides of it
				ratio := make([]float64, rounds)
				for round := range ratio {
					ratio[round] = float64(took[0][round]) / float64(took[i][round])
				}
				slices.Sort(ratio)
				ratios += fmt.Sprintf("   ratio %.2f", ratio[rounds/2])
			}
			line += fmt.Sprintf("%8.2f ms", slices.Sorted(slices.Values(took[i]))[rounds/2].Seconds()*1e3)
		}
		line += ratios
		t.Log(line)
	}
}

// A commandBuild is a copy of one build's atm, in the directory of a team of its own.
type commandBuild struct {
	t   *testing.T
	dir string
}

// run returns the processor time that a command has taken.
func (b commandBuild) run(stdin string, args ...string) time.Duration {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(b.dir, "atm"), args...)
	cmd.Dir, cmd.Stdin = b.dir, strings.NewReader(stdin)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "ATM_") && !strings.HasPrefix(pair, "HOME=") && !strings.HasPrefix(pair, "XDG_STATE_HOME=") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+b.dir, "XDG_STATE_HOME="+b.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("atm %q: %v\n%s", args, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
