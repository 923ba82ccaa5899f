package ptyrun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// lifeEnv makes this test binary a runner: a life, as JSON.
const lifeEnv = "PTYRUN_TEST_LIFE"

// life is a runner of bob's as a process that can be killed.
type life struct {
	Team    string // its directory
	Run     string
	Fake    testagent.Options
	Restart Restart
}

// lived is what a runner process prints at its end, with the previous runner's leftovers.
type lived struct {
	Left []string `json:",omitempty"`
	Exit *Exit    `json:",omitempty"`
}

// liveOn is for TestMain: if this process should be a runner it becomes one, and does what atm run does.
func liveOn() {
	conf := os.Getenv(lifeEnv)
	if conf == "" {
		return
	}
	os.Unsetenv(lifeEnv)
	var l life
	err := json.Unmarshal([]byte(conf), &l)
	if err == nil {
		err = l.live()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// leftovers returns what a killed runner left running.
func leftovers(box *maildir.Box) ([]process.Info, error) {
	info, err := runinfo.Read(box.Store().Dir(), box.Agent())
	if err != nil {
		return nil, err
	}
	return process.Leftovers(info.Run)
}

func (l *life) live() error {
	ctx := context.Background()
	dir, err := durable.Open(l.Team)
	if err != nil {
		return err
	}
	s := maildir.NewStore(dir, "main")
	defer s.Close()
	hold, err := claim.HoldRunner(ctx, s, "bob")
	if err != nil {
		return err
	}
	defer hold.Release()
	say := json.NewEncoder(os.Stdout)
	info, err := runinfo.Read(dir, "bob")
	if err != nil {
		return err
	}
	left, err := process.EndLeftovers(info.Run)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		say.Encode(lived{Left: process.Names(left)})
	}
	argv, env, err := testagent.Command(l.Fake)
	if err != nil {
		return err
	}
	d, _ := driver.Named(l.Fake.Profile)
	seq, err := s.Box("bob").Log().LastSeq()
	if err != nil {
		return err
	}
	o := Options{
		Mail: &Mail{Mailbox: (*mailbox.Mailbox)(s.Box("bob")), hold: hold}, Run: l.Run, Command: argv, Dir: l.Team, Host: runhost.Host{Driver: d}, Cols: 100, Rows: 30,
		Env:    append(append(os.Environ(), env...), "ATM_RUN="+l.Run, "TERM=xterm-256color"),
		Inject: Body, Restart: l.Restart, timing: &quick,
	}
	o.Mail.state.Seq = seq
	exit, err := runOnce(ctx, o)
	if err == nil {
		say.Encode(lived{Exit: &exit})
	}
	return err
}

// process is a running life.
type runnerProcess struct {
	*exec.Cmd
	run string
	out chan lived
}

func (r *rig) live(l life) *runnerProcess {
	r.T.Helper()
	l.Team, l.Run = r.opt.Dir, string(wire.NewID())
	l.Fake.Log = r.Log
	if l.Fake.Profile == "" {
		l.Fake.Profile = "claude"
	}
	conf, err := json.Marshal(l)
	must(r.T, err)
	exe, err := os.Executable()
	must(r.T, err)
	p := &runnerProcess{Cmd: exec.Command(exe), run: l.Run, out: make(chan lived, 4)}
	p.Env = append(os.Environ(), lifeEnv+"="+string(conf))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	must(r.T, err)
	go func() {
		defer close(p.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var l lived
			if json.Unmarshal(lines.Bytes(), &l) == nil {
				p.out <- l
			}
		}
	}()
	r.T.Cleanup(func() { p.kill() })
	return p
}

func (p *runnerProcess) kill() {
	p.Process.Kill()
	for range p.out {
	}
	p.Wait()
}

// A runner is killed again and again while mail comes in: at any moment, between a text and its return key, or right
// after that. Every message is submitted or unread; a repeat says so; no text runs into another, a dialog or a turn;
// each life keeps the order; and no process is left.
func TestStressKills(t *testing.T) {
	t.Parallel()
	d := testround.Lasts(t, 5*time.Second)
	r := newRig(t)
	end := time.Now().Add(d)
	var mu sync.Mutex
	sent := map[string]wire.ID{}
	var senders sync.WaitGroup
	for s := range 2 {
		senders.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				mark := fmt.Sprintf("number %d.%d;", s, n)
				body := mark + " Pong, please."
				switch testround.Rand.IntN(8) {
				case 1:
					body = mark + " THINK 200ms"
				case 2:
					body = mark + "\n" + strings.Repeat("a line of some length\n", 40)
				}
				id := r.Send(body)
				mu.Lock()
				sent[mark] = id
				mu.Unlock()
				time.Sleep(time.Duration(testround.Rand.IntN(200)) * time.Millisecond)
			}
		})
	}

	var runs []string
	kills, between, behind := 0, 0, 0
	for time.Now().Before(end) {
		p := r.live(life{Restart: OnCrash, Fake: testagent.Options{}})
		runs = append(runs, p.run)
		switch testround.Rand.IntN(3) {
		case 0:
			time.Sleep(time.Duration(testround.Rand.IntN(2500)) * time.Millisecond)
		case 1:
			if r.last(testagent.Typed, 3*time.Second) {
				between++
			}
		case 2:
			if r.last(testagent.Submitted, 3*time.Second) {
				behind++
			}
		}
		p.kill()
		kills++
	}
	senders.Wait()

	last := r.live(life{Restart: OnCrash})
	runs = append(runs, last.run)
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		// It has started, and so has undone the previous runner's last text.
		info, _ := runinfo.Read(r.Store.Dir(), "bob")
		if ids, err := r.Bob.UnreadIDs(); err == nil && len(ids) == 0 && info.Run == last.run {
			if states := r.states(); strings.Contains(states[len(states)-1], `new="idle"`) {
				break // else what it has would be unread when it is stopped
			}
		}
		if time.Now().After(until) {
			t.Errorf("mail waits for ever; the screen:\n%s\nevents:\n%s", strings.Join(r.Screen(), "\n"), strings.Join(tailOf(r.Events(), 30), "\n"))
			break
		}
	}
	if _, err := r.Client().Stop(t.Context()); err != nil {
		t.Error(err)
	}
	last.Wait()

	for _, run := range runs {
		if left, err := process.Leftovers(run); err != nil || len(left) > 0 {
			t.Errorf("left by %s: %v, %v", run, left, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(r.Bob.Path(), "run", "claims.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a claim is left: %s %v", data, err)
	}
	submits, again := r.judge(t, sent)
	t.Logf("%s: %d messages in %d submits, %d of them again; %d kills, %d between a text and its return key, %d right behind that",
		d, len(sent), submits, again, kills, between, behind)
	if submits == 0 {
		t.Error("nothing was submitted")
	}
}

func tailOf(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// last waits until the agent's last text is in the draft (Typed) or was submitted.
func (r *rig) last(event string, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(r.T.Context(), d)
	defer cancel()
	from := time.Now()
	_, err := testagent.WaitLog(ctx, r.Log, func(es testagent.Entries) bool {
		for _, e := range slices.Backward(es) {
			if e.Event == testagent.Submitted || e.Event == testagent.Typed {
				return e.Event == event && !e.At.Before(from)
			}
		}
		return false
	})
	return err == nil
}

var (
	markOf = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`number (\d+)\.(\d+);`) })
	repeat = "may be a repeat"
)

// judge checks what the agents of all lives saw.
func (r *rig) judge(t *testing.T, sent map[string]wire.ID) (submits, again int) {
	t.Helper()
	es, err := testagent.ReadLog(r.Log)
	must(t, err)
	for _, e := range es {
		switch e.Event {
		case testagent.Queued, testagent.DialogKey:
			t.Errorf("%s %s %.200q", e.Event, e.Kind, e.Text)
		case testagent.Answered:
			if e.Kind != "permission" {
				t.Errorf("answered %s with %s", e.Kind, e.Option)
			}
		}
	}
	seen := map[string]int{}
	newest := map[string]int{} // by life and sender
	for _, e := range es.Of(testagent.Submitted) {
		submits++
		letters := strings.Split(e.Text, "[atm ")
		if letters[0] != "" {
			t.Errorf("before the first of our lines stands %.100q", letters[0])
		}
		for _, l := range letters[1:] {
			m := markOf().FindAllStringSubmatch(l, -1)
			if len(m) != 1 {
				t.Errorf("%d messages under one line: %.300q", len(m), l)
				continue
			}
			mark := m[0][0]
			line, _, _ := strings.Cut(l, "\n")
			if seen[mark]++; seen[mark] > 1 {
				again++
				if !strings.Contains(line, repeat) {
					t.Errorf("%s came again without a word: %q", mark, line)
				}
			}
			var n int
			fmt.Sscan(m[0][2], &n)
			of := fmt.Sprint(e.PID, " ", m[0][1])
			if before, ok := newest[of]; ok && n <= before {
				t.Errorf("in life %d: %s came behind number %d", e.PID, mark, before)
			}
			newest[of] = n
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(sent)) {
		if seen[mark] == 0 && !r.Unread(sent[mark]) {
			t.Errorf("%s counts as read, and was never submitted", mark)
		}
	}
	for mark := range seen {
		if _, ok := sent[mark]; !ok {
			t.Errorf("%s was never sent", mark)
		}
	}
	return submits, again
}

// What an agent left in a session of its own when its runner was killed is named and ended by the next runner.
func TestStressLeftovers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.live(life{Fake: testagent.Options{Trap: "HUP,TERM"}})
	r.Send("LEAVE-ORPHAN 10m")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := testagent.WaitLog(ctx, r.Log, func(es testagent.Entries) bool { return es.Has(testagent.Orphaned) }); err != nil {
		t.Fatal(err)
	}
	first.kill()
	left, err := leftovers(r.Bob)
	if err != nil || len(left) != 2 { // the agent ignores SIGHUP, too
		t.Fatalf("left %v, %v", left, err)
	}
	second := r.live(life{})
	select {
	case l := <-second.out:
		if len(l.Left) != 2 {
			t.Errorf("the next runner names %q", l.Left)
		}
	case <-ctx.Done():
		t.Fatal("the next runner names nothing")
	}
	if ps, err := process.Leftovers(first.run); err != nil || len(ps) > 0 {
		t.Errorf("still there: %v, %v", ps, err)
	}
	id := r.Send("hello")
	for !r.Read(id)() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if r.Unread(id) {
		t.Error("the next agent gets no mail")
	}
	if _, err := r.Client().Stop(t.Context()); err != nil {
		t.Error(err)
	}
	second.Wait()
}
