//go:build linux

// Command bench compares atm with bare system calls on the same machine and prints ratios: `make bench`. It exits with
// 1 if one of them misses its goal.
//
// Each round runs both sides of every comparison once. The printed ratio is the median of the rounds.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

type comparison struct {
	name, against string
	rate          float64      // the goal: at least this ratio of rates
	time          float64      // or: at most this ratio of times
	prepare       func() error // may be nil
	ours, raw     side

	ratios []float64 // one per round
	pass   bool
}

// side runs one of the two things that are compared, and returns how long it took.
type side func() (time.Duration, error)

func main() {
	dir := flag.String("dir", os.TempDir(), "measure on the disk of this `directory`")
	rounds := flag.Int("rounds", 21, "how many `rounds` to measure")
	only := flag.String("only", "", "run only comparisons with this `text` in their names")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := measure(ctx, *dir, max(1, *rounds), *only)
	if err == nil {
		err = printTable(all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if slices.ContainsFunc(all, func(c *comparison) bool { return !c.pass }) {
		os.Exit(1)
	}
}

func measure(ctx context.Context, in string, rounds int, only string) (all []*comparison, err error) {
	dir, err := os.MkdirTemp(in, "atm-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// chattr +T gives dir block groups of its own. To make a file, ext4 checks every inode that was deleted in the
	// block group within the last minute: after a few thousand, by any program, that takes fifty times as long.
	if err := exec.Command("chattr", "+T", dir).Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: files that others deleted may slow down new ones: chattr +T:", err)
	}
	if _, err := rootdir.Make(dir); err != nil {
		return nil, err
	}
	root, err := teams.Open(rootdir.Found{Path: dir}, nil)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	team, err := root.CreateTeam("main")
	if err != nil {
		return nil, err
	}
	if all, err = (&bench{ctx, dir, team}).comparisons(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c *comparison) bool { return !strings.Contains(c.name, only) })
	for _, c := range all {
		if c.prepare != nil {
			if err := c.prepare(); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	syscall.Sync()
	for n := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n+1, rounds)
		for _, c := range all {
			if err := cmp.Or(ctx.Err(), c.round(n)); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return all, nil
}

// round measures both sides, in an order that alternates, and compares the median so far with the goal.
func (c *comparison) round(n int) (err error) {
	var took [2]time.Duration
	for _, i := range []int{n % 2, 1 - n%2} {
		if took[i], err = []side{c.ours, c.raw}[i](); err != nil {
			return err
		}
	}
	ratio := float64(took[0]) / float64(took[1])
	if c.rate > 0 {
		ratio = 1 / ratio
	}
	c.ratios = append(c.ratios, ratio)
	c.pass = c.rate > 0 && median(c.ratios) >= c.rate || median(c.ratios) <= c.time
	return nil
}

func median[T cmp.Ordered](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

func printTable(all []*comparison) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tAGAINST\tRATIO\tROUNDS\tGOAL\t")
	for _, c := range all {
		goal, verdict := fmt.Sprintf("time <= %g", c.time), "pass"
		if c.rate > 0 {
			goal = fmt.Sprintf("rate >= %g", c.rate)
		}
		if !c.pass {
			verdict = "MISS"
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f to %.2f\t%s\t%s\n", c.name, c.against, median(c.ratios), slices.Min(c.ratios), slices.Max(c.ratios), goal, verdict)
	}
	return w.Flush()
}

func times(n int, do func() error) side {
	return func() (time.Duration, error) {
		begin := time.Now()
		for range n {
			if err := do(); err != nil {
				return 0, err
			}
		}
		return time.Since(begin), nil
	}
}

// concurrently runs a side in 16 goroutines at once.
func concurrently(each side) side {
	return times(1, func() (err error) {
		done := make(chan error)
		for range 16 {
			go func() { _, err := each(); done <- err }()
		}
		for range 16 {
			err = cmp.Or(err, <-done)
		}
		return err
	})
}

type bench struct {
	ctx  context.Context
	dir  string // removed at the end
	team *teams.Team
}

func (b *bench) comparisons() (all []*comparison, err error) {
	box := map[wire.Name]*mailbox.Box{}
	for _, agent := range []wire.Name{"bob", "busy", "logged", "watched", "long", "short"} {
		box[agent] = b.team.Box(agent)
		err = cmp.Or(err, b.team.Create(b.ctx, agent))
	}
	unread := filepath.Join(box["busy"].Path(), "inbox/new")
	if err != nil {
		return nil, err
	}
	fill := sync.OnceValue(func() (err error) {
		for n := 0; n < 100_000 && err == nil; n++ {
			m := message()
			data, _ := m.Encode()
			err = cmp.Or(b.ctx.Err(), os.WriteFile(filepath.Join(unread, string(m.ID)+".json"), data, 0o600))
		}
		return err
	})

	one := func() error { return b.deliver(box["bob"], 1) }
	const raw = "write, fsync, link, fsync directory"
	all = []*comparison{
		{name: "a delivery", against: raw, rate: 0.85, ours: times(20, one), raw: times(20, b.rawDelivery)},
		{name: "16 senders", against: "the same by 16 writers", rate: 0.9, ours: concurrently(times(4, one)), raw: concurrently(times(4, b.rawDelivery))},
		{name: "a batch of 100", against: "100 deliveries", rate: 2, ours: times(1, func() error { return b.deliver(box["bob"], 100) }), raw: times(100, one)},
	}
	large := func(name string, do func() error) {
		all = append(all, &comparison{name: name, against: "os.ReadDir of 100,000", time: 2, prepare: fill, ours: times(2, do), raw: times(2, func() error {
			_, err := os.ReadDir(unread)
			return err
		})})
	}
	large("read --limit 10", func() error {
		_, err := box["busy"].Read(b.ctx, mailbox.ReadOptions{Limit: 10}, func(mailbox.Batch) (int, error) { return 0, nil })
		return err
	})
	large("ls --limit 10", func() error {
		_, err := box["busy"].Walk(b.ctx, mailbox.Range{Unread: true, Limit: 10}, func(*mailbox.Item) bool { return true })
		return err
	})

	appends := times(200, func() error { return box["logged"].Log().Append(b.ctx, event(1)) })
	state := func(agent wire.Name) side {
		return times(20, func() error {
			_, err := b.team.State(agent)
			return err
		})
	}
	all = append(all,
		&comparison{name: "an event appended", against: "open a lock, flock, open, write, close both", rate: 0.1, ours: appends, raw: times(200, b.rawAppend)},
		&comparison{name: "the state after 1,000,000 events", against: "after 10", time: 1.3, ours: state("long"), raw: state("short"),
			prepare: func() error { return cmp.Or(b.writeLog(box["long"], 1_000_000), b.writeLog(box["short"], 10)) }})
	watched, err := b.compareWatcher(box["watched"])
	return append(all, watched), err
}

func message() *wire.Message {
	to := []wire.Address{{Agent: "bob", Team: "main"}}
	return &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, To: to, Body: strings.Repeat("0123456789abcdef", 64)}
}

func (b *bench) deliver(to *mailbox.Box, n int) (err error) {
	posts := make([]*mailbox.Post, n)
	for i := range posts {
		posts[i] = &mailbox.Post{Message: message(), To: []*mailbox.Box{to}}
	}
	mailbox.Deliver(b.ctx, posts...)
	for _, p := range posts {
		err = cmp.Or(err, p.Outcomes[0].Err)
	}
	return err
}

// rawDelivery makes the fewest system calls for a durable file that appears whole. It writes into the same mailbox,
// since a new file costs more in some directories than in others.
func (b *bench) rawDelivery() error {
	m := message()
	data, _ := m.Encode()
	inbox := filepath.Join(b.team.Box("bob").Path(), "inbox")
	f, err := os.OpenFile(filepath.Join(inbox, "tmp", string(m.ID)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = cmp.Or(err, f.Sync(), f.Close(), os.Link(f.Name(), filepath.Join(inbox, "new", string(m.ID)+".json")))
	d, e := os.Open(filepath.Join(inbox, "new"))
	return cmp.Or(err, e, d.Sync(), d.Close())
}

func (b *bench) rawAppend() error {
	e := event(1)
	lock, err := os.OpenFile(filepath.Join(b.dir, "raw.lock"), os.O_RDONLY|os.O_CREATE, 0o600)
	err = cmp.Or(err, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	log, logErr := os.OpenFile(filepath.Join(b.dir, "raw.ndjson"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	_, writeErr := log.Write(append(e.Append(nil), '\n'))
	return cmp.Or(err, logErr, writeErr, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), log.Close(), lock.Close())
}

// event returns the n-th event of a log of turns.
func event(n int) wire.Event {
	e := wire.Event{Seq: uint64(n), At: time.Now().UTC(), Team: "main", Source: "hook", Kind: "turn_started", TurnID: fmt.Sprint("turn-", n/2)}
	if n%2 == 1 {
		e.Kind = "turn_idle"
	}
	return e
}

// writeLog writes an agent's log directly, lets State save a snapshot, and appends five more events.
func (b *bench) writeLog(box *mailbox.Box, events int) error {
	var text []byte
	for n, first := 1, 1; n <= events; n++ {
		e := event(n)
		e.Agent = box.Agent()
		text = append(e.Append(text), '\n')
		if len(text) >= 16<<20 || n == events {
			if err := os.WriteFile(filepath.Join(box.Path(), "events", fmt.Sprintf("%020d.ndjson", first)), text, 0o600); err != nil {
				return err
			}
			text, first = nil, n+1
		}
	}
	_, err := b.team.State(box.Agent())
	for n := range 5 {
		err = cmp.Or(err, box.Log().Append(b.ctx, event(n)))
	}
	return err
}

func (b *bench) compareWatcher(box *mailbox.Box) (*comparison, error) {
	w, err := watcher.Open(b.ctx, []*mailbox.Box{box}, watcher.Options{Messages: true})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(b.ctx, func() { w.Close() })
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	dir, buf := filepath.Join(b.dir, "raw"), make([]byte, 4096)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE); err != nil {
		return nil, err
	}
	ours := b.delays(filepath.Join(box.Path(), "inbox/new"), func() error {
		_, err := w.Next(b.ctx)
		return err
	})
	raw := b.delays(dir, func() error {
		_, err := syscall.Read(fd, buf)
		for err == syscall.EINTR {
			_, err = syscall.Read(fd, buf)
		}
		return err
	})
	return &comparison{name: "from a delivery to the watcher's entry", against: "to a raw inotify event (p50)", time: 3, ours: ours, raw: raw}, nil
}

// delays measures the time from linking a message into a directory until wait returns: the median of 50.
func (b *bench) delays(dir string, wait func() error) side {
	return func() (time.Duration, error) {
		var took []time.Duration
		for range 50 {
			m := message()
			data, _ := m.Encode()
			temp := filepath.Join(b.dir, string(m.ID))
			if err := os.WriteFile(temp, data, 0o600); err != nil {
				return 0, err
			}
			seen := make(chan time.Time)
			var err error
			go func() {
				err = wait()
				seen <- time.Now()
			}()
			time.Sleep(2 * time.Millisecond) // wait must have begun
			begin := time.Now()
			if err := os.Link(temp, filepath.Join(dir, string(m.ID)+".json")); err != nil {
				return 0, err
			}
			took = append(took, (<-seen).Sub(begin))
			if err != nil {
				return 0, err
			}
		}
		return median(took), nil
	}
}
