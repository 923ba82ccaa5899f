package mailbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// openLogs are the logs to which a store appended last. Keeping one open saves
// two thirds of an append; what is kept counts for nothing until, under the
// lock, the log's path still leads to that file and the file is as long as it
// was left: then nobody has appended, cut, rotated or moved it since.
type openLogs struct {
	mu   sync.Mutex
	logs map[wire.Name]*eventLog
}

// keptLogs bounds the descriptors that a store keeps.
const keptLogs = 64

// eventLog is the end of an agent's log, while its lock is held.
type eventLog struct {
	box  *Box
	dir  *atomicfile.Dir // events/
	f    *os.File        // the newest segment; nil: there is none
	seg  uint64          // its first number
	seq  uint64          // the log's last number
	size int64           // of the segment
	id   fs.FileInfo     // of the segment; nil: nobody has asked yet
	path string          // of the segment, in the team
	room []byte          // for the next lines

	stamp lockfile.Stamp // the lock's when the path was last looked at
	seen  time.Time      // when that was

	unsynced error // why the segment before, just filled, may not survive a power cut
}

// openLog is the end of the log as it is now, repaired if it needs to be.
// Hold the events lock until keep or discard.
func (b *Box) openLog(lock lockfile.Stamp) (*eventLog, error) {
	if l := b.store.logs.take(b.agent); l != nil {
		if l.current(lock) {
			l.box = b
			return l, nil
		}
		l.close()
	}
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	dir, err := r.dir("events", true)
	if err != nil {
		return nil, err
	}
	l := &eventLog{box: b, dir: dir, stamp: lock, seen: time.Now()}
	segs, err := segments(dir)
	if err == nil && len(segs) > 0 {
		l.seg = segs[len(segs)-1]
		if l.f, err = dir.Append(segmentName(l.seg)); err == nil {
			l.seq, l.size, err = r.repair(l.f, l.seg)
		}
	} else if err == nil {
		var base Snapshot
		base, _, err = b.ReadBase()
		l.seq = base.Seq // numbers go on
	}
	r.release("events") // it is the log's now
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// current reports whether a log that was kept is the agent's still, and as it
// was left. What moves a mailbox changes the lock's stamp first, so that as long
// as that is as it was the length tells all; the path is looked at as often as
// the lock's own, for those who move directories by hand.
func (l *eventLog) current(lock lockfile.Stamp) bool {
	if l.f == nil || l.size >= maxSegment {
		return false
	}
	if lock.Known() && lock == l.stamp && time.Since(l.seen) < lockfile.Trust {
		return l.box.store.dir.Whole(l.f, l.size)
	}
	if l.id == nil && l.known() != nil || !l.box.store.dir.Leads(l.path, l.id, l.size) {
		return false
	}
	l.stamp, l.seen = lock, time.Now()
	return true
}

// write appends whole lines, the last of which is seq, to the newest segment,
// or to a new one where that is full. What was written in part is cut back now,
// or by the next who appends.
func (l *eventLog) write(lines []byte, seq uint64) error {
	l.unsynced = nil
	if l.f == nil || l.size >= maxSegment {
		if l.f != nil {
			// Nobody syncs it later, and a power cut may take the end of a log,
			// not its middle.
			l.unsynced = l.dir.SyncFile(l.f)
			l.f.Close()
		}
		l.seg, l.size = seq-uint64(bytes.Count(lines, []byte{'\n'}))+1, 0
		var err error
		if l.f, err = l.dir.Append(segmentName(l.seg)); err != nil {
			return err
		}
		l.id = nil
	}
	if _, err := l.dir.Write(l.f, lines); err != nil {
		l.f.Truncate(l.size)
		return err
	}
	l.size += int64(len(lines))
	l.seq = seq
	return nil
}

// known notes what the open segment is and where it lies, for who appends again.
func (l *eventLog) known() (err error) {
	l.path = string(l.box.agent) + "/events/" + segmentName(l.seg)
	l.id, err = l.f.Stat()
	return err
}

// recent is the last MiB of the log; nothing of it where none of the events' ids
// stands in it, which is nearly always so, and found out without making room
// for a megabyte.
func (l *eventLog) recent(events []wire.Event) ([]byte, error) {
	segs := []uint64{l.seg}
	if l.size < dedupeWindow && l.seg > 1 {
		var err error
		if segs, err = segments(l.dir); err != nil {
			return nil, err
		}
	}
	if len(segs) == 1 && l.f != nil {
		if there, err := mentions(l.f, l.size, dedupeWindow, events); !there || err != nil {
			return []byte{}, err
		}
	}
	return recentLines(l.dir, segs, l.f, l.size)
}

// keep gives the log back for the next append, and returns err.
func (l *eventLog) keep(err error) error {
	l.box.store.logs.put(l)
	return err
}

// discard lets go of a log of which it is not known how it was left.
func (l *eventLog) discard(err error) error {
	l.close()
	return err
}

func (l *eventLog) close() error {
	err := l.dir.Close()
	if l.f != nil {
		err = errors.Join(err, l.f.Close())
	}
	return err
}

// take is the log that was kept for an agent, who has it alone now; nil when
// there is none.
func (o *openLogs) take(agent wire.Name) *eventLog {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.logs[agent]
	delete(o.logs, agent)
	return l
}

func (o *openLogs) put(l *eventLog) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// (Windows renames no directory in which a file is open, as retiring does.)
	if o.logs[l.box.agent] != nil || len(o.logs) >= keptLogs || runtime.GOOS == "windows" {
		l.close()
		return
	}
	if o.logs == nil {
		o.logs = map[wire.Name]*eventLog{}
	}
	o.logs[l.box.agent] = l
}

func (o *openLogs) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for agent, l := range o.logs {
		errs = append(errs, l.close())
		delete(o.logs, agent)
	}
	return errors.Join(errs...)
}
