//go:build unix

package eventlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// ratio measures two things in turn, so that both have the same machine, and reports
// each and how often the second fits into the first.
func ratio(b *testing.B, first, second func()) {
	var times [2]time.Duration
	for b.Loop() {
		for i, f := range []func(){first, second} {
			begin := time.Now()
			f()
			times[i] += time.Since(begin)
		}
	}
	b.ReportMetric(float64(times[0].Nanoseconds())/float64(b.N), "ns/first")
	b.ReportMetric(float64(times[1].Nanoseconds())/float64(b.N), "ns/second")
	b.ReportMetric(float64(times[0])/float64(times[1]), "ratio")
	b.ReportMetric(0, "ns/op")
}

// An append, which opens the lock, the directory and the segment each time, against a
// lock, a write and an unlock of files that stay open.
func BenchmarkAppend(b *testing.B) {
	for name, id := range map[string]string{"plain": "", "event_id": "claude/0b1c/"} {
		b.Run(name, func(b *testing.B) {
			team := scratch(b)
			l := openLog(b, team, nil)
			e := wire.Event{Kind: "state_change", Source: "pty", Session: "0198c2f0-0000-7000-8000-000000000001"}.With("previous", "idle").With("new", "working")
			appendEvents(b, l, e)
			line, err := os.ReadFile(segmentPath(l, 1))
			if err != nil {
				b.Fatal(err)
			}
			open := func(name string, flag int) *os.File {
				f, err := os.OpenFile(filepath.Join(team, name), flag|os.O_CREATE, 0o600)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { f.Close() })
				return f
			}
			lock, raw := open("raw.lock", os.O_RDONLY), open("raw.ndjson", os.O_WRONLY|os.O_APPEND)
			n := 0
			ratio(b, func() {
				if n++; id != "" {
					e.EventID = fmt.Sprint(id, n)
				}
				appendEvents(b, l, e)
			}, func() {
				if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
					b.Fatal(err)
				}
				raw.Write(line)
				syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
			})
		})
	}
}

// To go on from a snapshot after a million events against after ten: read the
// snapshot, find its event, read what came since. The goal is a ratio of at most 1.3.
func BenchmarkResume(b *testing.B) {
	resume := func(events uint64) func() {
		l := openLog(b, scratch(b), nil)
		writeLog(b, l, events)
		c := l.Follow(events - 5)
		defer c.Close()
		if _, _, err := c.Next(); err != nil {
			b.Fatal(err)
		}
		s := Snapshot{Version: 1, State: []byte(`{}`)}
		c.Mark(&s)
		if err := l.SaveSnapshot(s); err != nil {
			b.Fatal(err)
		}
		return func() {
			s, _ := l.Snapshot()
			c, ok := l.Resume(s)
			if !ok {
				b.Fatal("the snapshot is refused")
			}
			defer c.Close()
			for {
				if _, _, err := c.Next(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
			if c.Seq() != events {
				b.Fatal(c.Seq())
			}
		}
	}
	ratio(b, resume(1_000_000), resume(10))
}

// writeLog writes the segments of a log of so many events.
func writeLog(b *testing.B, l *Log, events uint64) {
	var text bytes.Buffer
	first := uint64(1)
	for seq := uint64(1); seq <= events; seq++ {
		e := wire.Event{Seq: seq, At: time.Now().UTC(), Team: "main", Agent: "bob", Source: "pty", Kind: "state_change"}.With("previous", "idle").With("new", "working")
		text.Write(append(e.Append(nil), '\n'))
		if text.Len() >= int(segmentSize) || seq == events {
			if err := os.WriteFile(segmentPath(l, first), text.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
			text.Reset()
			first = seq + 1
		}
	}
}
