package watcher

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
	"golang.org/x/sys/unix"
)

// BenchmarkLatency measures the time from a rename into new in another process
// to Next's return, and to the return of a blocking read of inotify, in turns in
// one run. Goal: p50 at most 1.8 times.
func BenchmarkLatency(b *testing.B) {
	const perRound = 50
	s := openStore(b, b.TempDir(), "bob")
	bob := s.Box("bob")
	writer := startWriter(b, bob)
	var raw, ours, ratios []float64
	for b.Loop() {
		r := rawRound(b, bob, writer, perRound)
		o := watcherRound(b, bob, writer, perRound)
		raw, ours = append(raw, r...), append(ours, o...)
		ratios = append(ratios, at(o, 50)/at(r, 50))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(raw, 50), "raw-p50-µs")
	b.ReportMetric(at(raw, 99), "raw-p99-µs")
	b.ReportMetric(at(ours, 50), "watcher-p50-µs")
	b.ReportMetric(at(ours, 99), "watcher-p99-µs")
	b.ReportMetric(at(ours, 50)/at(raw, 50), "ratio-p50")
	b.ReportMetric(at(ratios, 50), "ratio-of-rounds")
}

func at(values []float64, percent int) float64 {
	v := slices.Clone(values)
	slices.Sort(v)
	return v[(len(v)-1)*percent/100]
}

func rawRound(b *testing.B, bob *mailbox.Box, w *writer, n int) []float64 {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(bob.Path(), "inbox", "new"), unix.IN_MOVED_TO); err != nil {
		b.Fatal(err)
	}
	w.start(n)
	got := map[string]int64{}
	var buf [4096]byte
	for len(got) < n {
		m, err := unix.Read(fd, buf[:])
		now := time.Now().UnixNano()
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		for off := 0; off < m; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[off]))
			off += unix.SizeofInotifyEvent
			got[string(buf[off:off+36])] = now
			off += int(e.Len)
		}
	}
	return w.delays(n, got)
}

func watcherRound(b *testing.B, bob *mailbox.Box, w *writer, n int) []float64 {
	wa, err := Open(context.Background(), []*mailbox.Box{bob}, Options{Messages: true})
	if err != nil {
		b.Fatal(err)
	}
	defer wa.Close()
	w.start(n)
	got := map[string]int64{}
	for len(got) < n {
		e, err := wa.Next(context.Background())
		now := time.Now().UnixNano()
		if err != nil || e.Message == nil {
			b.Fatal(e, err)
		}
		got[string(e.Message.ID)] = now
	}
	return w.delays(n, got)
}

// writer is another process that renames messages into a mailbox.
type writer struct {
	b   testing.TB
	in  *os.File
	out *bufio.Scanner
}

func startWriter(b testing.TB, bob *mailbox.Box) *writer {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ATM_WATCHER_TEST=write", "ATM_WATCHER_BOX="+bob.Path())
	cmd.Stderr = os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	r.Close()
	b.Cleanup(func() {
		w.Close()
		cmd.Wait()
	})
	return &writer{b, w, bufio.NewScanner(out)}
}

func (w *writer) start(n int) { fmt.Fprintln(w.in, n) }

// delays is how many µs after the rename each was seen.
func (w *writer) delays(n int, got map[string]int64) (out []float64) {
	for range n {
		if !w.out.Scan() {
			w.b.Fatal("the writer ended")
		}
		id, when := w.out.Text()[:36], w.out.Text()[37:]
		ns, _ := strconv.ParseInt(when, 10, 64)
		out = append(out, float64(got[id]-ns)/1e3)
	}
	return out
}

func init() {
	children["write"] = func() {
		runtime.LockOSThread()
		box := os.Getenv("ATM_WATCHER_BOX")
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			n, _ := strconv.Atoi(in.Text())
			ids := make([]wire.ID, n)
			for i := range ids {
				m := message("alice", "a message of a usual length, that is to say rather a short one")
				ids[i] = m.ID
				data, _ := m.Encode()
				if err := os.WriteFile(filepath.Join(box, "inbox", "tmp", string(m.ID)), data, 0o600); err != nil {
					panic(err)
				}
			}
			report := ""
			for _, id := range ids {
				time.Sleep(2 * time.Millisecond)
				from, to := filepath.Join(box, "inbox", "tmp", string(id)), filepath.Join(box, "inbox", "new", string(id)+".json")
				now := time.Now().UnixNano()
				if err := os.Rename(from, to); err != nil {
					panic(err)
				}
				report += fmt.Sprintln(id, now)
			}
			os.Stdout.WriteString(report)
		}
	}
}
