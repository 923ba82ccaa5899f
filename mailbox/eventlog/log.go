// Package eventlog keeps the events of one agent, numbered from 1 without gaps. Many processes append to a log and
// follow it.
//
//	<agent>/events/00000000000000000001.ndjson   a segment: one event a line, named by its first number
//	.archive/<agent>/events/                     old segments
//
// A log only grows: what was written stays as it is, and where it is in its segment. An append is one write of whole
// lines, under the lock <agent>.events. If a kill, a full disk or a power cut leaves a line unfinished, the next append
// ends it. Only Append writes lines. A line that is no event is damaged: who reads passes over it to the events after it,
// and Check says where it is.
//
// Only the newest segment is written to, and a full one is synced before the next is made, so a power cut takes the end
// of a log, never its middle, unless that sync fails.
//
// Readers take no lock. They see whole lines only, and each event once and in the order of the lines.
package eventlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

const recentBytes = 1 << 20 // how much of the log is searched for an event_id

// ErrNoEvent is wrapped by Append's error for an event that no log can take.
var ErrNoEvent = errors.New("not an event")

// maxLine is the size of the longest line that is written or read; a longer one is skipped. Tests shorten it.
var maxLine int64 = 8 << 20

// Log is one agent's log. It keeps no file open, and may be used by several goroutines at once.
type Log struct {
	root    Directory    // the team's
	owner   wire.Address // the team and agent of all events
	lock    func(context.Context) (unlock func(), err error)
	present func() error // an error if there is no agent now

	appended func(context.Context, []wire.Event) // is told of each append
}

// Directory is an open directory, by names below it.
type Directory interface {
	Join(name string) string // the path, for people
	Lstat(name string) (fs.FileInfo, error)
	Names(dir string) ([]string, error) // sorted; a missing directory is empty
	MkdirAll(dir string) error
	Move(old, new string) error // fs.ErrExist if the new name is taken
	Open(name string) (*os.File, error)
	OpenFile(name string, flag int) (*os.File, error)
	Write(f *os.File, data []byte) (int, error)
	SyncFile(f *os.File) error
	Sync(dir string) error
}

// New returns the log of a mailbox in an open team: lock locks it for an append, and present is called before each look.
// Both return an error if there is no mailbox. appended is called after each append, when the lock is released.
func New(root Directory, owner wire.Address, lock func(context.Context) (unlock func(), err error), present func() error,
	appended func(context.Context, []wire.Event)) *Log {
	return &Log{root, owner, lock, present, appended}
}

func (l *Log) dir() string     { return string(l.owner.Agent) + "/events" }
func (l *Log) archive() string { return ".archive/" + l.dir() }

// Append appends the events, and sets their Seq, At, Team and Agent in the caller's slice too. One without a Source is the
// agent's own word, as with atm event: it gets wire.SourceCLI. Append leaves out an event whose EventID, of the same Source, is
// in the last MiB of the log, and refuses all if one has no Kind or could not be read back (ErrNoEvent). After an error, those
// that have a Seq are in the log: on a full disk perhaps the first ones of several.
func (l *Log) Append(ctx context.Context, events ...wire.Event) error {
	return l.appendAndTell(ctx, false, events)
}

// AppendSync is Append, and then the events survive a power cut. So do those that were left out: the process that
// appended them may have been killed before its sync.
func (l *Log) AppendSync(ctx context.Context, events ...wire.Event) error {
	return l.appendAndTell(ctx, true, events)
}

func (l *Log) appendAndTell(ctx context.Context, sync bool, events []wire.Event) error {
	err := l.append(ctx, sync, events)
	if err == nil {
		l.appended(ctx, events)
	}
	return err
}

func (l *Log) append(ctx context.Context, sync bool, events []wire.Event) error {
	if len(events) == 0 {
		return nil
	}
	for i := range events {
		events[i].Seq = 0
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	n, err := l.openNewest(os.O_RDWR | os.O_APPEND)
	defer func() { n.file.Close() }() // nil too
	if err == nil {
		err = l.write(&n, events)
	}
	if err == nil && sync {
		err = l.sync(&n)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.root.Join(l.dir()), err)
	}
	return nil
}

// newest is the segment to which events are appended.
type newest struct {
	segs []uint64 // the first numbers of all segments
	file *os.File // nil if there is no segment yet
	size int64
	seq  uint64 // the log's last number
}

// openNewest opens the newest segment. To append to it, it first ends an unfinished line: what then is an event counts.
func (l *Log) openNewest(flag int) (n newest, err error) {
	n.segs, err = l.segmentsIn(l.dir())
	if err != nil || len(n.segs) == 0 {
		return n, err
	}
	first := n.segs[len(n.segs)-1]
	if n.file, err = l.root.OpenFile(l.segment(first), flag); err != nil {
		return n, err
	}
	info, err := n.file.Stat()
	if err != nil {
		return n, err
	}
	n.size = info.Size()
	if end := make([]byte, 1); flag != os.O_RDONLY && n.size > 0 {
		if _, err = n.file.ReadAt(end, n.size-1); err == nil && end[0] != '\n' {
			n.size++
			_, err = l.root.Write(n.file, []byte{'\n'})
		}
		if err != nil {
			return n, err
		}
	}
	n.seq = first - 1
	_, err = readBackward(n.file, func(line []byte, _ int64) bool {
		e, err := wire.DecodeEvent(line)
		n.seq = max(n.seq, e.Seq)
		return err == nil
	})
	return n, err
}

// write appends the events that the log does not have yet, in one write.
func (l *Log) write(n *newest, events []wire.Event) error {
	numbered := slices.Clone(events)
	lines, err := l.encode(numbered, n)
	text := bytes.Join(lines, nil)
	if err != nil || len(text) == 0 {
		return err
	}
	if n.file != nil && n.size >= segmentSize {
		l.root.SyncFile(n.file) // if that fails, a power cut may take the end of this segment, but not these events
		n.file.Close()
		n.file = nil
	}
	if n.file == nil {
		if err := l.create(n); err != nil {
			return err
		}
	}
	written, err := l.root.Write(n.file, text)
	for i, line := range lines {
		if written -= len(line); written < 0 {
			break
		}
		if len(line) > 0 {
			events[i] = numbered[i]
			n.seq++
		}
	}
	return err
}

// create makes the segment of the next event.
func (l *Log) create(n *newest) (err error) {
	if err = l.root.MkdirAll(l.dir()); err == nil {
		n.file, err = l.root.OpenFile(l.segment(n.seq+1), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	}
	return err
}

func (l *Log) sync(n *newest) error {
	if n.file == nil {
		return nil
	}
	err := l.root.SyncFile(n.file)
	if err != nil { // another sync of the same file would seem to succeed, so the next events go into another
		n.file.Close()
		l.create(n)
	}
	if err = cmp.Or(err, l.root.Sync(l.dir())); err != nil {
		err = fmt.Errorf("the events are in the log, but may not survive a power cut: %w", err)
	}
	return err
}

// encode numbers the events that the log does not have yet, and returns their lines; nil: it has that event.
func (l *Log) encode(events []wire.Event, n *newest) (lines [][]byte, err error) {
	known, err := l.known(events, n.segs)
	if err != nil {
		return nil, err
	}
	seq := n.seq
	now := time.Now().UTC()
	lines = make([][]byte, len(events))
	for i := range events {
		e := &events[i]
		if e.Kind == "" {
			return nil, fmt.Errorf("%w: it has no kind", ErrNoEvent)
		}
		e.Source = cmp.Or(e.Source, wire.SourceCLI)
		key := eventKey{e.Source, e.EventID}
		if known[key] {
			continue
		}
		known[key] = e.EventID != ""
		seq++
		e.Seq, e.At, e.Team, e.Agent = seq, now, l.owner.Team, l.owner.Agent
		line := e.Append(nil)
		if int64(len(line)) >= maxLine {
			return nil, fmt.Errorf("%w: it is %d bytes long, the limit is %d", ErrNoEvent, len(line)+1, maxLine)
		}
		back, err := wire.DecodeEvent(line) // readers would skip a line that cannot be read back
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoEvent, err)
		}
		if !bytes.Equal(back.Append(nil), line) || bytes.IndexByte(line, '\n') >= 0 {
			return nil, fmt.Errorf("%w: it reads back differently: %.200s", ErrNoEvent, line)
		}
		lines[i] = append(line, '\n')
	}
	return lines, nil
}

// eventKey tells a repeated event. One source cannot use up the ids of another, most of which anybody can compute.
type eventKey struct{ source, id string }

// known returns those keys of the events that are in the last MiB of some segments, perhaps with others.
func (l *Log) known(events []wire.Event, segs []uint64) (known map[eventKey]bool, err error) {
	known = map[eventKey]bool{}
	var ids [][]byte // quoted as in a line, but for the first quote: with it the search takes three times as long
	for _, e := range events {
		if e.EventID != "" {
			ids = append(ids, wire.Quote(e.EventID)[1:])
		}
	}
	hasID := func(text []byte) bool {
		return slices.ContainsFunc(ids, func(id []byte) bool { return bytes.Contains(text, id) })
	}
	for left := recentBytes; len(ids) > 0 && left > 0 && len(segs) > 0; segs = segs[:len(segs)-1] {
		text, err := l.end(segs[len(segs)-1], left)
		if err != nil {
			return nil, err
		}
		left -= len(text)
		if !hasID(text) {
			continue
		}
		for line := range bytes.Lines(text) {
			if !hasID(line) { // or elsewhere in the line, as in an event of another vocabulary
				continue
			}
			if e, err := wire.DecodeEvent(line); err == nil {
				known[eventKey{e.Source, e.EventID}] = e.EventID != ""
			}
		}
	}
	return known, nil
}

// FirstSeq returns the number of the oldest event that is not archived, or 0.
func (l *Log) FirstSeq() (uint64, error) {
	segs, err := l.segments()
	if err != nil || len(segs) == 0 {
		return 0, err
	}
	return segs[0], nil
}

// LastSeq returns the number of the newest event, or 0.
func (l *Log) LastSeq() (uint64, error) {
	if err := l.present(); err != nil {
		return 0, err
	}
	n, err := l.openNewest(os.O_RDONLY)
	n.file.Close()                      // nil too
	if errors.Is(err, fs.ErrNotExist) { // the agent may have been retired meanwhile
		err = cmp.Or(l.present(), err)
	}
	return n.seq, err
}

// Newest returns the newest events, oldest first, at most n, which is at least 1.
func (l *Log) Newest(n int) ([]wire.Event, error) {
	return l.Tail(func(*wire.Event) bool { n--; return n <= 0 })
}

// Tail returns the newest events, oldest first. It reads backwards until enough returns true for an event, which is the
// oldest that it returns; archived ones are not read.
func (l *Log) Tail(enough func(*wire.Event) bool) (events []wire.Event, err error) {
	err = l.Backward(func(e *wire.Event) bool {
		events = append(events, *e)
		return enough(e)
	})
	slices.Reverse(events)
	return events, err
}

// Backward calls f with the events that are not archived, the newest first, until it returns true.
func (l *Log) Backward(f func(*wire.Event) (enough bool)) error {
	lockfile.Reads("read a log")
	segs, err := l.segments()
	for _, first := range slices.Backward(segs) {
		file, err := l.root.Open(l.segment(first))
		if errors.Is(err, fs.ErrNotExist) {
			continue // archived meanwhile
		}
		if err != nil {
			return err
		}
		enough, err := readBackward(file, func(line []byte, _ int64) bool {
			e, err := wire.DecodeEvent(line)
			return err == nil && f(&e)
		})
		file.Close()
		if enough || err != nil {
			return err
		}
	}
	return err
}
