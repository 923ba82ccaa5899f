package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// manned is a team whose members are run: fake agents, in odd ways hard to end.
var manned = []string{"alice", "bob", "carol"}

const mannedToml = `[members.me]
person = true
[members.alice]
command = [%[1]q, "--profile", "claude", "--log", "alice.log"]
[members.bob]
command = [%[1]q, "--profile", "codex", "--log", "bob.log", "--daemon"]
after = ["alice"]
[members.carol]
command = [%[1]q, "--profile", "gemini", "--log", "carol.log", "--trap", %[2]q]
restart = "always"
`

// fakeagent builds the program that acts like an agent's.
func fakeagent(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fakeagent")
	build := exec.Command("go", "build", "-o", path, "../testagent/cmd/fakeagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// A team is started and stopped again and again, while mail comes in, and while
// `atm up`, runners and agents are killed at random. After each down nothing of
// it runs, by the mark in the environment; no agent ever runs twice; no message
// is lost.
func TestStressUpDown(t *testing.T) {
	t.Parallel()
	// One round, with all that there is in it; what ignores SIGTERM takes its time.
	cycles, until, deaf := 1, time.Now(), "HUP,INT"
	if os.Getenv("ATM_STRESS") != "" {
		cycles, until, deaf = 20, time.Now().Add(duration(t, 0)), "HUP,INT,TERM"
	}
	w := newWorld(t, quick(t), append(slices.Clone(manned), "me")...)
	agent := fakeagent(t)
	if err := os.WriteFile(filepath.Join(w.team(), "team.toml"), fmt.Appendf(nil, mannedToml, agent, deaf), 0o600); err != nil {
		t.Fatal(err)
	}
	// Whatever happens to this test, nothing is left of its team.
	t.Cleanup(func() {
		for _, p := range w.marked() {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	})
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { w.watchTwins(agent, over) })
	all.Go(func() { w.mailRound(over) })
	n := 0
	for ; n < cycles || time.Now().Before(until); n++ {
		w.upAndDown(n + 1)
		if w.failed() {
			break
		}
	}
	close(over)
	all.Wait()
	w.arrived(t)
	for _, s := range w.order {
		t.Error(s)
	}
	report := fmt.Sprintf("%s: %d times up and down; %s", t.Name(), n, w.summary())
	t.Log(report)
	if os.Getenv("ATM_STRESS") != "" {
		fmt.Println(report)
	}
}

// failed reports whether something went wrong already.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.order) > 0
}

// upAndDown is one life of the team. In each odd one `atm up` is killed, and two
// carry on.
func (w *world) upAndDown(n int) {
	if n%2 == 1 {
		kill := time.Duration(rand.Int64N(int64(1500 * time.Millisecond)))
		r := w.run(call{args: []string{"up"}, kill: kill})
		if r.code >= 0 {
			w.expect(r, 0)
		} else {
			w.add("ups killed", 1)
		}
	}
	if n%3 != 2 { // else down follows at once
		var both sync.WaitGroup
		for range 1 + n%2 {
			both.Go(func() {
				r := w.run(call{args: []string{"up", "--json"}})
				w.expect(r, 0)
				if got := strings.Count(r.out, `"name"`); got != len(manned) {
					w.wrong("up tells of %d members: %s", got, r)
				}
			})
		}
		both.Wait()
		for range 1 + rand.IntN(3) {
			w.strike(manned[rand.IntN(len(manned))])
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		}
		if n%4 < 2 {
			w.expect(w.run(call{args: []string{"up"}}), 0)
		}
	}
	w.expect(w.run(call{args: []string{"down"}}), 0)
	// An agent must be gone by now. A runner that was about to start one, for an
	// `atm up` that was killed, sees that it was stopped, and ends.
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := w.marked()
		starting := func(p process) bool { return p.run == "" }
		if slices.ContainsFunc(left, starting) && !slices.ContainsFunc(left, func(p process) bool { return !starting(p) }) && time.Now().Before(end) {
			continue
		}
		for _, p := range left {
			w.wrong("after down, round %d, there runs %s", n, p)
		}
		break
	}
	w.add("downs", 1)
}

// strike kills a member's runner, or its program.
func (w *world) strike(name string) {
	data, err := os.ReadFile(filepath.Join(w.team(), name, "run", "run.json"))
	if err != nil {
		return
	}
	var said struct{ Runner, PID int }
	if json.Unmarshal(data, &said) != nil {
		return
	}
	pid, what := said.Runner, "runners killed"
	if rand.IntN(2) == 0 {
		pid, what = said.PID, "agents killed"
	}
	// Only what is this team's: the number may be another's by now.
	if p, ok := w.inspect(pid); ok && (p.run != "" || what == "runners killed" && strings.Contains(p.command, w.root)) {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			w.add(what, 1)
		}
	}
}

// process is what the system tells of one.
type process struct {
	pid     int
	command string
	agent   string
	run     string // ATM_RUN; "": it has none
}

func (p process) String() string {
	return fmt.Sprintf("%s of %s (%d)", clip(p.command), p.agent, p.pid)
}

// inspect reads one process; ok is false for those that are not of this world's
// root, and for those that have ended.
func (w *world) inspect(pid int) (p process, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil || bytes.Contains(stat, []byte(") Z ")) || bytes.Contains(stat, []byte(") X ")) {
		return p, false
	}
	env, err := os.ReadFile(dir + "/environ")
	if err != nil {
		return p, false
	}
	p.pid = pid
	for line := range bytes.SplitSeq(env, []byte{0}) {
		name, value, _ := strings.Cut(string(line), "=")
		switch name {
		case "ATM_ROOT":
			ok = value == w.root
		case "ATM_AGENT":
			p.agent = value
		case "ATM_RUN":
			p.run = value
		}
	}
	command, err := os.ReadFile(dir + "/cmdline")
	p.command = strings.TrimRight(strings.ReplaceAll(string(command), "\x00", " "), " ")
	return p, ok && err == nil
}

// marked are the processes that carry the mark of a run of this world's team,
// and the runners.
func (w *world) marked() (out []process) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		if p, ok := w.inspect(pid); ok && (p.run != "" || strings.Contains(p.command, " run ")) {
			out = append(out, p)
		}
	}
	return out
}

// watchTwins looks all the time whether two programs of one agent run.
func (w *world) watchTwins(program string, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(15 * time.Millisecond):
		}
		runs := map[string]process{}
		for _, p := range w.marked() {
			// Its daemon has other arguments.
			if !strings.HasPrefix(p.command, program+" --profile") {
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
}

// mailRound sends to all of them, all the time.
func (w *world) mailRound(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(30 * time.Millisecond):
		}
		tok, text := write(100)
		w.begin(tok, "me", manned...)
		w.stored(tok, w.run(call{args: []string{"send", strings.Join(manned, ","), "--as", "me", "--json", "--", text}, kill: mortal()}))
	}
}

// arrived finds every message whose id was printed: once, whole, unread or read;
// and what is read in the log of the program that it was typed to.
func (w *world) arrived(t testing.TB) {
	c := take(t, w.team())
	for _, line := range c.torn {
		t.Error(line)
	}
	type at struct{ agent, id string }
	there := map[at][]found{}
	for _, m := range c.messages {
		there[at{m.agent, m.ID}] = append(there[at{m.agent, m.ID}], m)
	}
	logs := map[string][]byte{}
	for _, a := range manned {
		logs[a], _ = os.ReadFile(filepath.Join(filepath.Dir(w.root), a+".log"))
	}
	sent, typed := 0, 0
	for k, p := range w.posts {
		if p.id == "" {
			continue
		}
		sent++
		all := there[at{k.agent, p.id}]
		if len(all) != 1 || !all[0].whole {
			t.Errorf("%s to %s lies there %d times", p.id, k.agent, len(all))
			continue
		}
		if all[0].place == "new" {
			continue
		}
		typed++
		if !bytes.Contains(logs[k.agent], []byte(k.token)) {
			t.Errorf("%s counts as read by %s, who was never shown it", p.id, k.agent)
		}
	}
	if sent == 0 {
		t.Error("nothing was sent")
	}
	w.add("sent", sent)
	w.add("typed in", typed)
}
