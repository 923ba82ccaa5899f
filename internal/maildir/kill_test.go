//go:build unix

package maildir_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
)

// With ATM_TEST_ROLE set the test binary is a process that does one thing to a team's mailboxes again and again until
// it is killed, or its test is. It prints everything that was reported to it as done.
func TestMain(m *testing.M) {
	role := os.Getenv("ATM_TEST_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	s, err := open(os.Args[1], nil)
	if err != nil {
		panic(err)
	}
	p := &process{store: s, r: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	if role == "scene" {
		playScene(p)
	}
	roles := map[string]func(){"send": p.send, "read": p.read, "drop": p.drop, "move": p.move, "retire": p.retire}
	p.say("begin")
	for parent := os.Getppid(); os.Getppid() == parent; {
		roles[role]()
		p.pause(4) // so that readers keep up
	}
}

type process struct {
	store *maildir.Store
	r     *rand.Rand
}

// start starts the test binary again in a role.
func start(t testing.TB, role, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0], path)
	// Without it the race detector waits a second at the end of each process.
	c.Env = append(append(os.Environ(), "ATM_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0"), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	must(t, err)
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	return c, s
}

// say prints one whole line, even if the process is killed right after.
func (p *process) say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// failed prints an error, unless killed processes and retired mailboxes explain it.
func (p *process) failed(b *maildir.Box, err error) bool {
	var held *lockfile.HeldError
	isGone := b.Agent() == "dave" && (errors.Is(err, maildir.ErrNoMailbox) || errors.Is(err, maildir.ErrNotFound))
	if err != nil && !isGone && !errors.As(err, &held) && !errors.Is(err, maildir.ErrWithdrawn) {
		p.say("error %s: %s", os.Getenv("ATM_TEST_ROLE"), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return err != nil
}

// pause waits for up to n milliseconds.
func (p *process) pause(ms int) { time.Sleep(time.Duration(p.r.IntN(1000*ms)) * time.Microsecond) }

// oneIn is true once in n times.
func (p *process) oneIn(n int) bool { return p.r.IntN(n) == 0 }

// box returns one of the mailboxes of a run. In bob's no message becomes unread again, in carol's some do, and dave's
// is retired and restored all the time.
func (p *process) box() *maildir.Box {
	return p.store.Box([]wire.Name{"bob", "carol", "dave"}[p.r.IntN(3)])
}

func sum(b []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(b)) }

// text returns a body of very different lengths.
func text(r *rand.Rand) string {
	n := 10 + r.IntN(2000)
	if r.IntN(20) == 0 {
		n = 60_000 + r.IntN(60_000)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz \n"[r.IntN(28)]
	}
	return string(b)
}

// sealed returns a message with a checksum of its own.
func sealed(id wire.ID, body string, ack bool) *wire.Message {
	return &wire.Message{ID: id, From: addr("alice"), Subject: sum([]byte(body)), Body: body, RequiresAck: ack, SentAt: id.Time()}
}

// isWhole reports whether a sealed message, or one from a dropped file with a checksum in its name, is as it was
// written.
func isWhole(s *maildir.Store, m *wire.Message) bool {
	content := []byte(m.Body)
	if len(m.Attachments) == 1 {
		f, err := filestore.Open(s.Dir(), m.Attachments[0])
		if err != nil {
			return false
		}
		defer f.Close()
		content, _ = io.ReadAll(f)
	}
	return sum(content) == m.Subject[strings.LastIndex(m.Subject, "-")+1:]
}

// given returns a message that every process makes alike in the same 20 ms, so that many send it at once, and again
// later. Its id is from a past day.
func (p *process) given() *wire.Message {
	n := time.Now().UnixMilli() / 20
	if p.oneIn(4) {
		n -= p.r.Int64N(100)
	}
	base := []byte("01950000-0000-7000-8000-000000000000")
	copy(base[5:], fmt.Sprintf("%03x", n*7919%0x1000)) // within three days, in no order
	return sealed(wire.Derive(fmt.Sprint("kill ", n), wire.ID(base), wire.Address{}), text(rand.New(rand.NewPCG(uint64(n), 7))), n%3 == 0)
}

// send sends several messages to several mailboxes at once, half of them with ids that other processes send too.
func (p *process) send() {
	var posts []*maildir.Post
	for range 1 + p.r.IntN(4) {
		post := &maildir.Post{Message: sealed(wire.NewID(), text(p.r), p.oneIn(3)), To: []*maildir.Box{p.box()}, Sender: p.store.Box("alice")}
		if p.oneIn(2) {
			post.Message, post.Given = p.given(), true
		}
		if p.oneIn(4) {
			post.To = []*maildir.Box{p.store.Box("bob"), p.store.Box("carol"), p.store.Box("dave")}
		}
		posts = append(posts, post)
	}
	maildir.Deliver(ctx, posts...)
	for _, post := range posts {
		for _, o := range post.Outcomes {
			retired := o.IsStored && o.Box.Agent() == "dave" && errors.Is(o.Err, os.ErrNotExist)
			if retired || !p.failed(o.Box, o.Err) {
				p.say("ack %s %s", o.Box.Agent(), post.Message.ID)
			} else if !post.Given && errors.Is(o.Err, maildir.ErrNoMailbox) {
				p.say("refused %s %s", o.Box.Agent(), post.Message.ID)
			}
		}
	}
}

// read reads as `atm read` does, beside other readers, one in ten times with a slow output.
func (p *process) read() {
	b := p.box()
	n := 0
	batch, err := inbox.Read(ctx, b, inbox.ReadOptions{Limit: 1 + p.r.IntN(30)}, func(batch inbox.Batch) (int, error) {
		for _, it := range batch.Items {
			if !strings.HasPrefix(it.Subject, "d-") && !isWhole(p.store, it.Message) {
				p.say("torn %s %s", b.Agent(), it.ID)
			}
			p.say("show %s %s", b.Agent(), it.ID)
		}
		if p.pause(4); p.oneIn(10) {
			p.pause(40)
		}
		if n = len(batch.Items); p.oneIn(4) {
			n = p.r.IntN(n + 1)
		}
		return n, nil
	})
	_, isUnmarked := errors.AsType[*inbox.UnmarkedError](err)
	_, isUnlogged := errors.AsType[*maildir.UnloggedError](err)
	if !p.failed(b, err) || isUnlogged && !isUnmarked {
		for _, it := range batch.Items[:n] {
			p.say("read %s %s", b.Agent(), it.ID)
		}
	}
}

// drop drops text, messages, events and large files, moved into the inbox or written in it piece by piece.
func (p *process) drop() {
	b := p.store.Box([]wire.Name{"bob", "carol"}[p.r.IntN(2)])
	unique := fmt.Sprintf("%d.%d", os.Getpid(), time.Now().UnixNano())
	content, said := []byte(text(p.r)), "drop"
	if p.oneIn(50) {
		content = slices.Repeat([]byte{byte(p.r.IntN(256)), 0, 255}, 500_000)
	}
	name := "d-" + unique + "-" + sum(content)
	file := name
	switch p.r.IntN(5) {
	case 0:
		m := p.given() // whose id does not count
		name, file = "d-"+unique+"-"+m.Subject, unique+".json"
		m.Subject = name
		content, _ = m.Encode()
	case 1:
		content, said, name, file = []byte(`{"event_type":"agent_output","stream":"std_out","content":"`+unique+`"}`), "event", unique, unique+".json"
	}
	into := filepath.Join(b.Path(), "inbox", []string{"", "", "", "new"}[p.r.IntN(4)], file)
	if p.oneIn(3) {
		f, err := os.OpenFile(into, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		for len(content) > 0 && err == nil {
			n := 1 + p.r.IntN(len(content))
			_, err = f.Write(content[:n])
			content = content[n:]
			p.pause(1)
		}
		p.failed(b, errors.Join(err, f.Close()))
	} else {
		from := b.Store().Dir().Join(".dropping/" + file)
		os.Mkdir(filepath.Dir(from), 0o700)
		p.failed(b, errors.Join(os.WriteFile(from, content, 0o600), os.Rename(from, into)))
	}
	p.say("%s %s %s", said, b.Agent(), name)
}

// move marks as read and acknowledged, withdraws, puts back, and moves to the archive.
func (p *process) move() {
	b := p.box()
	if p.oneIn(3) {
		if m, err := keep.GC(ctx, b, keep.GCOptions{Before: time.Now().AddDate(0, 0, 2), KeepLast: p.r.IntN(3)}); !p.failed(b, err) && m.Messages > 0 {
			p.say("archived")
		}
		return
	}
	var some []*wire.Item
	_, err := inbox.Walk(ctx, b, maildir.Range{Unread: p.oneIn(2), Owed: p.oneIn(2), Done: p.oneIn(2), Archive: true, Newest: true, Limit: 30}, func(it *wire.Item) bool {
		some = append(some, it)
		return true
	})
	if p.failed(b, err) || len(some) == 0 {
		return
	}
	it := some[p.r.IntN(len(some))]
	switch {
	case it.State == wire.Unread && p.oneIn(2):
		err = b.MarkRead(ctx, it.ID)
	case it.State == wire.Unread && p.oneIn(8):
		_, err = b.WithdrawRead(ctx, it.ID, it.From, nil)
	case it.State == wire.Owed:
		err = b.MarkAcked(ctx, it.ID, b.Address())
	case it.State == wire.Done && b.Agent() == "carol":
		p.say("unread %s %s", b.Agent(), it.ID)
		err = b.MarkUnread(ctx, it.ID)
	}
	if !p.failed(b, err) {
		p.say("moved")
	}
}

func (p *process) retire() {
	b := p.store.Box("dave")
	if _, err := keep.Retire(ctx, p.store, "dave"); !p.failed(b, err) {
		p.say("retired")
	}
	time.Sleep(20 * time.Millisecond) // in which mail is refused
	if err := keep.Restore(ctx, p.store, "dave"); !errors.Is(err, maildir.ErrExists) {
		p.failed(b, err)
	}
	time.Sleep(10 * time.Millisecond)
}

// said counts the lines that the processes of a run printed.
type said map[string]int

// each calls f with the agent and the rest of every line that begins with word, and with its count.
func (a said) each(word string, f func(agent wire.Name, rest string, n int)) {
	for line, n := range a {
		if w := strings.SplitN(line, " ", 3); w[0] == word && len(w) == 3 {
			f(wire.Name(w[1]), w[2], n)
		}
	}
}

// killAll keeps the given number of processes of each role alive and kills them at random, until the time is over and
// all wanted lines were printed (ten times as long at most). It returns what they printed.
func killAll(t *testing.T, s *maildir.Store, lasting time.Duration, roles map[string]int, wanted ...string) said {
	t.Helper()
	lasting = testround.Lasts(t, lasting)
	var mu sync.Mutex
	a, words := said{}, map[string]int{}
	begin := time.Now()
	goesOn := func() bool {
		mu.Lock()
		defer mu.Unlock()
		missing := slices.ContainsFunc(wanted, func(word string) bool { return words[word] == 0 })
		return time.Since(begin) < lasting || missing && time.Since(begin) < 45*lasting
	}
	live := func(role string) {
		c, out := start(t, role, s.Dir().Path())
		for out.Scan() {
			word, _, _ := strings.Cut(out.Text(), " ")
			switch word {
			case "begin": // however long the start took; on a busy machine they get more and more time
				kill := time.Duration(10+rand.IntN(500)) * time.Millisecond * (1 + time.Since(begin)/lasting)
				time.AfterFunc(kill, func() { c.Process.Kill() })
			case "error", "torn":
				t.Error(out.Text())
			}
			mu.Lock()
			a[out.Text()]++
			words[word]++
			mu.Unlock()
		}
		c.Wait()
		if how := c.ProcessState.Sys().(syscall.WaitStatus); !how.Signaled() || how.Signal() != syscall.SIGKILL {
			t.Errorf("%s ended by itself: %v", role, c.ProcessState)
		}
	}
	var all sync.WaitGroup
	for role, n := range roles {
		for range n {
			all.Go(func() {
				for goesOn() {
					live(role)
				}
			})
		}
	}
	all.Wait()
	for _, word := range wanted {
		if words[word] == 0 {
			t.Errorf("nothing was said of %q", word)
		}
	}
	t.Log(words)
	return a
}

func TestKilled(t *testing.T) {
	s := newStore(t, "alice", "bob", "carol", "dave")
	a := killAll(t, s, 4*time.Second, map[string]int{"send": 4, "read": 4, "drop": 1, "move": 3, "retire": 1},
		"ack", "drop", "show", "read", "moved", "unread", "archived", "retired", "refused", "event")
	if err := keep.Restore(ctx, s, "dave"); err != nil && !errors.Is(err, maildir.ErrExists) {
		t.Fatal(err)
	}
	names, events, reads := map[string]int{}, map[string]int{}, map[string]int{} // by agent
	all := map[wire.Name]census{}
	for _, agent := range []wire.Name{"bob", "carol", "dave"} {
		b := s.Box(agent)
		settleDrops(t, b)
		c := takeCensus(t, b)
		c.sound(t)
		all[agent] = c
		for id, m := range c.texts {
			acked := a[fmt.Sprintf("ack %s %s", agent, id)] > 0
			if strings.HasPrefix(m.Subject, "d-") {
				names[string(agent)+" "+m.Subject]++
				acked = a[fmt.Sprintf("drop %s %s", agent, m.Subject)] > 0
			}
			// (A process that was killed while it wrote a file leaves a part.)
			if (acked || m.Origin == nil) && !isWhole(s, m) {
				t.Errorf("torn: %s of %s", id, agent)
			}
		}
		for _, bad := range c.bad {
			name, _, _ := strings.Cut(bad, ".")
			if a[fmt.Sprintf("ack %s %s", agent, name)] > 0 && len(c.places[wire.ID(name)]) == 0 {
				t.Errorf("set aside as bad in the mailbox of %s: %s", agent, bad)
			}
		}
		for _, e := range eventsOf(t, b) {
			var w struct{ Content string }
			json.Unmarshal(e.Wire, &w)
			switch {
			case e.Kind == wire.EventRead:
				reads[string(agent)+" "+string(e.MessageID())]++
			case e.Wire != nil:
				events[string(agent)+" "+w.Content]++
			}
		}
	}
	a.each("ack", func(agent wire.Name, id string, _ int) {
		if len(all[agent].places[wire.ID(id)]) == 0 {
			t.Errorf("lost: %s, acknowledged to the sender, is nowhere in the mailbox of %s", id, agent)
		}
	})
	a.each("refused", func(agent wire.Name, id string, _ int) {
		if len(all[agent].places[wire.ID(id)]) > 0 {
			t.Errorf("%s was refused, and is in the mailbox of %s", id, agent)
		}
	})
	for word, found := range map[string]map[string]int{"drop": names, "event": events} {
		a.each(word, func(agent wire.Name, what string, _ int) {
			if found[string(agent)+" "+what] == 0 {
				t.Errorf("lost: %s %s of %s", word, what, agent)
			}
		})
		for what, n := range found {
			if n > 1 {
				t.Errorf("doubled: %s %s is there %d times", word, what, n)
			}
		}
	}
	// Two readers may see a message, which moves once, and once more each time it was put back.
	back := map[string]int{}
	a.each("unread", func(agent wire.Name, id string, n int) { back[string(agent)+" "+id] = n })
	a.each("read", func(agent wire.Name, id string, _ int) {
		if back[string(agent)+" "+id] == 0 && all[agent].place(wire.ID(id)) == "new" {
			t.Errorf("read by somebody, and unread: %s of %s", id, agent)
		}
	})
	for what, n := range reads {
		if n > 1+back[what] {
			t.Errorf("doubled: the log says %d times that %s was read", n, what)
		}
	}
}
