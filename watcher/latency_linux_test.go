package watcher

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkLatency measures the time from a rename into new to Next's return, and to
// the return of a blocking read of inotify, in turns. Goal: p50 at most 3 times.
func BenchmarkLatency(b *testing.B) {
	s := openStore(b, b.TempDir(), "bob")
	inbox := filepath.Join(s.Box("bob").Path(), "inbox")
	var raw, ours []time.Duration
	for b.Loop() {
		raw = append(raw, rawDelays(b, inbox)...)
		w := watch(b, Options{Messages: true}, s.Box("bob"))
		ours = append(ours, delays(b, inbox, func() { next(b, w) })...)
		w.Close()
	}
	slices.Sort(raw)
	slices.Sort(ours)
	b.ReportMetric(0, "ns/op")
	for name, d := range map[string][]time.Duration{"raw": raw, "watcher": ours} {
		b.ReportMetric(float64(d[len(d)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(d[len(d)*99/100].Microseconds()), name+"-p99-µs")
	}
	b.ReportMetric(float64(ours[len(ours)/2])/float64(raw[len(raw)/2]), "ratio-p50")
}

func rawDelays(b *testing.B, inbox string) []time.Duration {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(inbox, "new"), unix.IN_MOVED_TO); err != nil {
		b.Fatal(err)
	}
	var buf [4096]byte
	return delays(b, inbox, func() {
		for _, err := unix.Read(fd, buf[:]); err == unix.EINTR; _, err = unix.Read(fd, buf[:]) {
		}
	})
}

// delays renames messages into new, one after the other, and says how long after each
// wait returned, which waits elsewhere meanwhile.
func delays(b *testing.B, inbox string, wait func()) []time.Duration {
	const n = 50
	seen := make(chan time.Time)
	go func() {
		for range n {
			wait()
			seen <- time.Now()
		}
	}()
	var out []time.Duration
	for range n {
		m := message("alice", "a message of a usual length, that is to say rather a short one")
		data, _ := m.Encode()
		tmp := filepath.Join(inbox, "tmp", string(m.ID))
		if err := os.WriteFile(tmp, data, 0o600); err != nil {
			b.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // until wait waits
		at := time.Now()
		if err := os.Rename(tmp, filepath.Join(inbox, "new", string(m.ID)+".json")); err != nil {
			b.Fatal(err)
		}
		out = append(out, (<-seen).Sub(at))
	}
	return out
}
