//go:build unix

package crashtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

var (
	takers  = []string{"alice", "bob", "carol", "dave", "erin"} // all who read mail
	readers = takers[1:4]                                       // erin is retired from time to time
)

// A job is n processes at a time, each of one of these kinds.
type job struct {
	n     int
	kinds []func(*world)
}

// stress makes a kind of an action: it is begun on a message that was sent a moment ago.
func stress(begin func(w *world, at target) action) func(*world) {
	return func(w *world) {
		if a := begin(w, w.someTarget()); !slices.Contains(a.args, "") { // else there is no such message
			w.tryAction(a)
		}
	}
}

var (
	sends   = []func(*world){stress(send), stress(sendWithoutID), stress(sendToThree), stress(sendFile), (*world).sendAgain, (*world).sendBatch, (*world).sendToErin}
	answers = []func(*world){stress(ack), stress(ack), stress(reply), stress(withdraw), (*world).putBack}
	events  = []func(*world){stress(event1), stress(stream), stress(route), (*world).streamSlowly}
)

var stressJobs = []job{
	{4, sends},
	{5, []func(*world){(*world).read}},
	{2, []func(*world){(*world).wait, (*world).ask}},
	{2, answers},
	{1, []func(*world){(*world).drop}},
	{1, []func(*world){stress(gc), (*world).look, (*world).look}},
	{1, []func(*world){(*world).backup}},
	{1, []func(*world){(*world).retire}},
}

var hookJobs = []job{
	{3, []func(*world){(*world).live}},
	{1, sends},
	{1, []func(*world){(*world).read}},
	{1, answers},
	{2, events},
	{1, []func(*world){(*world).tear}},
	{1, []func(*world){(*world).see}},
	{1, []func(*world){(*world).drop, func(*world) { time.Sleep(100 * time.Millisecond) }}},
	{1, []func(*world){stress(gc)}},
}

// work has the jobs done until over says so.
func (w *world) work(jobs []job, over func() bool) {
	var all sync.WaitGroup
	for _, j := range jobs {
		for range j.n {
			all.Go(func() {
				for !over() {
					one(j.kinds...)(w)
				}
			})
		}
	}
	all.Wait()
}

// stressed runs a test for as long as ATM_STRESS says, or for d in memory. Most happens there in
// a second; half of a longer time is spent on a disk, whose syncs take their time.
func stressed(t *testing.T, d time.Duration, test func(t *testing.T, dir string, d time.Duration)) {
	if !testround.IsLong {
		test(t, memory(t), d)
		return
	}
	d = testround.Lasts(t, d)
	if dir := os.Getenv("ATM_STRESS_DIR"); dir != "" {
		test(t, dir, d)
		return
	}
	t.Run("memory", func(t *testing.T) { test(t, memory(t), d/2) })
	t.Run("disk", func(t *testing.T) { test(t, t.TempDir(), d/2) })
}

// Senders, readers, droppers and keepers work on one team, and one process in three is killed.
// What was acknowledged is there, once and whole; what was read was seen.
func TestStress(t *testing.T) {
	stressed(t, 3*time.Second, func(t *testing.T, dir string, d time.Duration) {
		w := newWorld(t, dir, takers...)
		end := time.Now().Add(d)
		w.work(stressJobs, func() bool { return time.Now().After(end) })
		w.judge(w.settle())
		file := filepath.Join(w.home, "last.tar")
		w.must("backup", file)
		other := w.at(w.root + "-restored")
		other.must("restore", file)
		other.judge(other.census())
		w.drain()
		w.report(t, d.String())
	})
}

// Sessions of agents whose hooks call atm, senders, readers, writers of events and gc work on one
// team, and one process in three is killed. Every event that was acknowledged is in the log, once;
// every message was handed over or read, or is unread; none goes out twice without saying so, no
// claim stays, and what is said of an agent stands in its events.
func TestStressHooks(t *testing.T) {
	stressed(t, 2*time.Second, func(t *testing.T, dir string, d time.Duration) {
		w := newWorld(t, dir, takers...)
		// A log that is full: a new segment is begun while all are at work, and what is counted here goes
		// to the archive.
		for range 3 {
			w.must("event", "counted", "--as", "bob")
		}
		w.fillLog("bob", never)
		end := time.Now().Add(d)
		var ended atomic.Bool
		var watching sync.WaitGroup
		followers := []*follower{{world: w, agent: "alice"}, {world: w, agent: "bob"}}
		for _, f := range followers {
			watching.Go(func() { f.follow(ended.Load) })
		}
		fill := func(w *world) { w.fill(int(d / (4 * time.Second))) }
		w.work(append(hookJobs, job{1, []func(*world){fill}}), func() bool { return time.Now().After(end) })
		ended.Store(true)
		watching.Wait()
		c := w.settle()
		w.judge(c)
		w.judgeStatus(takers...)
		w.judgeArchive(takers...)
		for _, f := range followers {
			f.end(c)
		}
		for i, agent := range readers {
			w.handOut(agent, i%2 == 0)
		}
		w.drain()
		w.report(t, d.String())
	})
}

// A reader whose output nobody takes holds up no other reader, and takes nothing with it when it goes.
func TestBlockedReader(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "left", "late"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, memory(t), takers...)
			w.size = 7000
			for range 30 {
				w.mail("bob")
			}
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			blocked := w.command(nil, "read", "--full", "--as", "bob")
			blocked.Stdout = in
			w.want(blocked.Start())
			in.Close()
			first := make([]byte, 10)
			if _, err := io.ReadFull(out, first); err != nil { // it has chosen once there is something in the pipe
				t.Fatal(err)
			}
			r := w.run(call{args: []string{"read", "--full", "--as", "bob", "--lock-timeout", "1ms"}, reader: "bob"})
			if seen, _ := shown(r.out); len(seen) != 30 {
				t.Errorf("%d of 30 messages shown", len(seen))
			}
			later := w.mail("bob") // which the blocked one does not know of
			switch how {
			case "killed":
				blocked.Process.Kill()
			case "left":
				out.Close()
			case "late":
				if seen, _ := shown(string(first) + all(out)); len(seen) != 30 {
					t.Errorf("the late one was shown %d of 30", len(seen))
				}
			}
			blocked.Wait()
			c := w.settle()
			w.judge(c)
			w.want(c.isIn("bob", "new", later))
			if r := w.must("ls", "--count", "--as", "bob"); r.out != "1\n" {
				t.Errorf("unread: %s", r.out)
			}
			w.failed(t)
		})
	}
}

// settle has everything taken in that was dropped, and counts.
func (w *world) settle() *census {
	w.run(call{args: []string{"team", "restore", "erin"}, exits: []int{3, 5}})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		for _, me := range takers {
			w.run(call{args: []string{"ls", "--count", "--as", me}})
		}
		if c := w.census(); len(c.pending()) == 0 || time.Now().After(end) {
			for _, path := range c.pending() {
				w.wrong("not taken in: %s", path)
			}
			return c
		}
	}
}

// drain reads all that is unread, and judges once more.
func (w *world) drain() {
	for _, me := range takers {
		w.readAll(me)
	}
	w.judge(w.census())
}

func (w *world) readAll(me string) {
	for range 2 {
		w.run(call{args: []string{"read", "--full", "--as", me}, reader: me})
	}
	if r := w.must("ls", "--count", "--as", me); r.out != "0\n" {
		w.wrong("unread by %s after everything was read: %s", me, r.out)
	}
}

// someTarget is one reader's mailbox, and a message there that was sent not long ago; except carol,
// nobody answers what they have not seen.
func (w *world) someTarget() target {
	me, id, n := one(readers...), "", 0
	defer w.locked()()
	for k, it := range w.items {
		isSeen := me == "carol" || it.shown > 0
		if k.agent == me && it.id != "" && it.from == "alice" && time.Since(it.at) < time.Second && isSeen {
			if n++; testround.Rand.IntN(n) == 0 {
				id = it.id
			}
		}
		if n > 50 {
			break
		}
	}
	return target{me: me, unread: id, asks: id, owed: id, done: id, old: id}
}

// tryAction runs an action that may be killed. What is the same message each time is sent by two
// processes at once, and kept for later.
func (w *world) tryAction(a action) {
	again := slices.Contains(a.args, "--once") || strings.Contains(a.stdin, `"id":`) || len(a.events) > 0 && strings.Contains(a.stdin+strings.Join(a.args, ""), "event_id")
	if !again || testround.Rand.IntN(2) == 0 {
		w.try(a.call)
		return
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			pause(3)
			w.try(a.call)
		})
	}
	both.Wait()
	if len(a.events) > 0 { // whose ids are not known for long
		w.try(a.call)
		return
	}
	defer w.locked()()
	w.retries = append(w.retries, a.call)
}

// sendAgain sends once more what may have been read, put back, withdrawn or archived meanwhile.
func (w *world) sendAgain() {
	w.mu.Lock()
	n := len(w.retries)
	var c call
	if n > 0 {
		c = w.retries[testround.Rand.IntN(n)]
	}
	w.mu.Unlock()
	if n > 0 {
		w.try(c)
		w.add("sent again", 1)
	}
}

func (w *world) sendBatch() {
	a := w.batching(1+testround.Rand.IntN(20), false)
	a.slowly = true
	w.try(a.call)
}

// sendToErin sends to one or several of whom one may not be there.
func (w *world) sendToErin() {
	a := w.sending("alice", one([]string{"erin"}, takers[2:]), "--", "--json")
	a.exits = []int{3, 6}
	w.try(a.call)
}

func (w *world) streamSlowly() {
	a := w.streaming(one(readers...), 1+testround.Rand.IntN(30), false)
	a.slowly = true
	w.try(a.call)
}

// putBack has carol put something back.
func (w *world) putBack() {
	if at := w.someTarget(); at.me == "carol" && at.done != "" {
		w.tryAction(unread(w, at))
		w.add("put back", 1)
	}
}

// newID is a UUIDv7 of so many days ago.
func newID(days int) string {
	ms := time.Now().AddDate(0, 0, -days).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7%03x-%x%03x-%012x",
		ms>>16, ms&0xffff, testround.Rand.IntN(1<<12), 8+testround.Rand.IntN(4), testround.Rand.IntN(1<<12), rand.Int64N(1<<48))
}

// read reads what there is, and somebody takes its output: all of it, or the beginning, as a pager
// that is quit does, or late; or it goes to a file, or to a disk that is full.
func (w *world) read() {
	me := one(takers...)
	c := call{args: append([]string{"read", "--as", me}, one(nil, nil, []string{"--full"}, []string{"--json"}, []string{"--limit", "3"}, []string{"--from", "alice"})...), reader: me}
	if me == "erin" {
		c.exits = []int{3} // retired
	}
	switch testround.Rand.IntN(24) {
	default:
	case 0, 1, 2, 3, 4, 5, 6, 7:
		n := testround.Rand.IntN(1 << (4 + testround.Rand.IntN(12)))
		c.exits = append(c.exits, 1)
		c.taker = func(out *os.File) string {
			// At most for 1.5 s: one who reads nothing for 2 s is taken for one who reads later.
			out.SetReadDeadline(time.Now().Add(1200 * time.Millisecond))
			b, _ := io.ReadAll(io.LimitReader(out, int64(n)))
			if testround.Rand.IntN(20) == 0 {
				pause(400)
			}
			return string(b)
		}
	case 8:
		c.taker = func(out *os.File) string { // later than the lock is held
			time.Sleep(1500 * time.Millisecond)
			pause(1500)
			return all(out)
		}
		w.run(c)
		return
	case 9, 10, 11:
		f, err := os.Create(filepath.Join(w.home, "read"+newID(0)))
		if err != nil {
			w.t.Error(err)
			return
		}
		defer f.Close()
		c.out = f
		w.try(c)
		b, _ := os.ReadFile(f.Name())
		tokens, begun := shown(string(b))
		w.saw(me, append(tokens, inJSON(string(b))...), begun, time.Time{})
		return
	case 12:
		if f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
			defer f.Close()
			c.out, c.exits = f, append(c.exits, 1)
		}
	}
	w.try(c)
}

// all reads to the end.
func all(out *os.File) string {
	b, _ := io.ReadAll(out)
	return string(b)
}

// wait waits for mail, and is killed before or after, or waits in vain.
func (w *world) wait() {
	me := one(takers...)
	c := call{args: []string{"read", "--wait", "--timeout", "1s", "--as", me}, reader: me, kill: 5 * mortal(), exits: []int{4}}
	if me == "erin" {
		c.exits = []int{4, 3, 1} // retired, perhaps while it waits
	}
	if testround.Rand.IntN(3) == 0 {
		c.args = []string{"read", "--follow", "--as", one(readers...)}
		c.reader, c.kill = c.args[3], time.Duration(20+testround.Rand.IntN(800))*time.Millisecond
	}
	w.run(c)
}

// ask sends, and waits for the answer, which somebody gives.
func (w *world) ask() {
	a := w.sending("alice", []string{"bob"}, "--", "--once", newID(0))
	sent := a.call
	sent.args = slices.Insert(slices.Clone(a.args), 2, "--json")
	w.run(sent)
	id := w.idOf("bob", a)
	if id == "" {
		return // a lock was not got
	}
	a.args = slices.Insert(a.args, 2, "--wait-reply", "--timeout", "400ms")
	a.exits, a.reader, a.kill = []int{4}, "alice", 5*mortal()
	var answer sync.WaitGroup
	answer.Go(func() {
		pause(100)
		w.excuse("bob", id)
		a := reply(w, target{me: "bob", owed: id})
		a.exits = []int{3} // not there yet
		w.try(a.call)
	})
	w.run(a.call)
	answer.Wait()
}

// look asks for what changes nothing.
func (w *world) look() {
	me := one(readers...)
	w.try(call{args: one([]string{"ls", "--as", me}, []string{"ls", "--count", "--as", me}, []string{"ls", "--all", "--limit", "0", "--as", me},
		[]string{"ls", "--sent", "--as", "alice"}, []string{"read", "--last", "--as", me}, []string{"read", "--peek", "--as", me},
		[]string{"team"}, []string{"ls", "--bad", "--as", me}, []string{"watch", "--since", "1s", "--no-follow"})})
	if at := w.someTarget(); at.done != "" {
		w.try(call{args: []string{one("show", "trace", "thread"), at.done, "--as", "alice"}})
	}
}

// retire moves the spare agent away and brings them back.
func (w *world) retire() {
	w.try(call{args: []string{"team", "retire", "erin"}, exits: []int{3}})
	pause(20)
	w.try(call{args: []string{"team", "restore", "erin"}, exits: []int{3, 5}})
	w.add("retirements", 1)
	pause(50)
}

// backup takes a backup while all others work, and looks into it: what was acknowledged before it
// began is in it, whole.
func (w *world) backup() {
	pause(200)
	var want []key
	w.mu.Lock()
	for k, it := range w.items {
		if it.id != "" && k.agent != "erin" {
			want = append(want, k)
		}
	}
	w.mu.Unlock()
	file := filepath.Join(w.home, "backup-"+newID(0)+".tar")
	defer os.Remove(file)
	r := w.run(call{args: []string{"backup", file}, kill: 4 * mortal()})
	if _, err := os.Stat(file); r.code != 0 && err != nil {
		return
	}
	c := w.unpack(file)
	for _, k := range want {
		if !c.has(k) {
			w.wrong("not in the backup: %s of %s", k.token, k.agent)
		}
	}
	w.add("backups", 1)
}

// unpack is the census of a backup.
func (w *world) unpack(file string) *census {
	dir := filepath.Join(w.home, "unpacked-"+newID(0))
	defer os.RemoveAll(dir)
	w.want(os.Mkdir(dir, 0o700))
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		w.wrong("backup: %v: %s", err, out)
	}
	c := w.at(dir).census()
	for _, s := range c.torn {
		if strings.Contains(s, ".json: ") && !strings.Contains(s, "attached") { // of what came since it began
			w.wrong("torn in the backup: %s", s)
		}
	}
	return c
}
