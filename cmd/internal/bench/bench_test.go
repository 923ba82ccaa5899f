//go:build linux

// Package bench compares atm with bare system calls on the same machine: `make bench`. Each benchmark has both sides.
package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/backup"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

func newTeam(b *testing.B, agents ...wire.Name) *teamdir.Team {
	b.Helper()
	dir := b.TempDir()
	_, err := rootdir.Make(dir)
	must(b, err)
	root, err := teamdir.Open(dir, notices.Tell)
	must(b, err)
	b.Cleanup(func() { root.Close() })
	team, err := root.CreateTeam("main")
	must(b, err)
	for _, agent := range agents {
		must(b, team.Store.Create(b.Context(), agent))
	}
	return team
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func repeat(b *testing.B, name string, do func() error) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			must(b, do())
		}
	})
}

func message() *wire.Message {
	to := []wire.Address{{Agent: "bob", Team: "main"}}
	return &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, To: to, Body: strings.Repeat("0123456789abcdef", 64)}
}

func BenchmarkDelivery(b *testing.B) {
	bob := newTeam(b, "bob").Box("bob")
	deliver := func(n int) (err error) {
		posts := make([]*maildir.Post, n)
		for i := range posts {
			posts[i] = &maildir.Post{Message: message(), To: []*maildir.Box{bob}}
		}
		maildir.Deliver(b.Context(), posts...)
		for _, p := range posts {
			err = cmp.Or(err, p.Outcomes[0].Err)
		}
		return err
	}
	inbox := filepath.Join(bob.Path(), "inbox")
	raw := func() error { return storeRaw(inbox) }
	one := func() error { return deliver(1) }
	repeat(b, "one", one)
	repeat(b, "one by system calls", raw)
	for name, do := range map[string]func() error{"16 senders": one, "16 senders by system calls": raw} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					must(b, do())
				}
			})
		})
	}
	repeat(b, "batch of 100", func() error { return deliver(100) })
}

// send --batch of 10,000 lines, to one and to two recipients, and a loop of the system calls of as many durable files.
func BenchmarkBatch(b *testing.B) {
	const lines = 10_000
	bin, dir := b.TempDir(), b.TempDir()
	run := func(stdin string, name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(stdin), append(os.Environ(), "HOME="+dir, "ATM_ROOT="+filepath.Join(dir, ".atm"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	}
	build := exec.Command("go", "build", "-o", bin, "../../../cmd/atm")
	out, err := build.CombinedOutput()
	if err != nil {
		b.Fatal(string(out))
	}
	atm := filepath.Join(bin, "atm")
	must(b, run("", atm, "init", "lead", "bob", "carol"))
	body := strings.Repeat("0123456789abcdef", 16)
	one := strings.Repeat(`{"to":"bob","body":"`+body+"\"}\n", lines)
	two := strings.Repeat(`{"to":["bob","carol"],"body":"`+body+"\"}\n", lines/2)
	repeat(b, "to one", func() error { return run(one, atm, "send", "--as", "lead", "--batch") })
	repeat(b, "to two", func() error { return run(two, atm, "send", "--as", "lead", "--batch") })
	repeat(b, "by system calls", func() error {
		inbox, err := os.MkdirTemp(dir, "raw")
		err = cmp.Or(err, os.Mkdir(filepath.Join(inbox, "tmp"), 0o700), os.Mkdir(filepath.Join(inbox, "new"), 0o700))
		for range lines {
			err = cmp.Or(err, storeRaw(inbox))
		}
		return err
	})
}

// storeRaw stores a message with the fewest system calls for a durable file that appears whole.
func storeRaw(inbox string) error {
	m := message()
	data, _ := m.Encode()
	f, err := os.OpenFile(filepath.Join(inbox, "tmp", string(m.ID)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = cmp.Or(err, f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(inbox, "new", string(m.ID)+".json")))
	d, e := os.Open(filepath.Join(inbox, "new"))
	return cmp.Or(err, e, d.Sync(), d.Close())
}

func BenchmarkLargeInbox(b *testing.B) {
	bob := newTeam(b, "bob").Box("bob")
	unread := filepath.Join(bob.Path(), "inbox/new")
	for range 100_000 {
		m := message()
		data, _ := m.Encode()
		must(b, os.WriteFile(filepath.Join(unread, string(m.ID)+".json"), data, 0o600))
	}
	repeat(b, "read --limit 10", func() error {
		_, err := inbox.Read(b.Context(), bob, inbox.ReadOptions{Limit: 10}, func(inbox.Batch) (int, error) { return 0, nil })
		return err
	})
	repeat(b, "ls --limit 10", func() error {
		_, err := inbox.Walk(b.Context(), bob, maildir.Range{Unread: true, Limit: 10}, func(*wire.Item) bool { return true })
		return err
	})
	repeat(b, "ls --count", func() error {
		_, err := inbox.Walk(b.Context(), bob, maildir.Range{Unread: true, Limit: -1}, func(*wire.Item) bool { return true })
		return err
	})
	repeat(b, "what a hook hands over", func() error {
		h, err := claim.HandOver(b.Context(), bob, holder.New(holder.Session, "s", "", time.Now()), false, inbox.ReadOptions{Limit: 10})
		return cmp.Or(err, h.Release(b.Context()))
	})
	repeat(b, "os.ReadDir", func() error {
		_, err := os.ReadDir(unread)
		return err
	})
}

// A restore of a backup, and a delivery of as many messages in one batch, which take turns.
func BenchmarkRestore(b *testing.B) {
	const n = 1000
	deliver := func(team *teamdir.Team) {
		var posts []*maildir.Post
		for range n {
			posts = append(posts, &maildir.Post{Message: message(), To: []*maildir.Box{team.Box("bob")}, Sender: team.Box("alice")})
		}
		maildir.Deliver(b.Context(), posts...)
	}
	full := newTeam(b, "alice", "bob")
	deliver(full)
	var saved bytes.Buffer
	_, missing, err := backup.Write(b.Context(), full.Root(), &saved, func(int) {})
	must(b, cmp.Or(missing, err))
	var restores, deliveries []time.Duration
	for b.Loop() {
		in, err := durable.Open(b.TempDir())
		must(b, err)
		begin := time.Now()
		restored, err := backup.Restore(b.Context(), in, ".atm", "", bytes.NewReader(saved.Bytes()), func(int) {})
		restores = append(restores, time.Since(begin))
		if must(b, err); restored.Messages != n {
			b.Fatal(restored.Messages, " were restored")
		}
		other := newTeam(b, "alice", "bob")
		begin = time.Now()
		deliver(other)
		deliveries = append(deliveries, time.Since(begin))
	}
	b.ReportMetric(median(restores)/median(deliveries), "restore/delivery-p50")
}

// A thread of 20,000 messages, read by bob, that alice has sent: what a search for a word in one of them takes, and what
// the thread takes, as many times as opening and reading each file of bob's once.
func BenchmarkLook(b *testing.B) {
	team := newTeam(b, "alice", "bob")
	var files []string
	first := message()
	for n := range 20_000 {
		m := message()
		m.Body = fmt.Sprintf("number %d of a thread. %s", n, m.Body[:256])
		if n > 0 {
			m.Thread, m.InReplyTo = first.ID, first.ID
		} else {
			m.ID = first.ID
		}
		data, _ := m.Encode()
		for _, dir := range []string{team.Box("bob").Path() + "/inbox/done/", team.Box("alice").Path() + "/sent/"} {
			must(b, os.MkdirAll(dir+m.ID.Day(), 0o700))
			files = append(files, dir+m.ID.Day()+"/"+string(m.ID)+".json")
			must(b, os.WriteFile(files[len(files)-1], data, 0o600))
		}
	}
	begin := time.Now()
	took := func() time.Duration {
		defer func() { begin = time.Now() }()
		return time.Since(begin)
	}
	var reading, searching, threading []time.Duration
	for b.Loop() {
		took()
		for i := 0; i < len(files); i += 2 {
			_, err := os.ReadFile(files[i])
			must(b, err)
		}
		reading = append(reading, took())
		found, err := search.Search(b.Context(), team, search.Query{Words: []string{"number", "19999"}})
		searching = append(searching, took())
		must(b, err)
		all, err := search.Thread(b.Context(), team, first.ID)
		threading = append(threading, took())
		must(b, err)
		if len(found) != 1 || len(all) != 20_000 {
			b.Fatal(len(found), len(all))
		}
	}
	b.ReportMetric(median(searching)/median(reading), "search-ratio-p50")
	b.ReportMetric(median(threading)/median(reading), "thread-ratio-p50")
}

// event returns the n-th event of a log of turns.
func event(n int) wire.Event {
	e := wire.Event{Seq: uint64(n), At: time.Now().UTC(), Team: "main", Source: "hook", Kind: "turn_started", TurnID: fmt.Sprint("turn-", n/2)}
	if n%2 == 1 {
		e.Kind = "turn_idle"
	}
	return e
}

// An event that is appended, and the fewest system calls for a line under a lock, which take turns: with a sync and
// without.
func BenchmarkAppend(b *testing.B) {
	log, dir := newTeam(b, "bob").Box("bob").Log(), b.TempDir()
	raw := func(sync bool) error {
		e := event(1)
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDONLY|os.O_CREATE, 0o600)
		err = cmp.Or(err, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
		log, logErr := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		_, writeErr := log.Write(append(e.Append(nil), '\n'))
		if sync {
			writeErr = cmp.Or(writeErr, log.Sync())
		}
		return cmp.Or(err, logErr, writeErr, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), log.Close(), lock.Close())
	}
	for name, sync := range map[string]bool{"synced": true, "not synced": false} {
		b.Run(name, func(b *testing.B) {
			var appends, raws []time.Duration
			for b.Loop() {
				begin := time.Now()
				if sync {
					must(b, log.AppendSync(b.Context(), event(1)))
				} else {
					must(b, log.Append(b.Context(), event(1)))
				}
				appends = append(appends, time.Since(begin))
				begin = time.Now()
				must(b, raw(sync))
				raws = append(raws, time.Since(begin))
			}
			b.ReportMetric(median(appends)/median(raws), "append/system-calls-p50")
		})
	}
}

// The state costs the same after a million events as after ten.
func BenchmarkState(b *testing.B) {
	team := newTeam(b, "long", "short")
	for agent, events := range map[wire.Name]int{"long": 1_000_000, "short": 10} {
		box := team.Box(agent)
		var text []byte
		for n, first := 1, 1; n <= events; n++ {
			e := event(n)
			e.Agent = agent
			if text = append(e.Append(text), '\n'); len(text) >= 16<<20 || n == events {
				must(b, os.WriteFile(filepath.Join(box.Path(), "events", fmt.Sprintf("%020d.ndjson", first)), text, 0o600))
				text, first = nil, n+1
			}
		}
		_, err := team.State(agent) // saves a snapshot
		must(b, err)
		for n := range 5 {
			must(b, box.Log().Append(b.Context(), event(n)))
		}
		repeat(b, fmt.Sprintf("after %d events", events), func() error {
			_, err := team.State(agent)
			return err
		})
	}
}

// The time from linking a message into the inbox until the watcher's entry, or an inotify event, is there: the medians of
// both, which take turns.
func BenchmarkWatcher(b *testing.B) {
	box, raw := newTeam(b, "bob").Box("bob"), b.TempDir()
	w := watcher.Open(b.Context(), []watcher.Mailbox{box}, watcher.Options{Messages: true})
	defer w.Close()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	must(b, err)
	defer syscall.Close(fd)
	_, err = syscall.InotifyAddWatch(fd, raw, syscall.IN_CREATE)
	must(b, err)
	temp, buf := b.TempDir(), make([]byte, 4096)
	measure := func(dir string, wait func() error) time.Duration {
		m := message()
		data, _ := m.Encode()
		file := filepath.Join(temp, string(m.ID))
		must(b, os.WriteFile(file, data, 0o600))
		seen := make(chan error)
		go func() { seen <- wait() }()
		time.Sleep(2 * time.Millisecond) // wait must have begun
		begin := time.Now()
		must(b, os.Link(file, filepath.Join(dir, string(m.ID)+".json")))
		must(b, <-seen)
		return time.Since(begin)
	}
	var entries, events []time.Duration
	for b.Loop() {
		entries = append(entries, measure(filepath.Join(box.Path(), "inbox/new"), func() error {
			_, err := w.Next(b.Context())
			return err
		}))
		events = append(events, measure(raw, func() error {
			_, err := syscall.Read(fd, buf)
			for err == syscall.EINTR {
				_, err = syscall.Read(fd, buf)
			}
			return err
		}))
	}
	entry, event := median(entries), median(events)
	b.ReportMetric(entry, "ns/entry-p50")
	b.ReportMetric(event, "ns/inotify-p50")
	b.ReportMetric(entry/event, "ratio-p50")
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2])
}
