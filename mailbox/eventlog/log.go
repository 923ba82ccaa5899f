// Package eventlog keeps the events of one agent, numbered from 1 without gaps. Many processes append to a log and
// follow it.
//
//	<agent>/events/00000000000000000001.ndjson   a segment: one event a line, named by its first number
//	<agent>/events/base.json                     the fold of the archived events
//	<agent>/state.json                           the fold up to some event: a cache
//	<agent>/inbox/bad/                           bytes that were cut off torn segments
//	.archive/<agent>/events/                     old segments
//
// An append is one write of whole lines, under the lock. If a kill or a power cut leaves a torn line, the next append
// cuts it off and keeps it beside the bad messages. Only the newest segment is written to, and a full one is synced
// before the next is made, so a power cut takes the end of a log, never its middle, unless that sync fails. Followers take no lock. They see
// whole lines only, each event once and in order.
package eventlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

const recentBytes = 1 << 20 // how much of the log is searched for an event_id

// ErrNoEvent is wrapped by Append's error for an event that no log can take.
var ErrNoEvent = errors.New("not an event")

// Tests shorten these.
var (
	segmentSize int64 = 16 << 20 // from which a segment is full
	maxLine     int64 = 8 << 20  // of the longest line that is written or read; a longer one is skipped like a torn one
)

// Log is one agent's log; mailbox.Box.Log returns it. It keeps no file open and may be used by several goroutines at
// once.
type Log struct {
	Root  *durable.Root // the team's directory
	Owner wire.Address  // the team and agent of all events

	Lock    func(context.Context) (unlock func(), err error) // locks for an append; an error if there is no mailbox then
	Present func() error                                     // called before each look; an error if there is no mailbox
}

func (l *Log) dir() string     { return string(l.Owner.Agent) + "/events" }
func (l *Log) base() string    { return l.dir() + "/" + baseFile }
func (l *Log) state() string   { return string(l.Owner.Agent) + "/state.json" }
func (l *Log) bad() string     { return string(l.Owner.Agent) + "/inbox/bad" }
func (l *Log) archive() string { return ".archive/" + l.dir() }

// Append appends all of the events or none, and sets their Seq and At, in the caller's slice too. It leaves out an
// event whose EventID, of the same Source, is in the last MiB of the log, and refuses one that could not be read back.
func (l *Log) Append(ctx context.Context, events ...wire.Event) error {
	return l.append(ctx, false, events)
}

// AppendSync is Append, and then the events survive a power cut. So do those that were left out: the process that
// appended them may have been killed before its sync.
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
	n, err := l.openNewest(os.O_RDWR | os.O_APPEND)
	defer func() { n.file.Close() }() // nil too
	if err == nil {
		err = l.mend(&n)
	}
	if err == nil {
		err = l.write(&n, events, sync)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.Root.Join(l.dir()), err)
	}
	return nil
}

// newest is the segment to which events are appended.
type newest struct {
	first uint64
	file  *os.File // nil if there is no segment yet
	size  int64    // up to the end of the last event
	seq   uint64   // the log's last number
}

// openNewest opens the newest segment. The caller has looked whether there is a mailbox, or holds the lock.
func (l *Log) openNewest(flag int) (n newest, err error) {
	segs, err := l.segmentsIn(l.dir())
	if err != nil || len(segs) == 0 {
		base, _, baseErr := l.Base()
		n.seq = base.Seq // numbers go on
		return n, cmp.Or(err, baseErr)
	}
	n.first = segs[len(segs)-1]
	if n.file, err = l.Root.OpenFile(l.segment(n.first), flag); err != nil {
		return n, err
	}
	// Another program may have written the last line, with a number of its own. If later events were numbered before
	// that, followers would skip them. So the highest number counts, up to two lines that follow each other.
	n.seq = n.first - 1
	_, err = readBackward(n.file, func(line []byte, offset int64) bool {
		e, ok := decode(line, n.first, offset)
		if !ok {
			return false
		}
		isSure := n.size > 0 && e.Seq+1 == n.seq
		n.seq, n.size = max(n.seq, e.Seq), max(n.size, offset+int64(len(line)))
		return isSure
	})
	return n, err
}

// mend cuts off what follows the last event, unless that is the next event without its line feed, which it adds. The
// caller holds the lock.
func (l *Log) mend(n *newest) error {
	if n.file == nil {
		return nil
	}
	tail := io.NewSectionReader(n.file, n.size, 1<<62)
	torn, err := io.ReadAll(io.LimitReader(tail, maxLine+1))
	if err != nil || len(torn) == 0 {
		return err
	}
	if e, ok := decode(torn, n.first, n.size); ok && e.Seq == n.seq+1 { // only its line feed is missing
		n.seq, n.size = e.Seq, n.size+int64(len(torn))+1
		return l.Root.Write(n.file, []byte{'\n'})
	}
	name := l.bad() + "/events." + segmentName(n.first) + "." + string(wire.NewID())
	if err = l.Root.MkdirAll(l.bad()); err == nil {
		_, err = tail.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = l.Root.Publish(name, tail, false)
	}
	if err == nil {
		err = l.Root.Replace(name+".reason", []byte("a truncated line of the event log\n"), false)
	}
	if err == nil {
		err = n.file.Truncate(n.size)
	}
	return err
}

func (l *Log) write(n *newest, events []wire.Event, sync bool) error {
	lines, err := l.encode(events, n.seq)
	if err != nil {
		return err
	}
	if len(lines) > 0 {
		if n.file != nil && n.size >= segmentSize {
			// If that fails, a power cut may take the end of this segment. It says nothing about these events, and another
			// sync would seem to succeed.
			l.Root.SyncFile(n.file)
			n.file.Close()
			n.file = nil
		}
		if n.file == nil {
			if err = l.Root.MkdirAll(l.dir()); err == nil {
				n.file, err = l.Root.OpenFile(l.segment(n.seq+1), os.O_RDWR|os.O_APPEND|os.O_CREATE)
			}
			if n.size = 0; err != nil {
				return err
			}
		}
		if err := l.Root.Write(n.file, lines); err != nil {
			n.file.Truncate(n.size) // if that fails, the next append does it
			return err
		}
	}
	if !sync || n.file == nil {
		return nil
	}
	return cmp.Or(l.Root.SyncFile(n.file), l.Root.Sync(l.dir()))
}

// encode numbers the events that the log does not have yet, and encodes them as lines.
func (l *Log) encode(events []wire.Event, seq uint64) (lines []byte, err error) {
	known, err := l.known(events)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	for i, e := range events {
		key := eventKey{e.Source, e.EventID}
		if known[key] {
			continue
		}
		known[key] = e.EventID != ""
		seq++
		e.Seq, e.At, e.Team, e.Agent = seq, now, l.Owner.Team, l.Owner.Agent
		events[i] = e
		line := e.Append(nil)
		if int64(len(line)) >= maxLine {
			return nil, fmt.Errorf("%w: it is %d bytes long, the limit is %d", ErrNoEvent, len(line)+1, maxLine)
		}
		// The next append would cut off a line that cannot be read back.
		back, err := wire.DecodeEvent(line)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoEvent, err)
		}
		if !bytes.Equal(back.Append(nil), line) || bytes.IndexByte(line, '\n') >= 0 {
			return nil, fmt.Errorf("%w: it reads back differently: %.200s", ErrNoEvent, line)
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines, nil
}

// eventKey tells a repeated event. One source cannot use up the ids of another, most of which anybody can compute.
type eventKey struct{ source, id string }

// known returns those keys of the events that are in the last MiB of the log, perhaps with others.
func (l *Log) known(events []wire.Event) (known map[eventKey]bool, err error) {
	known = map[eventKey]bool{}
	var keys [][]byte // quoted as in a line, but for the first quote: with it the search takes three times as long
	for _, e := range events {
		if e.EventID != "" {
			keys = append(keys, wire.Quote(e.EventID)[1:])
		}
	}
	if len(keys) == 0 {
		return known, nil
	}
	size := 0
	return known, l.backward(func(line []byte, _ uint64, _ int64) bool {
		// Decoded only if it contains a key, which may be elsewhere, as in an event of another vocabulary.
		if slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Contains(line, key) }) {
			if e, err := wire.DecodeEvent(line); err == nil {
				known[eventKey{e.Source, e.EventID}] = e.EventID != ""
			}
		}
		size += len(line)
		return size >= recentBytes
	})
}

// LastSeq returns the number of the newest event, or 0.
func (l *Log) LastSeq() (uint64, error) {
	if err := l.Present(); err != nil {
		return 0, err
	}
	n, err := l.openNewest(os.O_RDONLY)
	n.file.Close()                      // nil too
	if errors.Is(err, fs.ErrNotExist) { // the agent may have been retired meanwhile
		err = cmp.Or(l.Present(), err)
	}
	return n.seq, err
}

// Newest returns the newest events, oldest first, at most n, which is at least 1.
func (l *Log) Newest(n int) ([]wire.Event, error) {
	return l.Tail(func(*wire.Event) bool { n--; return n <= 0 })
}

// Tail returns the newest events, oldest first. It reads backwards until enough returns true for an event, which is the
// oldest that it returns.
func (l *Log) Tail(enough func(*wire.Event) bool) (events []wire.Event, err error) {
	err = l.backward(func(line []byte, first uint64, offset int64) bool {
		e, ok := decode(line, first, offset)
		if ok {
			events = append(events, e)
		}
		return ok && enough(&e)
	})
	slices.Reverse(events)
	return events, err
}
