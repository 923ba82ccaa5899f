//go:build unix

package mailbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// told is what the processes of a run said.
type told struct {
	mu    sync.Mutex
	lines map[string]int // "read bob <id>" and its like: how often
	count map[string]int // by the first word
	wrong []string
}

func (a *told) take(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	word, _, _ := strings.Cut(line, " ")
	a.count[word]++
	a.lines[line]++
	switch word {
	case "error", "torn", "two":
		a.wrong = append(a.wrong, line)
	}
}

// ended notes how a process ended: all of them work until they are killed.
func (a *told) ended(role string, how syscall.WaitStatus) {
	if how.Signaled() && how.Signal() == syscall.SIGKILL {
		a.take("killed " + role)
	} else {
		a.take(fmt.Sprintf("error %s ended by itself, status %d", role, how))
	}
}

// each calls f with the agent and the rest of every line that begins with
// word, and with how often it was said.
func (a *told) each(word string, f func(agent wire.Name, rest string, n int)) {
	for line, n := range a.lines {
		if w := strings.SplitN(line, " ", 3); w[0] == word && len(w) == 3 {
			f(wire.Name(w[1]), w[2], n)
		}
	}
}

// start starts the test binary again in a role.
func start(t testing.TB, role, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, path)
	// The race detector would wait a second at each process's end.
	c.Env = append(append(os.Environ(), "ATM_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0"), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	return c, s
}

// Senders, readers, droppers and movers are killed at random moments. What was
// acknowledged is there, once, and whole.
func TestKilled(t *testing.T) {
	duration := stressTime(t)
	path := os.Getenv("ATM_STRESS_DIR")
	if path == "" {
		path = scratch(t)
	}
	s := openStore(t, path, nil, "alice", killBob, killCarol, killDave)
	said := killed(t, path, duration, map[string]int{
		"send": 1, "batch": 1, "given": 2, "read": 3, "slow": 1, "drop": 1, "move": 2, "gc": 1, "retire": 1, "append": 1,
	})
	ctx := context.Background()
	if err := s.Restore(ctx, killDave); err != nil && !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	v := verdict{t: t, p: &process{path: path, store: s}, said: said}
	for _, agent := range []wire.Name{killBob, killCarol, killDave} {
		for {
			taken := takeIn(t, s.Box(agent))
			v.taken += len(taken.Messages)
			if len(taken.Messages)+taken.Events+taken.Bad == 0 {
				break
			}
		}
		v.look(agent)
	}
	v.compare()
	report := fmt.Sprintf("%s, %d processes killed: %d acknowledged, %d dropped, %d shown, %d read under the lock, %d moved, %d put back, %d archivings, %d retirements, %d events appended, %d locks not got; %d messages in the end. lost %d, doubled %d, torn %d",
		duration, said.count["killed"], said.count["ack"], said.count["drop"], said.count["show"], said.count["read"], said.count["moved"],
		said.count["unread"], said.count["archived"], said.count["retired"], said.count["appended"], said.count["busy"], v.messages, v.lost, v.doubled, v.torn)
	t.Log(report)
	if stressed {
		fmt.Println(report)
	}
}

// stressTime is for how long processes are killed.
func stressTime(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("ATM_STRESS")
	if s == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal("ATM_STRESS: ", err)
	}
	return d
}

// killed keeps so many processes of each role alive, kills them at random moments,
// and returns what they said. What they said is wrong fails the test.
func killed(t *testing.T, path string, lasting time.Duration, roles map[string]int) *told {
	t.Helper()
	said := &told{lines: map[string]int{}, count: map[string]int{}}
	end := time.Now().Add(lasting)
	var all sync.WaitGroup
	for role, n := range roles {
		for range n {
			all.Go(func() {
				for time.Now().Before(end) {
					c, out := start(t, role, path)
					life := time.AfterFunc(time.Duration(40+rand.IntN(600))*time.Millisecond, func() { c.Process.Kill() })
					for out.Scan() {
						said.take(out.Text())
					}
					life.Stop()
					c.Wait()
					said.ended(role, c.ProcessState.Sys().(syscall.WaitStatus))
				}
			})
		}
	}
	all.Wait()
	for _, line := range said.wrong {
		t.Error(line)
	}
	return said
}

// verdict compares what the processes said with what is on disk.
type verdict struct {
	t    *testing.T
	p    *process
	said *told

	census  map[wire.Name]census
	names   map[string]int // dropped files: agent and name
	events  map[string]int // dropped events: agent and content; appended ones
	reading map[string]int // message_read: agent and id

	messages, lost, doubled, torn, taken int
}

// look takes stock of one mailbox.
func (v *verdict) look(agent wire.Name) {
	if v.census == nil {
		v.census, v.names, v.events, v.reading = map[wire.Name]census{}, map[string]int{}, map[string]int{}, map[string]int{}
	}
	c := takeCensus(v.t, v.p.path, agent)
	v.census[agent] = c
	v.messages += len(c.places)
	c.sound(v.t)
	v.torn += len(c.torn)
	for id, in := range c.places {
		if len(in) > 1 {
			v.doubled++
		}
		m := c.texts[id]
		if m == nil {
			continue
		}
		if strings.HasPrefix(m.Subject, "d-") {
			// A dropper that was killed while it wrote left a part; whole ones
			// are compared below.
			v.names[string(agent)+" "+m.Subject]++
			if v.said.lines["drop "+string(agent)+" "+m.Subject] == 0 {
				continue
			}
		}
		if v.said.lines["ack "+string(agent)+" "+string(id)] == 0 && m.Origin != nil {
			continue // dropped under its own id by one who was killed
		}
		if !v.p.whole(m) {
			v.t.Errorf("torn: %s of %s", id, agent)
			v.torn++
		}
	}
	for _, bad := range c.bad {
		// A message that a killed dropper wrote in part is bad, rightly.
		name, _, _ := strings.Cut(bad, ".")
		if v.said.lines["ack "+string(agent)+" "+name] > 0 && len(c.places[wire.ID(name)]) == 0 {
			v.t.Errorf("set aside as bad in the mailbox of %s: %s", agent, bad)
			v.lost++
		}
	}
	for _, e := range eventsOf(v.t, v.p.store.Box(agent)) {
		switch {
		case e.Kind == wire.EventRead:
			v.reading[string(agent)+" "+string(e.MessageID())]++
		case e.Wire != nil:
			var w struct{ Content string }
			json.Unmarshal(e.Wire, &w)
			v.events[string(agent)+" "+w.Content]++
		case e.EventID != "":
			v.events[string(agent)+" "+e.EventID]++
		}
	}
}

func (v *verdict) compare() {
	v.said.each("ack", func(agent wire.Name, id string, _ int) {
		if len(v.census[agent].places[wire.ID(id)]) == 0 {
			v.t.Errorf("lost: %s, acknowledged to the sender, is nowhere in the mailbox of %s", id, agent)
			v.lost++
		}
	})
	v.said.each("drop", func(agent wire.Name, name string, _ int) {
		switch n := v.names[string(agent)+" "+name]; {
		case n == 0:
			v.t.Errorf("lost: %s, dropped for %s", name, agent)
			v.lost++
		}
	})
	for name, n := range v.names {
		if n > 1 {
			v.t.Errorf("doubled: the dropped %s became %d messages", name, n)
			v.doubled++
		}
	}
	for _, word := range []string{"event", "appended"} {
		v.said.each(word, func(agent wire.Name, what string, _ int) {
			if v.events[string(agent)+" "+what] == 0 {
				v.t.Errorf("lost: event %s of %s", what, agent)
				v.lost++
			}
		})
	}
	for what, n := range v.events {
		if n > 1 {
			v.t.Errorf("doubled: event %s is %d times in the log", what, n)
			v.doubled++
		}
	}
	// A message is read once, and once more for each time it was put back.
	back := map[string]int{}
	v.said.each("unread", func(agent wire.Name, id string, n int) { back[string(agent)+" "+id] = n })
	v.said.each("read", func(agent wire.Name, id string, n int) {
		if most := 1 + back[string(agent)+" "+id]; n > most {
			v.t.Errorf("doubled: %s of %s was read by %d who had it shown under the lock", id, agent, n)
			v.doubled++
		}
	})
	for what, n := range v.reading {
		if n > 1+back[what] {
			v.t.Errorf("doubled: the log says %d times that %s was read", n, what)
			v.doubled++
		}
	}
}
