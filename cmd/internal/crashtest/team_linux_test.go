package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// started is a team whose members are run: test agents, in odd ways hard to end.
var started = []string{"alice", "bob", "carol"}

const teamToml = `[members.me]
person = true
[members.alice]
command = [%[1]q, "--profile", "claude", "--log", "alice.log"]
[members.bob]
command = [%[1]q, "--profile", "claude", "--log", "bob.log", "--daemon"]
after = ["alice"]
[members.carol]
command = [%[1]q, "--profile", "claude", "--log", "carol.log", "--trap", %[2]q]
restart = "always"
`

// A team is started and stopped again and again, while mail comes in, and while `atm up`, runners
// and agents are killed at random. After each down nothing of it runs, by the mark in the
// environment; no agent ever runs twice; no message is lost, and what is read was typed.
func TestStressUpDown(t *testing.T) {
	t.Parallel()
	// One round, with all that there is in it; what ignores SIGTERM takes its time.
	cycles, until, deaf := 1, time.Now(), "HUP,INT"
	if testround.IsLong {
		cycles, until, deaf = 20, time.Now().Add(testround.Lasts(t, 0)), "HUP,INT,TERM"
	}
	w := newWorld(t, memory(t), append(slices.Clone(started), "me")...)
	agent := lookPath(t, "fakeagent")
	w.want(os.WriteFile(filepath.Join(w.team(), "team.toml"), fmt.Appendf(nil, teamToml, agent, deaf), 0o600))
	// Whatever happens to this test, nothing is left of its team.
	t.Cleanup(func() {
		for _, p := range w.processes() {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	})
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for ; !over.Load(); time.Sleep(15 * time.Millisecond) {
			w.findTwins(agent)
		}
	})
	all.Go(func() {
		for ; !over.Load(); time.Sleep(30 * time.Millisecond) {
			w.try(w.sending("me", started, "--", "--json").call)
		}
	})
	n := 0
	for ; (n < cycles || time.Now().Before(until)) && !w.failed(t); n++ {
		w.upAndDown(n + 1)
	}
	over.Store(true)
	all.Wait()
	c := w.census()
	for _, agent := range started { // what counts as read is in the log of the program that it was typed to
		log, _ := os.ReadFile(filepath.Join(filepath.Dir(w.root), agent+".log"))
		for _, m := range headLine.FindAllSubmatch(log, -1) {
			w.saw(agent, []token{token(m[1])}, nil, time.Time{})
		}
	}
	w.judge(c)
	if w.count["messages acknowledged"] == 0 {
		t.Error("nothing was sent")
	}
	w.report(t, fmt.Sprintf("%d times up and down", n))
}

// upAndDown is one life of the team. In each odd one `atm up` is killed, and two carry on.
func (w *world) upAndDown(n int) {
	if n%2 == 1 {
		w.run(call{args: []string{"up"}, kill: time.Duration(rand.Int64N(int64(1500 * time.Millisecond)))})
	}
	if n%3 != 2 { // else down follows at once
		var both sync.WaitGroup
		for range 1 + n%2 {
			both.Go(func() {
				r := w.run(call{args: []string{"up", "--json"}})
				if got := strings.Count(r.out, `"name"`); got != len(started) {
					w.wrong("up tells of %d members: %s", got, r)
				}
			})
		}
		both.Wait()
		for range 1 + testround.Rand.IntN(3) {
			w.killOne(one(started...))
			pause(200)
		}
		if n%4 < 2 {
			w.run(call{args: []string{"up"}})
		}
	}
	w.run(call{args: []string{"down"}})
	// An agent must be gone by now. A runner that was about to start one, for an `atm up` that was
	// killed, sees that it was stopped, and ends.
	isAgent := func(p process) bool { return p.run != "" }
	left := w.processes()
	for i := 0; i < 6000 && len(left) > 0 && !slices.ContainsFunc(left, isAgent); i++ {
		time.Sleep(10 * time.Millisecond)
		left = w.processes()
	}
	for _, p := range left {
		w.wrong("after down, round %d, there runs %s", n, p)
	}
	w.add("downs", 1)
}

// killOne kills a member's runner, or its program.
func (w *world) killOne(name string) {
	data, err := os.ReadFile(filepath.Join(w.team(), name, "run", "run.json"))
	var run struct{ Runner, PID int }
	if err != nil || json.Unmarshal(data, &run) != nil {
		return
	}
	pid, what := run.Runner, "runners killed"
	if testround.Rand.IntN(2) == 0 {
		pid, what = run.PID, "agents killed"
	}
	// Only what is this team's: the number may be another's by now.
	if _, ok := w.inspect(pid); ok && syscall.Kill(pid, syscall.SIGKILL) == nil {
		w.add(what, 1)
	}
}

// process is what the system tells of one.
type process struct {
	pid                 int
	command, agent, run string // run is ATM_RUN; "": it has none
}

func (p process) String() string {
	return fmt.Sprintf("%s of %s (%d)", clip(p.command), p.agent, p.pid)
}

// inspect reads one process; ok is false for those that are not of this world's root, and for those
// that have ended.
func (w *world) inspect(pid int) (p process, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, _ := os.ReadFile(dir + "/stat")
	env, _ := os.ReadFile(dir + "/environ")
	command, err := os.ReadFile(dir + "/cmdline")
	if err != nil || len(stat) == 0 || bytes.Contains(stat, []byte(") Z ")) || bytes.Contains(stat, []byte(") X ")) {
		return p, false
	}
	p = process{pid: pid, command: strings.TrimRight(strings.ReplaceAll(string(command), "\x00", " "), " ")}
	for line := range strings.SplitSeq(string(env), "\x00") {
		switch name, value, _ := strings.Cut(line, "="); name {
		case "ATM_ROOT":
			ok = value == w.root
		case "ATM_AGENT":
			p.agent = value
		case "ATM_RUN":
			p.run = value
		}
	}
	return p, ok
}

// processes are those that carry the mark of this world's team, runners among them.
func (w *world) processes() (all []process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if p, ok := w.inspect(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// findTwins looks whether two programs of one agent run.
func (w *world) findTwins(program string) {
	runs := map[string]process{}
	for _, p := range w.processes() {
		if !strings.HasPrefix(p.command, program+" --profile") { // its daemon has other arguments
			continue
		}
		if q, twice := runs[p.agent]; twice && q.run != p.run {
			// The first may have ended since it was looked at.
			if _, lives := w.inspect(q.pid); lives {
				w.wrong("%s runs twice: %s, run %s, and %s, run %s", p.agent, q, q.run, p, p.run)
			}
		}
		runs[p.agent] = p
	}
	w.add("looks", 1)
}
