package mailbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// The event log: segments of NDJSON, named by their first sequence number.
const (
	dedupeWindow = 1 << 20 // how far back an event_id is looked for
	maxLine      = 8 << 20 // the longest line that is written or read
)

// maxSegment is the length from which on a segment is followed by a new one.
// Tests shorten it.
var maxSegment int64 = 16 << 20

// AppendOptions say how events are appended.
type AppendOptions struct {
	Sync bool // survive a power cut, also those that are left out
}

// Append appends events to the agent's log, gapless and in order, and fills in
// seq, at, team and agent, also for the caller. An event whose EventID is among
// the last MiB of the log is left out (and its seq stays as it was). Many processes may append at once. A torn last line, which
// a kill or a power cut leaves, is cut off first and kept in bad.
func (b *Box) Append(ctx context.Context, opt AppendOptions, events ...wire.Event) error {
	if len(events) == 0 {
		return nil
	}
	lock, err := b.store.locks.Lock(ctx, string(b.agent)+".events", lockfile.Often, b.store.timeout(), b.seen)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	l, err := b.openLog(lock.Stamp())
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	seq := l.seq
	if l.room == nil {
		l.room = make([]byte, 0, usualLine*len(events))
	}
	buf, recent := l.room[:0], []byte(nil)
	for i, e := range events {
		if e.EventID != "" {
			if recent == nil {
				if recent, err = l.recent(events); err != nil {
					return l.discard(err)
				}
			}
			if hasEventID(recent, e.EventID) || hasEventID(buf, e.EventID) {
				continue
			}
		}
		// What cannot be read back would be cut off by the next who appends.
		if err := sound(&e); err != nil {
			return l.keep(fmt.Errorf("append to the events of %s: no event: %w", b.agent, err))
		}
		seq++
		e.Seq, e.At, e.Team, e.Agent = seq, now, b.store.Team, b.agent
		events[i] = e
		begin := len(buf)
		buf = append(e.Append(buf), '\n')
		if n := len(buf) - begin; n > maxLine {
			return l.keep(fmt.Errorf("append to the events of %s: an event takes %d bytes, the most is %d", b.agent, n, maxLine))
		}
	}
	if len(buf) > 0 {
		if err := l.write(buf, seq); err != nil {
			return l.discard(fmt.Errorf("append to the events of %s: %w", b.agent, err))
		}
	}
	// Also what is there already: who wrote it was perhaps killed before this.
	if opt.Sync && l.f != nil {
		if l.unsynced != nil {
			return l.discard(l.unsynced)
		}
		if err := l.dir.SyncFile(l.f); err != nil {
			return l.discard(err)
		}
		if err := l.dir.Sync(); err != nil {
			return l.discard(err)
		}
	}
	if cap(buf) <= keptRoom {
		l.room = buf
	}
	return l.keep(nil)
}

// usualLine is how long most lines are, those about the mailbox's own messages.
const usualLine = 224

// keptRoom is the most that is kept of the room that lines took.
const keptRoom = 16 << 10

// sound reports what would keep an event from being read back as it is.
func sound(e *wire.Event) error {
	for _, f := range e.Extra {
		switch f.Key {
		case "seq", "at", "team", "agent", "source", "kind", "session", "turn_id", "event_id", "wire":
			return fmt.Errorf("%s is a field of every event", f.Key)
		}
		if !wire.Valid(f.Raw) {
			return fmt.Errorf("%s is not JSON", f.Key)
		}
	}
	if e.Wire != nil && !wire.Valid(e.Wire) {
		return errors.New("wire is not JSON")
	}
	return nil
}

// LastSeq is the sequence number of the newest event, 0 when there is none.
func (b *Box) LastSeq() (uint64, error) {
	events, err := b.Tail(1)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[len(events)-1].Seq, nil
}

// Tail returns the newest events, oldest first: at least n if there are so
// many, and all that lie within the last window of the log with them.
func (b *Box) Tail(n int) ([]wire.Event, error) {
	return b.TailUntil(func(events []wire.Event) bool { return len(events) >= n })
}

// TailUntil returns the newest events, oldest first, reading further back
// until enough says so or there are no more.
func (b *Box) TailUntil(enough func([]wire.Event) bool) ([]wire.Event, error) {
	dir, err := b.eventsDir()
	if err != nil || dir == nil {
		return nil, err
	}
	defer dir.Close()
	segs, err := segments(dir)
	if err != nil {
		return nil, err
	}
	var out []wire.Event
	for i := len(segs) - 1; i >= 0; i-- {
		f, err := dir.Open(segmentName(segs[i]))
		if atomicfile.Absent(err) {
			continue
		}
		if err != nil {
			return out, err
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return out, err
		}
		size := info.Size()
		var part []wire.Event
		for window := int64(1 << 10); ; window *= 8 {
			from := max(0, size-window)
			buf, err := tail(f, size, window)
			if err != nil {
				f.Close()
				return out, err
			}
			part = decodeLines(buf, segs[i], from)
			if from == 0 || enough(append(part[:len(part):len(part)], out...)) {
				break
			}
		}
		f.Close()
		out = append(part, out...)
		if enough(out) {
			break
		}
	}
	return out, nil
}

// LastBatch finds the messages that the last Read marked, oldest first. Those
// that are nowhere any more are left out.
func (b *Box) LastBatch() ([]*Item, error) {
	batch := ""
	var ids []wire.ID
	_, err := b.TailUntil(func(events []wire.Event) bool {
		batch, ids = "", nil
		for i := len(events) - 1; i >= 0; i-- {
			e := &events[i]
			if e.Kind != wire.EventRead {
				continue
			}
			if batch == "" {
				batch = e.Field("batch")
			}
			if e.Field("batch") != batch {
				return true // an earlier one: this batch is whole
			}
			ids = append(ids, e.MessageID())
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	var items []*Item
	for _, id := range slices.Backward(ids) {
		it, err := b.Get(id)
		if err == nil {
			items = append(items, it)
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return items, nil
}

// decodeLines decodes the whole lines of a segment that begin at from or after.
func decodeLines(b []byte, first uint64, from int64) []wire.Event {
	var out []wire.Event
	if from > 0 { // the first line is perhaps not whole
		i := bytes.IndexByte(b, '\n') + 1
		b, from = b[i:], from+int64(i)
	}
	for {
		line, rest, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			return out
		}
		if e, ok := logged(line, first, from); ok {
			out = append(out, e)
		}
		b, from = rest, from+int64(len(line))+1
	}
}
