package mailbox

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

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
	read int    // how much to read next, at least

	met []byte // the line of the last event that was returned

	doubts bool  // what is read next has been read before: a line did not parse
	sure   int64 // up to here it has been read twice
	at     int64 // where it begins

	sought bool   // off was found by seek, and no event since
	last   uint64 // number of the last line that parses, in this segment
	run    bool   // it counts on from the one before it
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

// Resume is a cursor that returns first the event that a snapshot stopped at,
// which is where the snapshot says; false when it is not.
func (b *Box) Resume(s Snapshot) (*Cursor, bool) {
	dir, err := b.eventsDir()
	if err != nil || dir == nil || s.Segment == 0 || s.Segment > s.Seq || s.Offset < 0 {
		return nil, false
	}
	defer dir.Close()
	f, err := dir.Open(segmentName(s.Segment))
	if err != nil {
		return nil, false
	}
	c := &Cursor{box: b, next: s.Seq, f: f, seg: s.Segment, off: s.Offset, good: s.Offset}
	// Only a line that was not changed has the checksum, and so begins here.
	if line, err := c.line(); err == nil && lineCRC(line) == s.CRC {
		if e, ok := logged(line, s.Segment, s.Offset); ok && e.Seq == s.Seq {
			c.off, c.rest = s.Offset, nil
			return c, true
		}
	}
	c.Close()
	return nil, false
}

// Mark fills in which event the cursor returned last, for a snapshot.
func (c *Cursor) Mark(s *Snapshot) {
	s.Seq, s.CRC = c.Seq(), c.CRC()
	s.Segment, s.Offset = c.seg, c.at
}

// CRC is the checksum of the line of the last event that was returned, as a
// Snapshot has it; 0 before there was one.
func (c *Cursor) CRC() uint32 {
	if c.met == nil {
		return 0
	}
	return lineCRC(c.met)
}

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
			if c.misled(0) {
				continue
			}
			moved, err := c.advance()
			if err != nil {
				return e, nil, err
			}
			if !moved {
				// Lines that do not parse, at the end, may yet be cut off.
				if c.rest = nil; c.off > c.good {
					c.off, c.sure = c.good, 0
				}
				return e, nil, io.EOF
			}
			continue
		}
		if err != nil {
			return e, nil, err
		}
		end := c.off - int64(len(c.rest))
		if c.doubts {
			c.doubts, c.sure = false, c.off
		}
		e, ok := logged(line, c.seg, end-int64(len(line))-1)
		if !ok {
			// Not ours to mend: the gap shows at the next one. But it was perhaps cut off
			// and written anew while it was read, and with it what came behind.
			if end > c.sure {
				c.off, c.rest, c.doubts = end-int64(len(line))-1, nil, true
			}
			continue
		}
		c.good = end
		if e.Seq < c.next {
			c.last, c.run = e.Seq, e.Seq == c.last+1
			continue
		}
		if c.misled(e.Seq) {
			continue
		}
		if e.Seq > c.next {
			gap = &Gap{c.next, e.Seq - 1}
		}
		c.sought = false
		c.next = e.Seq + 1
		c.met, c.at = line, end-int64(len(line))-1
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
	for {
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
		// Archived since it was listed: what is left begins behind it.
		if err := c.openAt(dir, at); !atomicfile.Absent(err) {
			return err
		}
	}
}

// openAt opens a segment; fs.ErrNotExist says that it is in the archive.
func (c *Cursor) openAt(dir *atomicfile.Dir, seg uint64) error {
	f, err := dir.Open(segmentName(seg))
	if err != nil {
		return err
	}
	c.f, c.seg, c.off, c.rest, c.good, c.last, c.doubts, c.sure = f, seg, 0, nil, 0, 0, false, 0
	return c.seek()
}

// misled reports whether seek was led past the next event by a line that is not
// the log's own, and then begins the segment anew. It was not if the event just
// before the next one was met, and now the next, or (met is 0) the end, which is
// believed after two events in a row.
func (c *Cursor) misled(met uint64) bool {
	if !c.sought || c.last+1 == c.next && (met == c.next || met == 0 && c.run) {
		return false
	}
	c.off, c.rest, c.good, c.last, c.sought = 0, nil, 0, 0, false
	return true
}

// seek moves from the beginning of a segment to near the next event, by
// bisection: decoding a full segment line by line takes a second.
func (c *Cursor) seek() error {
	info, err := c.f.Stat()
	if err != nil {
		return err
	}
	// The line wanted begins at c.off or behind; every event whose line begins
	// behind end comes after it.
	for end := info.Size(); end-c.off > 4<<10; {
		mid := c.off + (end-c.off)/2
		at, seq, err := eventBehind(c.f, mid, end)
		if err != nil {
			return err
		}
		if seq > 0 && seq < c.next {
			c.off = at
		} else {
			end = mid
		}
	}
	c.good, c.sought = c.off, c.off > 0
	return nil
}

// eventBehind returns the number of the first event whose line begins between
// two offsets, and where that is; 0 when there is none. It is not decoded.
func eventBehind(f *os.File, from, end int64) (at int64, seq uint64, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, end-from), 4<<10)
	for at = from; ; {
		part, err := r.ReadSlice('\n')
		at += int64(len(part))
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		head, _ := r.Peek(len(`{"seq":18446744073709551615,`))
		if rest, ok := bytes.CutPrefix(head, []byte(`{"seq":`)); ok {
			if digits, _, ok := bytes.Cut(rest, []byte{','}); ok {
				if seq, err := strconv.ParseUint(string(digits), 10, 64); err == nil {
					return at, seq, nil
				}
			}
		}
	}
}

func (b *Box) eventsDir() (*atomicfile.Dir, error) {
	if err := b.seen(); err != nil {
		return nil, err
	}
	dir, err := b.store.dir.Walk(string(b.agent), "events")
	if atomicfile.Absent(err) {
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
		// Little first, for who looks for one event; more for who reads on.
		size := max(8<<10, c.read, 2*len(c.rest))
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
		if n == size {
			c.read = min(2*size, 128<<10)
		}
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
	if err := c.openAt(dir, segs[i]); !atomicfile.Absent(err) {
		return true, err
	}
	return true, nil
}
