package mailbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
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
	Sync bool // survive a power cut
}

// Append appends events to the agent's log, gapless and in order, and fills in
// seq, at, team and agent. An event whose EventID is among the last MiB of the
// log is left out. Many processes may append at once. A torn last line, which
// a kill or a power cut leaves, is cut off first and kept in bad.
func (b *Box) Append(ctx context.Context, opt AppendOptions, events ...wire.Event) error {
	if len(events) == 0 {
		return nil
	}
	unlock, err := b.lock(ctx, "events", lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	dir, err := r.dir("events", true)
	if err != nil {
		return err
	}
	segs, err := segments(dir)
	if err != nil {
		return err
	}
	seq := uint64(0)
	var f *os.File
	var size int64
	if len(segs) > 0 {
		last := segs[len(segs)-1]
		if f, err = dir.Append(segmentName(last)); err != nil {
			return err
		}
		if seq, size, err = r.repair(f, last); err != nil {
			f.Close()
			return err
		}
	}
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	now := time.Now().UTC()
	var buf, recent []byte
	for _, e := range events {
		if e.EventID != "" {
			if recent == nil {
				if recent, err = recentLines(dir, segs, f, size); err != nil {
					return err
				}
			}
			if hasEventID(recent, e.EventID) || hasEventID(buf, e.EventID) {
				continue
			}
		}
		seq++
		e.Seq, e.At, e.Team, e.Agent = seq, now, b.store.Team, b.agent
		begin := len(buf)
		buf = append(e.Append(buf), '\n')
		// What cannot be read back would be cut off by the next who appends.
		if _, err := wire.DecodeEvent(buf[begin:]); err != nil {
			return fmt.Errorf("append to the events of %s: no event: %w", b.agent, err)
		}
		if n := len(buf) - begin; n > maxLine {
			return fmt.Errorf("append to the events of %s: an event takes %d bytes, the most is %d", b.agent, n, maxLine)
		}
	}
	if len(buf) == 0 {
		return nil
	}
	if f == nil || size >= maxSegment {
		if f != nil {
			f.Close()
		}
		first := seq - uint64(bytes.Count(buf, []byte{'\n'})) + 1
		if f, err = dir.Append(segmentName(first)); err != nil {
			return err
		}
		size = 0
	}
	if _, err := dir.Write(f, buf); err != nil {
		// What was written in part is cut back now, or by the next who appends.
		f.Truncate(size)
		return fmt.Errorf("append to the events of %s: %w", b.agent, err)
	}
	if opt.Sync {
		if err := dir.SyncFile(f); err != nil {
			return err
		}
		return dir.Sync()
	}
	return nil
}

func segmentName(first uint64) string { return fmt.Sprintf("%020d.ndjson", first) }

// segments lists the first sequence numbers of the log's segments, ascending.
func segments(dir *atomicfile.Dir) ([]uint64, error) {
	var out []uint64
	err := dir.Names(func(names []string) bool {
		for _, n := range names {
			if s, ok := strings.CutSuffix(n, ".ndjson"); ok && len(s) == 20 {
				if v, err := strconv.ParseUint(s, 10, 62); err == nil && v > 0 {
					out = append(out, v)
				}
			}
		}
		return true
	})
	slices.Sort(out)
	return out, err
}

// repair returns the last sequence number of a segment and its length, after
// cutting off what follows the last line that parses. What is cut goes to bad.
func (r *room) repair(f *os.File, first uint64) (seq uint64, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size()
	end := size
	for window := int64(64 << 10); ; window *= 8 {
		from := max(0, size-window)
		buf := make([]byte, size-from)
		if _, err := f.ReadAt(buf, from); err != nil && err != io.EOF {
			return 0, 0, err
		}
		if from > 0 { // the first line is perhaps not whole
			i := bytes.IndexByte(buf, '\n') + 1
			from += int64(i)
			buf = buf[i:]
		}
		if last, stop := lastEvent(buf); stop > 0 {
			seq, end = max(last, first-1), from+int64(stop)
			break
		}
		if size <= window {
			seq, end = first-1, 0
			break
		}
	}
	if end == size {
		return seq, size, nil
	}
	torn := make([]byte, size-end)
	if _, err := f.ReadAt(torn, end); err != nil {
		return 0, 0, err
	}
	bad, err := r.dir("inbox/bad", true)
	if err != nil {
		return 0, 0, fmt.Errorf("keep a torn line of the events: %w", err)
	}
	name := "events." + segmentName(first) + "." + string(wire.NewID())
	if err := bad.Replace(name, torn, false); err != nil {
		return 0, 0, fmt.Errorf("keep a torn line of the events: %w", err)
	}
	bad.Replace(name+".reason", []byte("a line of the event log that was not written whole\n"), false)
	if err := f.Truncate(end); err != nil {
		return 0, 0, fmt.Errorf("cut a torn line off the events: %w", err)
	}
	return seq, end, nil
}

// logged decodes a line of the log.
func logged(line []byte) (wire.Event, bool) {
	e, err := wire.DecodeEvent(line)
	return e, err == nil && e.Seq < 1<<62 // room to count on
}

// lastEvent returns the largest number among whole lines of the log and where
// the last one that parses ends; 0 when none does. The largest is the last
// one's, unless somebody else wrote a line into the log: then counting on from
// that would make followers, who are further, pass over what comes.
func lastEvent(lines []byte) (seq uint64, end int) {
	for stop := len(lines); stop > 0 && end == 0; {
		nl := bytes.LastIndexByte(lines[:stop], '\n')
		if nl < 0 {
			return 0, 0
		}
		start := bytes.LastIndexByte(lines[:nl], '\n') + 1
		if e, ok := logged(lines[start:nl]); ok {
			seq, end = e.Seq, nl+1
		}
		stop = nl
	}
	if highest(lines[:end]) > seq {
		for rest := lines[:end]; len(rest) > 0; {
			line, after, _ := bytes.Cut(rest, []byte{'\n'})
			if e, ok := logged(line); ok {
				seq = max(seq, e.Seq)
			}
			rest = after
		}
	}
	return seq, end
}

// highest is the largest number that lines begin with, as ours do: a hint.
func highest(lines []byte) (seq uint64) {
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		if digits, ok := bytes.CutPrefix(line, []byte(`{"seq":`)); ok {
			n := uint64(0)
			for _, c := range digits {
				if c < '0' || c > '9' || n > 1<<58 {
					break
				}
				n = n*10 + uint64(c-'0')
			}
			seq = max(seq, n)
		}
	}
	return seq
}

// recentLines is the last MiB of the log: of the last segment, and of the one
// before it while that one is young.
func recentLines(dir *atomicfile.Dir, segs []uint64, f *os.File, size int64) ([]byte, error) {
	recent := []byte{}
	if f == nil {
		return recent, nil
	}
	if n := len(segs); n > 1 && size < dedupeWindow {
		last, err := dir.Open(segmentName(segs[n-2]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			defer last.Close()
			info, err := last.Stat()
			if err != nil {
				return nil, err
			}
			if recent, err = tail(last, info.Size(), dedupeWindow-size); err != nil {
				return nil, err
			}
			recent = append(recent, '\n')
		}
	}
	own, err := tail(f, size, dedupeWindow)
	return append(recent, own...), err
}

// tail reads the last n bytes of a file of this size.
func tail(f *os.File, size, n int64) ([]byte, error) {
	from := max(0, size-n)
	buf := make([]byte, size-from)
	m, err := f.ReadAt(buf, from)
	if err == io.EOF {
		err = nil
	}
	return buf[:m], err
}

func hasEventID(lines []byte, id string) bool {
	key := append([]byte(`"event_id":`), wire.AppendString(nil, id)...)
	for rest := lines; ; {
		i := bytes.Index(rest, key)
		if i < 0 {
			return false
		}
		start := bytes.LastIndexByte(rest[:i], '\n') + 1
		stop := bytes.IndexByte(rest[i:], '\n')
		if stop < 0 {
			stop = len(rest) - i
		}
		if e, err := wire.DecodeEvent(rest[start : i+stop]); err == nil && e.EventID == id {
			return true
		}
		rest = rest[i+stop:]
	}
}

// Gap says that events are missing between two that were returned: lines that
// do not parse, or segments that are gone.
type Gap struct{ From, To uint64 }

// Cursor reads an agent's events in order, each once, across segments, while
// others append. It sees whole lines only. Not for concurrent use.
type Cursor struct {
	box  *Box
	next uint64 // the sequence number that comes next
	f    *os.File
	seg  uint64
	off  int64  // where the next read begins: a line's beginning
	rest []byte // whole lines that lie before off
	good int64  // where the last line ended that parses
}

// Events is a cursor on the events after seq (0: from the first that is kept).
func (b *Box) Events(after uint64) *Cursor { return &Cursor{box: b, next: after + 1} }

// Close lets go of the log.
func (c *Cursor) Close() error {
	if c.f == nil {
		return nil
	}
	err := c.f.Close()
	c.f = nil
	return err
}

// Seq is the sequence number of the last event that was returned.
func (c *Cursor) Seq() uint64 { return c.next - 1 }

// Next returns the next event, or io.EOF when there is none yet; call it again
// later. When gap is not nil, events are missing before e.
func (c *Cursor) Next() (e wire.Event, gap *Gap, err error) {
	for {
		if c.f == nil {
			if err := c.openSegment(); err != nil {
				return e, nil, err
			}
		}
		line, err := c.line()
		if err == io.EOF {
			moved, err := c.advance()
			if err != nil {
				return e, nil, err
			}
			if !moved {
				// Lines that do not parse, at the end, may yet be cut off.
				c.off, c.rest = min(c.off, c.good), nil
				return e, nil, io.EOF
			}
			continue
		}
		if err != nil {
			return e, nil, err
		}
		e, ok := logged(line)
		if !ok {
			continue // not ours to mend: the gap shows at the next one
		}
		c.good = c.off - int64(len(c.rest))
		if e.Seq < c.next {
			continue
		}
		if e.Seq > c.next {
			gap = &Gap{c.next, e.Seq - 1}
		}
		c.next = e.Seq + 1
		return e, gap, nil
	}
}

// openSegment opens the segment that holds the next event: the last that
// begins at or before it, or the first of all.
func (c *Cursor) openSegment() error {
	dir, err := c.box.eventsDir()
	if err != nil {
		return err
	}
	if dir == nil {
		return io.EOF
	}
	defer dir.Close()
	segs, err := segments(dir)
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		return io.EOF
	}
	at := segs[0]
	for _, s := range segs {
		if s <= c.next {
			at = s
		}
	}
	return c.openAt(dir, at)
}

func (c *Cursor) openAt(dir *atomicfile.Dir, seg uint64) error {
	f, err := dir.Open(segmentName(seg))
	if errors.Is(err, fs.ErrNotExist) {
		return io.EOF
	}
	if err != nil {
		return err
	}
	c.f, c.seg, c.off, c.rest, c.good = f, seg, 0, nil, 0
	return nil
}

func (b *Box) eventsDir() (*atomicfile.Dir, error) {
	if err := b.seen(); err != nil {
		return nil, err
	}
	dir, err := b.store.dir.Walk(string(b.agent), "events")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// line returns the next whole line of the open segment, io.EOF when there is
// none yet.
func (c *Cursor) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(c.rest, '\n'); i >= 0 {
			line := c.rest[:i]
			c.rest = c.rest[i+1:]
			return line, nil
		}
		// Only whole lines are kept between calls: a torn one may be cut off
		// and written anew.
		size := max(64<<10, 2*len(c.rest))
		if size > maxLine {
			// None of ours is so long: passed over, once it has an end.
			if ok, err := c.pass(); !ok {
				return nil, err
			}
			continue
		}
		buf := make([]byte, size)
		n, err := c.f.ReadAt(buf, c.off)
		buf = buf[:n]
		last := bytes.LastIndexByte(buf, '\n')
		if last < 0 {
			if n < size {
				c.rest = nil
				if err == nil || err == io.EOF {
					return nil, io.EOF
				}
				return nil, err
			}
			c.rest = buf // too short for one line: ask for more
			continue
		}
		c.rest = buf[:last+1]
		c.off += int64(last) + 1
	}
}

// pass goes behind the line that begins at off, however long; false when it
// does not end yet.
func (c *Cursor) pass() (bool, error) {
	buf := make([]byte, 1<<20)
	for at := c.off; ; {
		n, err := c.f.ReadAt(buf, at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			c.off, c.rest = at+int64(i)+1, nil
			return true, nil
		}
		if err != nil {
			c.rest = nil
			return false, err
		}
		at += int64(n)
	}
}

// advance goes to the next segment if there is one. What the open one got
// meanwhile is read first, since it is looked for after the next was seen.
func (c *Cursor) advance() (bool, error) {
	dir, err := c.box.eventsDir()
	if err != nil || dir == nil {
		return false, err
	}
	defer dir.Close()
	segs, err := segments(dir)
	if err != nil {
		return false, err
	}
	i, _ := slices.BinarySearch(segs, c.seg+1)
	if i == len(segs) {
		return false, nil
	}
	// A segment is never appended to once the next exists, but its last lines
	// may have come between our last look and this one.
	line, err := c.line()
	if err == nil {
		c.rest = append(append(append([]byte{}, line...), '\n'), c.rest...)
		return true, nil
	}
	if err != io.EOF {
		return false, err
	}
	c.f.Close()
	c.f = nil
	return true, c.openAt(dir, segs[i])
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
		if errors.Is(err, fs.ErrNotExist) {
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
		for window := int64(16 << 10); ; window *= 8 {
			from := max(0, size-window)
			buf, err := tail(f, size, window)
			if err != nil {
				f.Close()
				return out, err
			}
			part = decodeLines(buf, from > 0)
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

// decodeLines decodes whole lines; with partial the first is passed over.
func decodeLines(b []byte, partial bool) []wire.Event {
	var out []wire.Event
	if partial {
		i := bytes.IndexByte(b, '\n')
		b = b[i+1:]
	}
	for {
		line, rest, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			return out
		}
		if e, ok := logged(line); ok {
			out = append(out, e)
		}
		b = rest
	}
}
