//go:build unix

package mailbox

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// The test binary, executed again with ATM_TEST_ROLE set, is a process that does one
// thing to a team's mailboxes, again and again, until it is killed. It says on its
// output what it was told is done.
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
	p.say("begin")
	for do := roles[role]; ; {
		do(p)
	}
}

// roles are what processes do, again and again.
var roles map[string]func(*process)

func init() { // not where it is declared: the roles use what uses it
	roles = map[string]func(*process){
		"send": (*process).send, "batch": (*process).batch, "given": (*process).given, "read": (*process).read,
		"slow": (*process).slow, "drop": (*process).drop, "move": (*process).move, "gc": (*process).gc,
		"retire": (*process).retire, "append": (*process).append,
	}
}

type process struct {
	store *Store
	r     *rand.Rand
}

// start starts the test binary again in a role.
func start(t testing.TB, role, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0], path)
	// The race detector would wait a second at each process's end.
	c.Env = append(append(os.Environ(), "ATM_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0"), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	return c, s
}

// say prints one line, whole, even if the process is killed right after.
func (p *process) say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// failed says what went wrong, unless it is what must be expected among processes that
// are killed and mailboxes that are retired.
func (p *process) failed(b *Box, err error) bool {
	var held *lockfile.HeldError
	switch {
	case err == nil:
		return false
	case errors.As(err, &held):
		p.say("busy")
	case b.agent == "dave" && (errors.Is(err, ErrNoAgent) || errors.Is(err, ErrNotFound)):
	case errors.Is(err, ErrWithdrawn), errors.Is(err, ErrBeingTyped):
	default:
		p.say("error %s: %s", os.Getenv("ATM_TEST_ROLE"), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return true
}

// pause waits for up to so many milliseconds: readers shall keep up.
func (p *process) pause(ms int) { time.Sleep(time.Duration(p.r.IntN(1000*ms)) * time.Microsecond) }

// oneIn is true once in so many times.
func (p *process) oneIn(n int) bool { return p.r.IntN(n) == 0 }

// box is one of the mailboxes of a stress run: in bob's nothing goes back to unread, in
// carol's it does, and dave's is retired and restored all the time.
func (p *process) box() *Box { return p.store.Box([]wire.Name{"bob", "carol", "dave"}[p.r.IntN(3)]) }

func sum(b []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(b)) }

// text is a body whose length differs much.
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

// sealed is a message that says itself whether it is whole.
func sealed(id wire.ID, body string, ack bool) *wire.Message {
	return &wire.Message{ID: id, From: addr("alice"), Subject: sum([]byte(body)), Body: body, RequiresAck: ack, SentAt: id.Time()}
}

// whole reports whether a sealed message, or one made of a dropped file whose name has
// its checksum, is as it was written.
func (p *process) whole(m *wire.Message) bool {
	want := m.Subject[strings.LastIndex(m.Subject, "-")+1:]
	if len(m.Attachments) == 1 {
		f, err := p.store.Attachment(m.Attachments[0])
		if err != nil {
			return false
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		return err == nil && sum(b) == want
	}
	return sum([]byte(m.Body)) == want
}

func (p *process) deliver(posts ...*Post) {
	Deliver(ctx, posts...)
	for _, post := range posts {
		for _, o := range post.Outcomes {
			retired := o.Stored && o.Box.agent == "dave" && errors.Is(o.Err, os.ErrNotExist)
			if retired || !p.failed(o.Box, o.Err) {
				p.say("ack %s %s", o.Box.agent, post.Message.ID)
			} else if !post.Given && errors.Is(o.Err, ErrNoAgent) {
				p.say("refused %s %s", o.Box.agent, post.Message.ID)
			}
		}
	}
}

func (p *process) send() {
	p.deliver(&Post{Message: sealed(wire.NewID(), text(p.r), p.oneIn(3)), To: []*Box{p.box()}, Sender: p.store.Box("alice")})
	p.pause(4)
}

// batch sends several to several at once.
func (p *process) batch() {
	var posts []*Post
	for range 1 + p.r.IntN(8) {
		to := []*Box{p.store.Box("bob"), p.store.Box("carol"), p.store.Box("dave")}
		posts = append(posts, &Post{Message: sealed(wire.NewID(), text(p.r), p.oneIn(3)), To: to[:1+p.r.IntN(3)]})
	}
	p.deliver(posts...)
	p.pause(20)
}

// nth is a message that every process makes alike: its id, of a day in the past, is sent
// by many at the same time and again later.
func nth(n int64) *wire.Message {
	base := []byte("01950000-0000-7000-8000-000000000000")
	copy(base[5:], fmt.Sprintf("%03x", n*7919%0x1000)) // within three days, in no order
	return sealed(wire.Derive("kill "+strconv.FormatInt(n, 10), wire.ID(base), wire.Address{}), text(rand.New(rand.NewPCG(uint64(n), 7))), n%3 == 0)
}

// slot counts 20 milliseconds: what is sent at the same time has the same id.
func slot() int64 { return time.Now().UnixMilli() / 20 }

func (p *process) given() {
	n := slot()
	if p.oneIn(4) {
		n -= p.r.Int64N(100)
	}
	post := &Post{Message: nth(n), To: []*Box{p.box()}, Given: true}
	if p.oneIn(4) {
		post.To = []*Box{p.store.Box("bob"), p.store.Box("carol")}
	}
	p.deliver(post)
	p.pause(4)
}

// read reads as `atm read` does. While it shows, under the lock, it holds a record lock
// on another file, which tells whether somebody else does too.
func (p *process) read() {
	b := p.box()
	oracle, err := os.OpenFile(b.store.root.Join(".oracle-"+string(b.agent)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer oracle.Close()
	record := func(kind int16) error { return unix.FcntlFlock(oracle.Fd(), unix.F_SETLK, &unix.Flock_t{Type: kind}) }
	var began time.Time
	var n int
	var within bool
	batch, err := b.Read(ctx, ReadOptions{Limit: 1 + p.r.IntN(30), LookAhead: p.r.IntN(3)}, func(batch Batch) (int, error) {
		began = time.Now()
		if len(batch.Items) == 0 {
			return 0, nil
		}
		if record(unix.F_WRLCK) != nil {
			p.say("two readers show mail of %s", b.agent)
		}
		for _, it := range batch.Items {
			if !strings.HasPrefix(it.Subject, "d-") && !p.whole(it.Message) {
				p.say("torn %s %s", b.agent, it.ID)
			}
			p.say("show %s %s", b.agent, it.ID)
		}
		p.pause(4) // the output is slow
		record(unix.F_UNLCK)
		n = len(batch.Items)
		if p.oneIn(4) {
			n = p.r.IntN(n + 1)
		}
		within = time.Since(began) < showUnderLock/2
		return n, nil
	})
	if p.failed(b, err) || p.failed(b, batch.Unmarked) {
		return
	}
	p.failed(b, batch.Unlogged)
	if within {
		for _, it := range batch.Items[:n] {
			p.say("read %s %s", b.agent, it.ID)
		}
	}
}

// slow reads with an output that takes longer than the lock is held.
func (p *process) slow() {
	showUnderLock = 10 * time.Millisecond
	b := p.box()
	batch, err := b.Read(ctx, ReadOptions{Limit: 3}, func(batch Batch) (int, error) {
		for _, it := range batch.Items {
			p.say("show %s %s", b.agent, it.ID)
			time.Sleep(10 * time.Millisecond)
		}
		return len(batch.Items), nil
	})
	_ = p.failed(b, err) || p.failed(b, batch.Unmarked) || p.failed(b, batch.Unlogged)
}

// drop drops files: text, messages, events, large ones; moved into the inbox, or written
// in it piece by piece.
func (p *process) drop() {
	b := p.store.Box([]wire.Name{"bob", "carol"}[p.r.IntN(2)])
	unique := fmt.Sprintf("%d.%d", os.Getpid(), time.Now().UnixNano())
	content, said := []byte(text(p.r)), "drop"
	name := "d-" + unique + "-" + sum(content)
	file := name
	switch p.r.IntN(5) {
	case 0:
		m := sealed(wire.NewID(), text(p.r), p.oneIn(2))
		if p.oneIn(2) {
			m = nth(slot() - p.r.Int64N(50))
		}
		content, _ = m.Encode()
		said, name, file = "ack", string(m.ID), string(m.ID)+"."+unique+".json"
	case 1:
		content, said, name, file = []byte(`{"event_type":"agent_output","stream":"std_out","content":"`+unique+`"}`), "event", unique, unique+".json"
	case 2:
		if p.oneIn(10) {
			content = slices.Repeat([]byte{byte(p.r.IntN(256)), 0, 255}, 500_000)
			name = "d-" + unique + "-" + sum(content)
			file = name
		}
	}
	into := filepath.Join(b.Path(), "inbox")
	if p.oneIn(4) {
		into = filepath.Join(into, "new")
	}
	if p.oneIn(3) {
		f, err := os.OpenFile(filepath.Join(into, file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		for len(content) > 0 && err == nil {
			n := 1 + p.r.IntN(len(content))
			_, err = f.Write(content[:n])
			content = content[n:]
			p.pause(1)
		}
		p.failed(b, errors.Join(err, f.Close()))
	} else {
		from := b.store.root.Join(".dropping/" + file)
		os.Mkdir(filepath.Dir(from), 0o700)
		p.failed(b, errors.Join(os.WriteFile(from, content, 0o600), os.Rename(from, filepath.Join(into, file))))
	}
	p.say("%s %s %s", said, b.agent, name)
	time.Sleep(time.Millisecond)
}

// move marks as read and acknowledged, withdraws and puts back.
func (p *process) move() {
	b := p.box()
	var some []*Item
	_, _, err := b.Walk(ctx, Range{Unread: p.oneIn(2), Owed: p.oneIn(2), Done: p.oneIn(2), Archive: true, Newest: true, Limit: 30}, func(it *Item) bool {
		some = append(some, it)
		return true
	})
	if p.failed(b, err) || len(some) == 0 {
		return
	}
	it := some[p.r.IntN(len(some))]
	switch {
	case it.State == Unread && p.oneIn(2):
		err = b.MarkRead(ctx, it.ID)
	case it.State == Unread && p.oneIn(8):
		_, err = b.Withdraw(ctx, it.ID, it.From)
	case it.State == Owed:
		err = b.MarkAcked(ctx, it.ID, b.Address(), p.oneIn(2))
	case it.State == Done && b.agent == "carol":
		p.say("unread %s %s", b.agent, it.ID)
		err = b.MarkUnread(ctx, it.ID)
	}
	if !p.failed(b, err) {
		p.say("moved")
	}
}

func (p *process) gc() {
	b := p.box()
	if m, err := b.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2), KeepLast: p.r.IntN(3)}); !p.failed(b, err) && m.Messages > 0 {
		p.say("archived")
	}
	time.Sleep(5 * time.Millisecond)
}

func (p *process) retire() {
	b := p.store.Box("dave")
	if _, err := p.store.Retire(ctx, "dave"); !p.failed(b, err) {
		p.say("retired")
	}
	if err := p.store.Restore(ctx, "dave"); !errors.Is(err, ErrExists) {
		p.failed(b, err)
	}
	time.Sleep(10 * time.Millisecond)
}

func (p *process) append() {
	b := p.store.Box("bob")
	e := wire.Event{Kind: "test", Source: "cli", EventID: string(wire.NewID())}
	if !p.failed(b, b.Log().Append(ctx, e)) {
		p.say("event %s %s", b.agent, e.EventID)
	}
	p.pause(2)
}
