//go:build linux

package machines

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/term"
)

var team = map[string][]string{"laptop": {"alice", "amy"}, "build": {"bob", "ben"}, "cloud": {"carol", "cem"}}

// A world is the servers, the hosts, and what was sent between them.
type world struct {
	t       *testing.T
	dir     string
	isLong  bool
	lasts   time.Duration
	seed    uint64 // of all chances
	servers []*program
	ways    [][]*network // of each server to and from the others
	hosts   []*host
	js      jetstream.JetStream // the administrator's, past the proxies
	sent    []*message
	over    atomic.Bool // all is sent
	done    atomic.Int64

	mu    sync.Mutex
	acks  map[string]map[member]bool // by the id of the message: who acknowledged it
	count map[string]int
}

// Three hosts send to each other for as long as ATM_MACHINES says, and everything breaks.
func TestMachines(t *testing.T) {
	w := newWorld(t)
	servers, messages := 1, 120
	if w.isLong {
		servers, messages = 3, 5000
	}
	var addresses []string
	w.servers, addresses, w.ways = newServers(t, w.dir, servers)
	w.connect(addresses)
	w.hosts = newHosts(t, w.dir, addresses, team, "laptop", "build", "cloud")
	for _, h := range w.hosts {
		h.startBridge(t, w.dir)
	}
	w.run((messages+5)/6, func(r *rand.Rand) {
		go w.progress()
		w.disturb(r)
	})
	for _, p := range w.programs() {
		if len(p.alone) > 0 {
			t.Logf("ended by itself %d times: %s", len(p.alone), p.alone[0])
		}
	}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: memory(t), lasts: 5 * time.Second, seed: rand.Uint64(), acks: map[string]map[member]bool{}, count: map[string]int{}}
	if s := os.Getenv("ATM_MACHINES"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal("ATM_MACHINES: ", err)
		}
		w.isLong, w.lasts = true, d
	}
	if s := os.Getenv("ATM_MACHINES_SEED"); s != "" {
		w.seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("ATM_MACHINES_SEED=%d", w.seed)
	return w
}

// run has each member send so many messages, and read, while things are disturbed until all is sent. Then it waits until
// all is quiet, and judges.
func (w *world) run(each int, disturb func(*rand.Rand)) {
	var all, disturbing sync.WaitGroup
	n := uint64(0)
	random := func() *rand.Rand { n++; return rand.New(rand.NewPCG(w.seed, n)) }
	for _, h := range w.hosts {
		for _, agent := range h.members {
			mine := w.plan(random(), member{h.name, agent}, each)
			w.sent = append(w.sent, mine...)
			r := random()
			all.Go(func() { w.send(r, h, mine) })
		}
	}
	for _, h := range w.hosts {
		disturbing.Go(func() {
			for ; !w.over.Load(); time.Sleep(300 * time.Millisecond) {
				w.read(h)
			}
		})
	}
	r, began := random(), time.Now()
	disturbing.Go(func() { disturb(r) })
	all.Wait()
	w.over.Store(true)
	disturbing.Wait()
	took := time.Since(began)
	v, waited := w.settle(3 * time.Minute)
	for _, h := range w.hosts { // and now the rest of the acks
		w.read(h)
	}
	if len(v) == 0 {
		v, _ = w.settle(time.Minute)
	}
	w.t.Logf("%d messages of %d hosts in %s, quiet after %s more: %v", len(w.sent), len(w.hosts), took.Round(time.Second), waited.Round(time.Second), w.count)
	if w.t.Log(v); len(v) > 0 {
		kept := filepath.Join(os.TempDir(), fmt.Sprint("machines-", w.seed))
		w.t.Errorf("what is left is kept in %s: %v", kept, exec.Command("cp", "-a", w.dir, kept).Run())
	}
}

func memory(t *testing.T) string {
	if dir, err := os.MkdirTemp("/dev/shm", "machines"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// connect waits until the servers serve streams.
func (w *world) connect(addresses []string) {
	nc, err := nats.Connect(strings.Join(addresses, ","), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	if w.js, err = jetstream.New(nc); err != nil {
		w.t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		_, err := w.js.AccountInfo(ctx)
		if cancel(); err == nil {
			return
		} else if time.Now().After(end) {
			w.t.Fatal("no JetStream: ", err)
		}
	}
}

func (w *world) programs() []*program {
	all := slices.Clone(w.servers)
	for _, h := range w.hosts {
		all = append(all, h.bridge)
	}
	return all
}

func (w *world) add(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[what]++
}

// progress shows on a terminal how far it is.
func (w *world) progress() {
	for ; term.IsTerminal(int(os.Stdout.Fd())); time.Sleep(time.Second) {
		if w.over.Load() {
			fmt.Print("\r\x1b[K")
			return
		}
		fmt.Printf("\r\x1b[K%d of %d sent, %d and %d and %d wait", w.done.Load(), len(w.sent), len(w.hosts[0].outbox()), len(w.hosts[1].outbox()), len(w.hosts[2].outbox()))
	}
}

// plan makes what a member sends: who gets it, and whether it has files. Text and files are made when
// it is sent.
func (w *world) plan(r *rand.Rand, from member, n int) (all []*message) {
	for i := range n {
		m := &message{from: from, files: map[string]string{}, once: fmt.Sprint(i)}
		var others, elsewhere []member
		for _, h := range w.hosts {
			for _, agent := range h.members {
				if to := (member{h.name, agent}); to.host != from.host {
					elsewhere = append(elsewhere, to)
				} else if to != from {
					others = append(others, to)
				}
			}
		}
		m.to = append(m.to, elsewhere[r.IntN(len(elsewhere))])
		if r.IntN(4) == 0 { // several, of one host or of several
			for _, to := range append(others, elsewhere...) {
				if r.IntN(3) == 0 && to != m.to[0] {
					m.to = append(m.to, to)
				}
			}
		}
		if r.IntN(8) == 0 {
			for i := range 1 + r.IntN(2) {
				m.files[fmt.Sprintf("file%d", i)] = ""
			}
		}
		all = append(all, m)
	}
	return all
}

const small, large = 4 << 10, 512 << 10

// content is text of some length: one in five of files is larger than 512 KiB, and one in fifty of bodies.
func content(r *rand.Rand, one int) []byte {
	size := 1 + r.IntN(small)
	if r.IntN(one) == 0 {
		size = large + r.IntN(large*3/4)
	}
	data := make([]byte, size/2+1)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return []byte("\"ä\\\n" + hex.EncodeToString(data))
}

// send sends messages, spread over the time, each again under its name until that was done.
func (w *world) send(r *rand.Rand, h *host, all []*message) {
	began := time.Now()
	for i, m := range all {
		time.Sleep(time.Until(began.Add(w.lasts * time.Duration(i) / time.Duration(len(all)))))
		text := content(r, 50)
		m.text = hash(text)
		to := make([]string, len(m.to))
		for i, t := range m.to {
			if to[i] = t.agent; t.host != h.name {
				to[i] += "@" + t.host
			}
		}
		args := []string{"send", strings.Join(to, ","), "-", "--once", m.once, "--as", m.from.agent, "--json"}
		if r.IntN(10) == 0 {
			args = append(args, "--ack")
		}
		dir, err := os.MkdirTemp("", "machines-files")
		if err != nil {
			w.t.Error(err)
			return
		}
		for name := range m.files {
			data, file := content(r, 5), filepath.Join(dir, name)
			m.files[name] = hash(data)
			if err := os.WriteFile(file, data, 0o600); err != nil {
				w.t.Error(err)
			}
			args = append(args, "--attach", file)
		}
		kill := time.Duration(0)
		if r.IntN(20) == 0 {
			kill = time.Duration(1+r.IntN(30)) * time.Millisecond
		}
		for {
			res := h.atm(kill, string(text), args...)
			if res.code == 0 {
				var sent struct{ ID string }
				if err := json.Unmarshal([]byte(res.out), &sent); err != nil {
					w.t.Error(err, res)
				}
				m.id = sent.ID
				break
			}
			if res.code < 0 && kill > 0 {
				w.add("senders killed")
			} else if w.add("sends refused"); !h.mounted || !strings.Contains(res.out+res.err, "no space left on device") {
				w.t.Error(res)
				return
			}
			kill = 0
			time.Sleep(50 * time.Millisecond)
		}
		os.RemoveAll(dir)
		w.done.Add(1)
	}
}

// read reads what has come to a host, and acknowledges what asks for it.
func (w *world) read(h *host) {
	for _, agent := range h.members {
		h.atm(0, "", "read", "--limit", "0", "--as", agent)
		owed, _ := filepath.Glob(filepath.Join(h.team(), agent, "inbox/cur/*.json"))
		for _, path := range owed {
			id := strings.TrimSuffix(filepath.Base(path), ".json")
			if res := h.atm(0, "", "ack", id, "--as", agent); res.code == 0 {
				w.mu.Lock()
				if w.acks[id] == nil {
					w.acks[id] = map[member]bool{}
				}
				w.acks[id][member{h.name, agent}] = true
				w.count["acks"]++
				w.mu.Unlock()
			}
		}
	}
}

// disturb breaks one thing after the other. In the end all runs again.
func (w *world) disturb(r *rand.Rand) {
	var lasting sync.WaitGroup
	defer lasting.Wait()
	some := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	for n := 0; !w.over.Load(); n++ {
		time.Sleep(some(time.Second))
		h := w.hosts[r.IntN(len(w.hosts))]
		d := 200*time.Millisecond + some(4*time.Second)
		switch kind := r.IntN(13); {
		case kind < 4:
			w.add("bridges killed")
			h.bridge.kill(syscall.SIGKILL, some(time.Second))
		case kind < 5:
			w.add("bridges stopped")
			h.bridge.kill(syscall.SIGTERM, some(time.Second))
		case kind < 7:
			w.add("servers killed")
			w.servers[r.IntN(len(w.servers))].kill(syscall.SIGKILL, some(2*time.Second))
		case kind < 8 && n%4 == 0:
			w.add("all servers killed")
			for _, p := range w.servers {
				p.kill(syscall.SIGKILL, some(2*time.Second))
			}
		case kind < 9:
			w.add("connections dropped")
			h.drop()
			lasting.Go(func() { time.Sleep(d); h.heal() })
		case kind < 10:
			if ways := w.ways[r.IntN(len(w.ways))]; len(ways) > 0 {
				w.add("servers cut off")
				lasting.Go(func() {
					for _, way := range ways {
						way.drop()
					}
					time.Sleep(d)
					for _, way := range ways {
						way.heal()
					}
				})
			}
		case kind < 11:
			if h.open.TryLock() {
				w.add("black holes")
				lasting.Go(func() { time.Sleep(d); h.open.Unlock() })
			}
		case kind < 12:
			if h := w.hosts[2]; h.mounted && h.full.CompareAndSwap(false, true) {
				w.add("disks full")
				lasting.Go(func() {
					if err := h.fill(d); err != nil {
						w.t.Error(err)
					}
				})
			}
		default:
			lasting.Go(func() { w.limit(d) })
		}
	}
}

// limit lets the stream take nothing for a time.
func (w *world) limit(d time.Duration) {
	stream, err := w.js.Stream(w.t.Context(), "atm_main")
	if err != nil {
		return
	}
	config := stream.CachedInfo().Config
	if config.MaxMsgs > 0 { // it is already
		return
	}
	config.MaxMsgs = int64(max(1, stream.CachedInfo().State.Msgs))
	if _, err := w.js.UpdateStream(w.t.Context(), config); err == nil {
		w.add("streams full")
	}
	time.Sleep(d)
	for config.MaxMsgs = -1; ; time.Sleep(200 * time.Millisecond) {
		if _, err := w.js.UpdateStream(w.t.Context(), config); err == nil {
			return
		} else if w.t.Context().Err() != nil {
			w.t.Error(err)
			return
		}
	}
}

// settle waits until nothing is on its way, or nothing has changed for a while, and judges.
func (w *world) settle(most time.Duration) (v verdict, took time.Duration) {
	began := time.Now()
	for _, m := range w.sent {
		m.acks = w.acks[m.id]
	}
	for time.Since(began) < most {
		left := 0
		for _, h := range w.hosts {
			left += len(h.outbox())
		}
		if err := w.drained(); left == 0 && err == nil {
			if v = judge(w.hosts, w.sent); len(v) == 0 {
				return v, time.Since(began)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	v = judge(w.hosts, w.sent)
	if err := w.drained(); err != nil {
		v.add("left", "%v", err)
	}
	return v, time.Since(began)
}

// drained reports whether the stream, if there is one, has nothing that was not acknowledged.
func (w *world) drained() error {
	if w.js == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()
	stream, err := w.js.Stream(ctx, "atm_main")
	if err != nil {
		return err
	}
	n := 0
	for info := range stream.ListConsumers(ctx).Info() {
		if n++; info.NumPending > 0 || info.NumAckPending > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d to be fetched, %d to be acknowledged", info.Name, info.NumPending, info.NumAckPending))
		}
	}
	if err == nil && n < len(w.hosts) {
		return fmt.Errorf("%d consumers", n)
	}
	return err
}
