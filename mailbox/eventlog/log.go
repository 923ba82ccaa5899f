// Package eventlog keeps the events of one agent: numbered from 1 without gaps,
// appended by many processes, followed by many more.
//
//	events/00000000000000000001.ndjson   a segment: one event a line, named by its first number
//	events/base.json                     the fold of what is in the archive
//	state.json                           the fold up to some event: a cache
//
// What may be relied on:
//
//   - An append is one write of whole lines, under the lock. What a kill or a power
//     cut leaves of a line is cut off by the next append, and kept beside the bad
//     messages.
//   - Only the newest segment is written to. A full one is synced before the next
//     is made: a power cut takes the end of a log, never its middle.
//   - Followers take no lock and see whole lines only, each event once and in order.
//     Events that are missing show as a Gap.
package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

const (
	recentBytes = 1 << 20 // how far back an event_id is looked for
	maxLine     = 8 << 20 // the longest line that is written or read
)

// segmentSize is the size from which on a segment is full. Tests shorten it.
var segmentSize int64 = 16 << 20

// Log is one agent's log. It keeps nothing open and may be copied and used by
// several goroutines at once.
type Log struct {
	Root    *durable.Root
	Dir     string // of the segments, in Root
	State   string // the file of the cached snapshot
	Bad     string // the directory for what is cut off a torn segment
	Archive string // the directory for old segments

	// Lock gets the lock of who appends. When it has returned, the mailbox is
	// known to be there.
	Lock func(context.Context) (unlock func(), err error)

	// Present is asked before each look: the error for a mailbox that is not there.
	Present func() error

	// Fill sets what all events of this log have: team and agent.
	Fill func(*wire.Event)
}

// Append appends events, all or none, and fills in seq and at, also for the caller.
// An event whose EventID is among the last MiB of the log is left out, and its seq
// stays as it was. What could not be read back is refused.
func (l *Log) Append(ctx context.Context, events ...wire.Event) error {
	return l.append(ctx, false, events)
}

// AppendSync is Append, and what it appended survives a power cut; so do the events
// that were left out: the process that appended them may have been killed since.
func (l *Log) AppendSync(ctx context.Context, events ...wire.Event) error {
	return l.append(ctx, true, events)
}

func (l *Log) append(ctx context.Context, sync bool, events []wire.Event) error {
	if len(events) == 0 {
		return nil
	}
	unlock, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.write(events, sync); err != nil {
		return fmt.Errorf("append to %s: %w", l.Root.Join(l.Dir), err)
	}
	return nil
}

// newest is the segment that is written to, while the lock is held.
type newest struct {
	file *os.File // nil: there is no segment yet
	segs []uint64 // all segments; the last is this one
	size int64
	seq  uint64 // the log's last number
}

func (l *Log) write(events []wire.Event, sync bool) error {
	n, err := l.openNewest()
	defer func() { n.file.Close() }() // nil too
	if err != nil {
		return err
	}
	lines, err := l.encode(events, n)
	if err != nil {
		return err
	}
	var unsynced error // why the segment before may not survive a power cut
	if len(lines) > 0 {
		if n.file == nil || n.size >= segmentSize {
			if n.file != nil {
				unsynced = l.Root.SyncFile(n.file)
				n.file.Close()
			}
			if n.file, err = l.create(n.seq + 1); err != nil {
				return err
			}
			n.size = 0
		}
		if err := l.Root.Write(n.file, lines); err != nil {
			n.file.Truncate(n.size) // else the next append does it
			return err
		}
	}
	if !sync || n.file == nil {
		return nil
	}
	if unsynced != nil {
		return unsynced
	}
	if err := l.Root.SyncFile(n.file); err != nil {
		return err
	}
	return l.Root.Sync(l.Dir)
}

// openNewest opens the newest segment, and cuts off what follows its last event.
func (l *Log) openNewest() (n newest, err error) {
	if n.segs, err = l.segments(); err != nil {
		return n, err
	}
	if len(n.segs) == 0 {
		base, _, err := l.Base()
		n.seq = base.Seq // numbers go on
		return n, err
	}
	first := n.segs[len(n.segs)-1]
	if n.file, err = l.Root.OpenFile(l.segment(first), os.O_RDWR|os.O_APPEND); err != nil {
		return n, err
	}
	if n.seq, n.size, err = lastEvent(n.file, first); err != nil {
		return n, err
	}
	info, err := n.file.Stat()
	if err != nil || info.Size() == n.size {
		return n, err
	}
	torn := make([]byte, info.Size()-n.size)
	if _, err := n.file.ReadAt(torn, n.size); err != nil {
		return n, err
	}
	if err := l.keepTorn(segmentName(first), torn); err != nil {
		return n, fmt.Errorf("keep a torn line: %w", err)
	}
	return n, n.file.Truncate(n.size)
}

func (l *Log) keepTorn(segment string, torn []byte) error {
	if err := l.Root.MkdirAll(l.Bad); err != nil {
		return err
	}
	name := path.Join(l.Bad, "events."+segment+"."+string(wire.NewID()))
	if err := l.Root.Replace(name, torn, false); err != nil {
		return err
	}
	return l.Root.Replace(name+".reason", []byte("a line of the event log that was not written whole\n"), false)
}

func (l *Log) create(first uint64) (*os.File, error) {
	if err := l.Root.MkdirAll(l.Dir); err != nil {
		return nil, err
	}
	return l.Root.OpenFile(l.segment(first), os.O_RDWR|os.O_APPEND|os.O_CREATE)
}

// encode numbers the events that are new and makes lines of them.
func (l *Log) encode(events []wire.Event, n newest) (lines []byte, err error) {
	now := time.Now().UTC()
	var recent []byte
	for i, e := range events {
		if e.EventID != "" {
			if recent == nil {
				if recent, err = l.recent(n); err != nil {
					return nil, err
				}
			}
			if hasEventID(recent, e.EventID) || hasEventID(lines, e.EventID) {
				continue
			}
		}
		n.seq++
		e.Seq, e.At = n.seq, now
		l.Fill(&e)
		events[i] = e
		line := e.Append(nil)
		if len(line) >= maxLine {
			return nil, fmt.Errorf("an event takes %d bytes, the most is %d", len(line)+1, maxLine)
		}
		// What cannot be read back would be cut off by the next append.
		back, err := wire.DecodeEvent(line)
		if err != nil {
			return nil, fmt.Errorf("not an event: %w", err)
		}
		if !bytes.Equal(back.Append(nil), line) || bytes.IndexByte(line, '\n') >= 0 {
			return nil, fmt.Errorf("not an event: it reads back as another: %.200s", line)
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines, nil
}

// recent reads the last MiB of the log: of the newest segment, and of the one before
// while that is short.
func (l *Log) recent(n newest) ([]byte, error) {
	if n.file == nil {
		return []byte{}, nil
	}
	lines, _, err := readEnd(n.file, recentBytes)
	before := len(n.segs) - 2
	if err != nil || before < 0 || n.size >= recentBytes {
		return lines, err
	}
	f, err := l.Root.Open(l.segment(n.segs[before]))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	older, _, err := readEnd(f, recentBytes-n.size)
	return slices.Concat(older, lines), err
}

// hasEventID reports whether one of the lines is an event with this id. It may stand
// elsewhere in a line, as in an event of another vocabulary.
func hasEventID(lines []byte, id string) bool {
	key := wire.Quote(id)[1:] // of quotes there are so many that it takes three times as long
	for {
		i := bytes.Index(lines, key)
		if i < 0 {
			return false
		}
		begin, end := bytes.LastIndexByte(lines[:i], '\n')+1, i+bytes.IndexByte(lines[i:], '\n')
		if e, err := wire.DecodeEvent(lines[begin:end]); err == nil && e.EventID == id {
			return true
		}
		lines = lines[end:]
	}
}

// LastSeq is the number of the newest event, 0 when there is none.
func (l *Log) LastSeq() (seq uint64, err error) {
	events, err := l.Tail(func(events []wire.Event) bool { return len(events) > 1 })
	for _, e := range events { // the last line may be somebody else's
		seq = max(seq, e.Seq)
	}
	return seq, err
}

// SeqBefore is the number of the last event that was appended before a moment, 0
// when there is none. Where the clock was set back it is one of several.
func (l *Log) SeqBefore(t time.Time) (seq uint64, err error) {
	segs, err := l.segments()
	for _, first := range slices.Backward(segs) {
		c := l.Follow(first - 1)
		e, _, err := c.Next()
		for ; err == nil && e.At.Before(t); e, _, err = c.Next() {
			seq = e.Seq
		}
		c.Close()
		if err != nil && err != io.EOF {
			return 0, err
		}
		if seq > 0 {
			break
		}
	}
	return seq, err
}

// Tail returns the newest events, oldest first, reading further back until enough
// says so or there are no more.
func (l *Log) Tail(enough func([]wire.Event) bool) (events []wire.Event, err error) {
	segs, err := l.segments()
	for _, first := range slices.Backward(segs) {
		done := false
		if events, done, err = l.tail(first, events, enough); done || err != nil {
			break
		}
	}
	return events, err
}

// tail puts the newest events of a segment before those behind it.
func (l *Log) tail(first uint64, behind []wire.Event, enough func([]wire.Event) bool) (events []wire.Event, done bool, err error) {
	f, err := l.Root.Open(l.segment(first))
	if errors.Is(err, fs.ErrNotExist) {
		return behind, false, nil // archived by now
	}
	if err != nil {
		return behind, false, err
	}
	defer f.Close()
	for window := int64(2 << 10); ; window *= 8 {
		lines, at, err := readEnd(f, window)
		if err != nil {
			return behind, false, err
		}
		events, offset := []wire.Event(nil), at
		for line := range bytes.Lines(lines) {
			if e, ok := decode(line, first, offset); ok {
				events = append(events, e)
			}
			offset += int64(len(line))
		}
		events = append(events, behind...)
		if done := enough(events); done || at == 0 {
			return events, done, nil
		}
	}
}

// Newest returns the newest events, oldest first: at least n if there are so many.
func (l *Log) Newest(n int) ([]wire.Event, error) {
	return l.Tail(func(events []wire.Event) bool { return len(events) >= n })
}
