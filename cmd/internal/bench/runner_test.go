//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testagent"
)

// A build is a directory of programs whose runners are measured, with a team of its own.
type build struct {
	t        *testing.T
	bin, dir string
	agent    string   // fakeagent, the same for all builds
	figures  []string // what was measured
}

// TestRunners measures runners of one build or of several, in turns: `make bench-runners BIN=DIR:OTHER`.
func TestRunners(t *testing.T) {
	dirs := os.Getenv("ATM_BENCH_BIN")
	if dirs == "" {
		t.Skip("takes four minutes: make bench-runners")
	}
	agent := filepath.Join(t.TempDir(), "fakeagent")
	if out, err := exec.Command("go", "build", "-o", agent, "../../../internal/testagent/cmd/fakeagent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var builds []*build
	for bin := range strings.SplitSeq(dirs, ":") {
		bin, err := filepath.Abs(bin)
		if err == nil {
			bin, err = filepath.EvalSymlinks(bin)
		}
		if err != nil {
			t.Fatal(err)
		}
		b := &build{t: t, bin: bin, dir: t.TempDir(), agent: agent}
		b.atm("init", "lead")
		t.Cleanup(func() { b.atm("down") })
		builds = append(builds, b)
	}
	names := []string{"CPU of 20 idle runners, ms per s: shells", "the same: agents"}
	for _, command := range [][]string{{"bash", "--norc"}, {agent, "--profile", "claude"}} {
		measureIdle(builds, command)
	}
	names = append(names, "memory of an idle runner, MB: RSS", "PSS", "and after a flood of 5 MB: RSS", "PSS")
	for _, b := range builds {
		b.measureMemory()
	}
	names = append(names, "median of 20, ms: from work on the screen to its event", "from the start of atm send to the first byte typed")
	measureDelays(builds, 20)
	for i, name := range names {
		line := fmt.Sprintf("%-60s", name)
		for _, b := range builds {
			line += fmt.Sprintf("%10s", b.figures[i])
		}
		t.Log(line)
	}
}

// atm runs a command of the build and returns what it prints.
func (b *build) atm(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(b.bin, "atm"), args...)
	cmd.Dir = b.dir
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "ATM_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("atm %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (b *build) add(figure float64) { b.figures = append(b.figures, fmt.Sprintf("%.2f", figure)) }

// start adds a member, runs a command for it and waits for its prompt.
func (b *build) start(name string, command ...string) {
	b.atm("team", "add", name)
	b.atm(append([]string{"run", name, "--detach", "--cwd", b.dir, "--"}, command...)...)
	b.atm("wait", "--idle", name, "--timeout", "60s")
}

// runners returns the directories in /proc of the build's runners.
func (b *build) runners() (all []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if target, _ := os.Readlink(link); target == filepath.Join(b.bin, "atm-runner") {
			all = append(all, filepath.Dir(link))
		}
	}
	return all
}

// cpu returns the processor time of the build's runners.
func (b *build) cpu() (total time.Duration) {
	for _, runner := range b.runners() {
		threads, _ := filepath.Glob(runner + "/task/*/schedstat")
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			n, _ := strconv.ParseInt(strings.Fields(string(text) + " 0")[0], 10, 64)
			total += time.Duration(n)
		}
	}
	return total
}

// measureIdle measures the runners of 20 members at their prompts, all builds at the same time.
func measureIdle(builds []*build, command []string) {
	const members, span = 20, 30 * time.Second
	var names []string
	for i := range members {
		names = append(names, fmt.Sprintf("%s%d", filepath.Base(command[0]), i))
	}
	var before []time.Duration
	for _, b := range builds {
		for _, name := range names {
			b.start(name, command...)
		}
	}
	time.Sleep(10 * time.Second) // the ends of the starts
	for _, b := range builds {
		before = append(before, b.cpu())
	}
	time.Sleep(span)
	for i, b := range builds {
		b.add((b.cpu() - before[i]).Seconds() * 1000 / span.Seconds())
	}
	for _, b := range builds {
		b.atm(append([]string{"down"}, names...)...)
	}
}

// addMemory adds the memory of the only runner.
func (b *build) addMemory() {
	all := b.runners()
	if len(all) != 1 {
		b.t.Fatalf("%d runners", len(all))
	}
	text, err := os.ReadFile(all[0] + "/smaps_rollup")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, key := range []string{"Rss:", "Pss:"} {
		_, rest, _ := strings.Cut(string(text), "\n"+key)
		kB, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
		b.add(kB / 1024)
	}
}

func (b *build) measureMemory() {
	b.start("calm", b.agent, "--profile", "claude")
	b.addMemory()
	b.atm("stop", "calm")
	const flood = `PS1='$ ' bash --norc -i -c 'read x; yes "$(seq -s " " 20)" | head -c 5000000; echo; echo flood is over; read x'`
	b.atm("team", "add", "flooded")
	b.atm("run", "flooded", "--detach", "--cwd", b.dir, "--", "sh", "-c", flood)
	b.atm("type", "flooded", "--enter")
	for end := time.Now().Add(5 * time.Minute); !strings.Contains(b.atm("screen", "flooded"), "flood is over"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatal("the flood does not end")
		}
	}
	b.addMemory()
	b.atm("stop", "flooded")
}

// measureDelays sends mail to an agent of each build, in turns.
func measureDelays(builds []*build, times int) {
	toEvent, toByte := make([][]time.Duration, len(builds)), make([][]time.Duration, len(builds))
	for _, b := range builds {
		b.start("bob", b.agent, "--profile", "claude", "--log", filepath.Join(b.dir, "agent.log"))
	}
	for range times {
		for i, b := range builds {
			b.atm("wait", "--idle", "bob", "--timeout", "60s")
			sentAt := time.Now()
			b.atm("send", "bob", "hello", "--as", "lead")
			for len(b.since(sentAt, testagent.Submitted)) == 0 || len(b.events(sentAt)) == 0 {
				time.Sleep(20 * time.Millisecond)
			}
			toByte[i] = append(toByte[i], b.since(sentAt, testagent.Input)[0].At.Sub(sentAt))
			toEvent[i] = append(toEvent[i], b.events(sentAt)[0].Sub(b.since(sentAt, testagent.Submitted)[0].At))
		}
	}
	for i, b := range builds {
		for _, all := range [][]time.Duration{toEvent[i], toByte[i]} {
			b.add(median(all) / 1e6)
		}
	}
}

// since returns the entries of a kind in the agent's log since a time.
func (b *build) since(at time.Time, kind string) (found testagent.Entries) {
	all, err := testagent.ReadLog(filepath.Join(b.dir, "agent.log"))
	if err != nil {
		b.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e testagent.Entry) bool { return e.Event != kind || e.At.Before(at) })
}

// events returns when bob was reported to work since a time.
func (b *build) events(at time.Time) (found []time.Time) {
	files, _ := filepath.Glob(filepath.Join(b.dir, ".atm/main/bob/events/*.ndjson"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var e struct {
				At        time.Time
				Kind, New string
			}
			if json.Unmarshal(line, &e); e.Kind == "state_change" && (e.New == "thinking" || e.New == "responding") && e.At.After(at) {
				found = append(found, e.At)
			}
		}
	}
	return found
}
