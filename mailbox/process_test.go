//go:build unix

package mailbox

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
	"golang.org/x/sys/unix"
)

// The test binary, executed again with ATM_TEST_ROLE set, is a process that
// does one thing to a team's mailboxes, again and again, until it is killed. It
// says on its output what it was told is done.
func TestMain(m *testing.M) {
	if role := os.Getenv("ATM_TEST_ROLE"); role != "" {
		become()
		if start := roles[role]; start != nil {
			start(newProcess(os.Args[1]))
		}
		fmt.Println("error no such role", role)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var roles = map[string]func(*process){
	"send":   (*process).send,
	"batch":  (*process).batch,
	"given":  (*process).given,
	"read":   (*process).read,
	"slow":   (*process).slow,
	"drop":   (*process).drop,
	"move":   (*process).move,
	"gc":     (*process).gc,
	"retire": (*process).retire,
	"append": (*process).append,
	"once":   (*process).once,
	"does":   (*process).does,
	"hook":   (*process).hook,
	"type":   (*process).types,
	"turn":   (*process).turn,
	"hold":   (*process).hold,
	"post":   (*process).post,
}

// The mailboxes of a stress run: in bob's nothing goes back to unread, in
// carol's it does, and dave's is retired and restored all the time.
const (
	killBob   = wire.Name("bob")
	killCarol = wire.Name("carol")
	killDave  = wire.Name("dave")
)

type process struct {
	path  string
	store *Store
}

func newProcess(path string) *process {
	d, err := atomicfile.Open(path, nil)
	if err != nil {
		panic(err)
	}
	s, err := OpenStore(d, "main")
	if err != nil {
		panic(err)
	}
	return &process{path: path, store: s}
}

// say prints one line, whole, even if the process is killed right after.
func (p *process) say(format string, args ...any) {
	fmt.Fprintf(os.Stdout, format+"\n", args...)
}

// failed says what went wrong, unless it is what must be expected among
// processes that are killed and mailboxes that are retired.
func (p *process) failed(b *Box, err error) bool {
	var held *lockfile.HeldError
	switch {
	case err == nil:
		return false
	case errors.As(err, &held):
		p.say("busy")
	case b.agent == killDave && errors.Is(err, ErrNoAgent):
	case errors.Is(err, ErrSettled):
	default:
		p.say("error %s: %s", os.Getenv("ATM_TEST_ROLE"), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return true
}

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

func random() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// sealed is a message that says itself whether it is whole.
func sealed(id wire.ID, body string, ack bool) *wire.Message {
	return &wire.Message{
		ID: id, From: wire.Address{Agent: "alice", Team: "main"}, Subject: sum([]byte(body)),
		Body: body, RequiresAck: ack, SentAt: id.Time(),
	}
}

// whole reports whether a sealed message, or one made of a dropped file whose
// name has its checksum, is as it was written.
func (p *process) whole(m *wire.Message) bool {
	want := m.Subject
	if rest, ok := strings.CutPrefix(want, "d-"); ok {
		_, want, _ = strings.Cut(rest, "-")
	}
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

func (p *process) box() *Box {
	return p.store.Box([]wire.Name{killBob, killCarol, killDave}[rand.IntN(3)])
}

func (p *process) deliver(posts ...*Post) {
	Deliver(context.Background(), posts...)
	for _, post := range posts {
		for _, o := range post.Outcomes {
			if !p.failed(o.Box, o.Err) {
				p.say("ack %s %s", o.Box.agent, post.Message.ID)
			}
		}
	}
}

func (p *process) send() {
	alice := p.store.Box("alice")
	for r := random(); ; {
		p.deliver(&Post{Message: sealed(wire.NewID(), text(r), r.IntN(3) == 0), To: []*Box{p.box()}, Sender: alice})
		time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond) // readers shall keep up
	}
}

// batch sends several to several at once.
func (p *process) batch() {
	all := []*Box{p.store.Box(killBob), p.store.Box(killCarol), p.store.Box(killDave)}
	for r := random(); ; {
		var posts []*Post
		for range 1 + r.IntN(8) {
			posts = append(posts, &Post{Message: sealed(wire.NewID(), text(r), r.IntN(3) == 0), To: all[:1+r.IntN(3)]})
		}
		p.deliver(posts...)
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}

// nth is a message that every process makes alike: its id, of a day in the
// past, is sent by many at the same time and again later.
func nth(n int64) *wire.Message {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	base := []byte("01950000-0000-7000-8000-000000000000")
	copy(base[5:], fmt.Sprintf("%03x", n*7919%0x1000)) // within three days, in no order
	return sealed(wire.Derive("kill "+strconv.FormatInt(n, 10), wire.ID(base), wire.Address{}), text(r), n%3 == 0)
}

// slot counts 20 milliseconds: what is sent at the same time has the same id.
func slot() int64 { return time.Now().UnixMilli() / 20 }

func (p *process) given() {
	for r := random(); ; {
		n := slot()
		if r.IntN(4) == 0 {
			n -= r.Int64N(100)
		}
		post := &Post{Message: nth(n), To: []*Box{p.box()}, Given: true}
		if r.IntN(4) == 0 {
			post.To = []*Box{p.store.Box(killBob), p.store.Box(killCarol)}
		}
		p.deliver(post)
		time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
	}
}

// read reads as `atm read` does. While it shows, under the lock, it holds a
// record lock on another file, which tells whether somebody else does too.
func (p *process) read() {
	r := random()
	oracles := map[wire.Name]*os.File{}
	for _, a := range []wire.Name{killBob, killCarol, killDave} {
		f, err := os.OpenFile(filepath.Join(p.path, ".oracle-"+string(a)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			panic(err)
		}
		oracles[a] = f
	}
	for {
		b := p.box()
		oracle := oracles[b.agent]
		record := func(kind int16) error {
			return unix.FcntlFlock(oracle.Fd(), unix.F_SETLK, &unix.Flock_t{Type: kind})
		}
		chosen := time.Now()
		var took int
		var within bool
		opt := ReadOptions{Limit: 1 + r.IntN(30), LookAhead: r.IntN(3), Fits: func(*wire.Message) bool { chosen = time.Now(); return true }}
		batch, err := b.Read(context.Background(), opt, func(batch Batch) (int, error) {
			if len(batch.Items) == 0 {
				return 0, nil
			}
			if record(unix.F_WRLCK) != nil && time.Since(chosen) < showUnderLock/2 {
				p.say("two readers show mail of %s", b.agent)
			}
			for _, it := range batch.Items {
				if !strings.HasPrefix(it.Subject, "d-") && !p.whole(it.Message) {
					p.say("torn %s %s", b.agent, it.ID)
				}
				p.say("show %s %s", b.agent, it.ID)
			}
			time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond) // the output is slow
			record(unix.F_UNLCK)
			took = len(batch.Items)
			if r.IntN(4) == 0 {
				took = r.IntN(took + 1)
			}
			within = time.Since(chosen) < showUnderLock/2
			return took, nil
		})
		if p.failed(b, err) {
			continue
		}
		if batch.Unmarked != nil {
			p.failed(b, batch.Unmarked)
			continue
		}
		p.failed(b, batch.Unlogged)
		if within {
			for _, it := range batch.Items[:took] {
				p.say("read %s %s", b.agent, it.ID)
			}
		}
	}
}

// slow reads with an output that takes longer than the lock is held.
func (p *process) slow() {
	showUnderLock = 10 * time.Millisecond
	for {
		b := p.box()
		batch, err := b.Read(context.Background(), ReadOptions{Limit: 3}, func(batch Batch) (int, error) {
			for _, it := range batch.Items {
				p.say("show %s %s", b.agent, it.ID)
				time.Sleep(10 * time.Millisecond)
			}
			return len(batch.Items), nil
		})
		if !p.failed(b, err) {
			p.failed(b, batch.Unmarked)
			p.failed(b, batch.Unlogged)
		}
	}
}

// drop drops files: text, messages, events, large ones; moved into the inbox,
// or written in it piece by piece.
func (p *process) drop() {
	dir := filepath.Join(p.path, ".dropping")
	os.Mkdir(dir, 0o700)
	r := random()
	for n := 0; ; n++ {
		b := p.store.Box([]wire.Name{killBob, killCarol}[r.IntN(2)])
		unique := fmt.Sprintf("%d.%d", os.Getpid(), time.Now().UnixNano())
		content, said := []byte(text(r)), "drop"
		name := "d-" + unique + "-" + sum(content)
		switch r.IntN(5) {
		case 0:
			m := sealed(wire.NewID(), text(r), r.IntN(2) == 0)
			content, said, name = m.Append(nil), "ack", string(m.ID)
			if r.IntN(2) == 0 {
				m = nth(slot() - r.Int64N(50))
				content, name = m.Append(nil), string(m.ID)
			}
		case 1:
			content, said, name = []byte(`{"event_type":"agent_output","stream":"std_out","content":"`+unique+`"}`), "event", unique
		case 2:
			if r.IntN(10) == 0 {
				content = slices.Repeat([]byte{byte(n), 0, 255}, 500_000)
				name = "d-" + unique + "-" + sum(content)
			}
		}
		into, file := filepath.Join(b.Path(), "inbox"), name
		if said != "drop" {
			file += "." + unique + ".json"
		}
		if r.IntN(4) == 0 {
			into = filepath.Join(into, "new")
		}
		if err := p.put(r, dir, into, file, content); err != nil {
			p.say("error drop: %v", err)
		}
		p.say("%s %s %s", said, b.agent, name)
		time.Sleep(time.Millisecond)
	}
}

func (p *process) put(r *rand.Rand, staging, into, name string, content []byte) error {
	if r.IntN(3) > 0 {
		from := filepath.Join(staging, name)
		if err := os.WriteFile(from, content, 0o600); err != nil {
			return err
		}
		return os.Rename(from, filepath.Join(into, name))
	}
	f, err := os.OpenFile(filepath.Join(into, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for len(content) > 0 {
		n := 1 + r.IntN(len(content))
		if _, err := f.Write(content[:n]); err != nil {
			return err
		}
		content = content[n:]
		time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
	}
	return f.Close()
}

// move settles, takes, withdraws and puts back.
func (p *process) move() {
	ctx := context.Background()
	for r := random(); ; {
		b := p.box()
		var some []*Item
		_, _, err := b.Walk(ctx, Range{Unread: r.IntN(2) == 0, Owed: r.IntN(2) == 0, Done: r.IntN(2) == 0, Archive: true, Newest: true, Limit: 30}, func(it *Item) bool {
			some = append(some, it)
			return true
		})
		if p.failed(b, err) || len(some) == 0 {
			continue
		}
		it := some[r.IntN(len(some))]
		gone := func(err error) bool { return b.agent == killDave && errors.Is(err, ErrNotFound) }
		switch it.State {
		case Unread:
			if r.IntN(2) == 0 {
				_, err = b.Take(ctx, it.ID)
			} else if r.IntN(8) == 0 {
				_, err = b.Withdraw(ctx, it.ID, it.From)
			}
		case Owed:
			err = b.Settle(ctx, it.ID, r.IntN(2) == 0)
		case Done:
			if b.agent != killCarol {
				continue
			}
			p.say("unread %s %s", b.agent, it.ID)
			_, err = b.Unread(ctx, it.ID)
		}
		if err == nil {
			p.say("moved")
		} else if !gone(err) {
			p.failed(b, err)
		}
	}
}

func (p *process) gc() {
	for r := random(); ; time.Sleep(5 * time.Millisecond) {
		b := p.box()
		m, err := b.GC(context.Background(), GCOptions{Before: time.Now().AddDate(0, 0, 2), KeepLast: r.IntN(3)})
		if !p.failed(b, err) && m.Messages > 0 {
			p.say("archived %d", m.Messages)
		}
	}
}

func (p *process) retire() {
	ctx := context.Background()
	b := p.store.Box(killDave)
	for {
		if _, err := p.store.Retire(ctx, killDave); !p.failed(b, err) {
			p.say("retired")
		}
		if err := p.store.Restore(ctx, killDave); err != nil && !errors.Is(err, ErrExists) {
			p.failed(b, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// append appends events, one and several at a time.
func (p *process) append() {
	b := p.store.Box(killBob)
	for r := random(); ; {
		var events []wire.Event
		for range 1 + r.IntN(4) {
			events = append(events, wire.Event{Kind: "test", Source: "cli", EventID: string(wire.NewID())}.With("pad", text(r)[:10]))
		}
		if p.failed(b, b.Append(context.Background(), AppendOptions{Sync: r.IntN(10) == 0}, events...)) {
			continue
		}
		for _, e := range events {
			p.say("appended %s %s", b.agent, e.EventID)
		}
	}
}
