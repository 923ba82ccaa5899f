//go:build unix

package mailbox

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

func init() {
	roles["log"], roles["tear"], roles["archive"] = (*process).log, (*process).tear, (*process).archive
}

// killSegment makes segments of a stress run small, so that they are many.
const killSegment = 8 << 10

// log appends events, one to five at a time, and says which are in.
func (p *process) log() {
	maxSegment = killSegment
	b := p.store.Box(killBob)
	for r, n := random(), 0; ; {
		var events []wire.Event
		for range 1 + r.IntN(5) {
			n++
			events = append(events, wire.Event{Kind: "test", Source: "cli"}.With("name", fmt.Sprintf("%d.%d", os.Getpid(), n)).With("pad", strings.Repeat("x", r.IntN(300))))
		}
		if p.failed(b, b.Append(context.Background(), AppendOptions{}, events...)) {
			continue
		}
		for i := range events {
			p.say("in %s", events[i].Field("name"))
		}
	}
}

// tear leaves what a kill in the middle of a write leaves: the beginning of a
// line, or of several.
func (p *process) tear() {
	maxSegment = killSegment
	b := p.store.Box(killBob)
	for r := random(); ; time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond) {
		unlock, err := b.lock(context.Background(), "events", lockfile.Exclusive)
		if p.failed(b, err) {
			continue
		}
		if l, err := b.openLog(lockfile.Stamp{}); err == nil && l.f != nil {
			e := wire.Event{Seq: l.seq + 1, At: time.Now(), Team: "main", Agent: killBob, Source: "cli", Kind: "torn"}
			line := append(e.Append(nil), '\n')
			if l.size < maxSegment {
				l.f.Write(line[:1+r.IntN(len(line)-2)])
			}
			l.close()
		}
		unlock()
	}
}

// archive moves old segments away, as gc does: not so young ones that a follower
// on a busy machine may not have read them yet.
func (p *process) archive() {
	b := p.store.Box(killBob)
	for ; ; time.Sleep(50 * time.Millisecond) {
		_, err := b.ArchiveEvents(context.Background(), time.Now().Add(-1500*time.Millisecond), false, func(upTo uint64) (Snapshot, error) {
			return Snapshot{Version: 1, Seq: upTo, State: []byte(fmt.Sprintf(`{"seq":%d}`, upTo))}, nil
		})
		p.failed(b, err)
	}
}

// followed is what one follower saw.
type followed struct {
	names map[string]int
	last  uint64
	gaps  int
	wrong []string
}

// follow reads the log as others append, from where it is now, until stop is
// closed and nothing more comes.
func follow(b *Box, after uint64, stop <-chan struct{}) *followed {
	f := &followed{names: map[string]int{}, last: after}
	c := b.Events(after)
	defer c.Close()
	for ended := false; ; {
		e, gap, err := c.Next()
		switch {
		case err == io.EOF && ended:
			return f
		case err == io.EOF:
			select {
			case <-stop:
				ended = true // one more look
			case <-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond):
			}
			continue
		case err != nil:
			f.wrong = append(f.wrong, err.Error())
			return f
		}
		if gap != nil {
			f.gaps++
			f.wrong = append(f.wrong, fmt.Sprintf("events %d to %d are missing", gap.From, gap.To))
			f.last = gap.To
		}
		if e.Seq != f.last+1 {
			f.wrong = append(f.wrong, fmt.Sprintf("event %d after %d", e.Seq, f.last))
		}
		f.last = e.Seq
		f.names[e.Field("name")]++
	}
}

// Eight processes append while they are killed at random, lines are torn,
// segments rotate every 8 KiB and old ones go to the archive. What was said to
// be in is in, once; numbers have no gap; who follows sees each event once and
// in order.
func TestLogKilled(t *testing.T) {
	duration := 2 * time.Second
	if s := os.Getenv("ATM_STRESS"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal("ATM_STRESS: ", err)
		}
		duration = d / 2
	}
	smallSegments(t, killSegment)
	path := scratch(t)
	s := openStore(t, path, nil, killBob)
	b := s.Box(killBob)
	appendEvents(t, b, "first")
	end := time.Now().Add(duration)
	var mu sync.Mutex
	in, killed := map[string]bool{}, 0
	var wrong []string
	var all, watching sync.WaitGroup
	for role, n := range map[string]int{"log": 8, "tear": 1, "archive": 1} {
		for range n {
			all.Go(func() {
				for time.Now().Before(end) {
					c, out := start(t, role, path)
					life := time.AfterFunc(time.Duration(30+rand.IntN(400))*time.Millisecond, func() { c.Process.Kill() })
					for out.Scan() {
						mu.Lock()
						if name, ok := strings.CutPrefix(out.Text(), "in "); ok {
							in[name] = true
						} else if out.Text() != "busy" {
							wrong = append(wrong, out.Text())
						}
						mu.Unlock()
					}
					life.Stop()
					c.Wait()
					if c.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
						mu.Lock()
						killed++
						mu.Unlock()
					}
				}
			})
		}
	}
	stop := make(chan struct{})
	var seen [2]*followed
	for i := range seen {
		watching.Go(func() { seen[i] = follow(b, 1, stop) })
	}
	all.Wait()
	appendEvents(t, b, "last")
	close(stop)
	watching.Wait()
	// On a machine that has much else to do nobody may have got to it.
	if _, err := b.ArchiveEvents(context.Background(), time.Now().Add(time.Hour), false, func(upTo uint64) (Snapshot, error) {
		return Snapshot{Version: 1, Seq: upTo, State: []byte(fmt.Sprintf(`{"seq":%d}`, upTo))}, nil
	}); err != nil {
		t.Error(err)
	}
	for _, line := range wrong {
		t.Error(line)
	}
	last, err := b.LastSeq()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range seen {
		for _, w := range f.wrong {
			t.Error(w)
		}
		if f.last != last {
			t.Errorf("a follower ended at %d, the log at %d", f.last, last)
		}
		for name := range in {
			if f.names[name] != 1 {
				t.Errorf("event %s was seen %d times", name, f.names[name])
			}
		}
	}
	segs, err := os.ReadDir(b.Path() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	archived, _ := os.ReadDir(path + "/.archive/" + string(killBob) + "/events")
	if len(archived) == 0 {
		t.Error("no segment was archived")
	}
	// (Whoever archived last was perhaps killed before it moved what is in the base.)
	if base, ok := b.Base(); !ok || segs[0].Name() > segmentName(base.Seq+1) {
		t.Errorf("the base ends at %d, and %s is the oldest segment", base.Seq, segs[0].Name())
	}
	t.Logf("%s, %d processes killed, %d events said to be in, %d in the log, %d segments and %d archived", duration, killed, len(in), last, len(segs)-1, len(archived))
}
