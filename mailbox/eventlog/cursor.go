package eventlog

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/agentteammail/atm/wire"
)

// Gap says that events are missing before one that was returned: lines that do not
// parse, or segments that are gone.
type Gap struct{ From, To uint64 }

// Cursor reads the events of a log in order, each once, while others append. It is
// not for concurrent use.
type Cursor struct {
	log  *Log
	next uint64   // the number that comes next
	met  Snapshot // where the last event was that was returned, and its checksum

	file  *os.File // the open segment; nil: the one behind seg is opened next
	seg   uint64   // its first number
	good  int64    // where the last line ended that can be decoded: it is never cut off
	twice bool     // what follows good has been read before
	final bool     // the segment will not change: the next one is there

	buf   []byte // whole lines, got by one read
	off   int64  // where they begin
	space []byte // for buf
}

// Follow is a cursor on the events after seq; 0: from the first that is kept.
func (l *Log) Follow(after uint64) *Cursor { return &Cursor{log: l, next: after + 1} }

// Resume is a cursor on the events after a snapshot. False when the log does not
// hold the snapshot's event any more.
func (l *Log) Resume(s Snapshot) (*Cursor, bool) {
	if s.Seq == 0 {
		return nil, false
	}
	c := l.Follow(s.Seq - 1)
	if c.open(s.Segment, s.Offset) == nil && c.returns(s) {
		return c, true
	}
	c.Close()
	if c = l.Follow(s.Seq - 1); c.returns(s) { // the hint was wrong
		return c, true
	}
	c.Close()
	return nil, false
}

// returns reports whether the next event is the one that a snapshot stopped at.
func (c *Cursor) returns(s Snapshot) bool {
	_, gap, err := c.Next()
	return err == nil && gap == nil && c.met.Seq == s.Seq && c.met.CRC == s.CRC
}

// Seq is the number of the event that was returned last.
func (c *Cursor) Seq() uint64 { return c.next - 1 }

// Mark fills in which event was returned last, for a snapshot. Before there was one
// the CRC is 0, and the snapshot worth nothing.
func (c *Cursor) Mark(s *Snapshot) {
	s.Seq, s.CRC, s.Segment, s.Offset = c.Seq(), c.met.CRC, c.met.Segment, c.met.Offset
}

// Close lets go of the log.
func (c *Cursor) Close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}

// Next returns the next event, or io.EOF when there is none yet; call it again
// later. When the gap is not nil, events are missing before this one.
func (c *Cursor) Next() (wire.Event, *Gap, error) {
	for {
		line, err := c.line()
		if err != nil {
			return wire.Event{}, nil, err
		}
		// What was seen before is not decoded, but for the last line of each read:
		// from there it is read again.
		if n := number(line); 0 < n && n < c.next && len(c.buf) > 0 {
			continue
		}
		begin := c.off - int64(len(line)) - 1
		e, ok := decode(line, c.seg, begin)
		if !ok {
			continue // not ours to mend: the gap shows at the next event
		}
		if e.Seq > c.next && !c.twice {
			// Was it cut off and written anew while it was read? Then it is whole now.
			c.rewind()
			c.twice = true
			continue
		}
		c.good = c.off
		if e.Seq < c.next {
			continue
		}
		var gap *Gap
		if e.Seq > c.next {
			gap = &Gap{c.next, e.Seq - 1}
		}
		c.next, c.twice = e.Seq+1, false
		c.met = Snapshot{Seq: e.Seq, CRC: crc32.ChecksumIEEE(line), Segment: c.seg, Offset: begin}
		return e, gap, nil
	}
}

// rewind goes back behind the last line that can be decoded. What follows it may
// yet be cut off and written anew.
func (c *Cursor) rewind() { c.off, c.buf = c.good, nil }

// line returns the next whole line of the log; io.EOF when there is none yet.
func (c *Cursor) line() ([]byte, error) {
	for {
		if c.file == nil {
			if err := c.openNext(); err != nil {
				return nil, err
			}
		}
		line, err := c.segmentLine()
		if err != io.EOF {
			return line, err
		}
		c.rewind()
		if c.final { // read to its end since the next one is there
			c.file.Close()
			c.file = nil
			continue
		}
		segs, err := c.log.segments()
		if err != nil {
			return nil, err
		}
		if len(segs) > 0 && segs[len(segs)-1] > c.seg {
			c.final = true
			continue
		}
		if c.current() {
			return nil, io.EOF
		}
		// Another mailbox lies there now: what it has after the last event.
		c.file.Close()
		c.file, c.seg = nil, 0
	}
}

// segmentLine returns the next whole line of the open segment. All of it was got by
// one read: what was read of a line that had no end yet is read again.
func (c *Cursor) segmentLine() ([]byte, error) {
	for size := 16 << 10; len(c.buf) == 0; size *= 8 {
		if len(c.space) < size {
			c.space = make([]byte, size)
		}
		n, err := c.file.ReadAt(c.space, c.off)
		if err != nil && err != io.EOF {
			return nil, err
		}
		c.buf = c.space[:bytes.LastIndexByte(c.space[:n], '\n')+1]
		if len(c.buf) == 0 && n < len(c.space) {
			return nil, io.EOF
		}
	}
	line, rest, _ := bytes.Cut(c.buf, []byte{'\n'})
	c.buf, c.off = rest, c.off+int64(len(line))+1
	return line, nil
}

// openNext opens, of the segments behind the one that was read, the last that begins
// at or before the next event, or else the first.
func (c *Cursor) openNext() error {
	for {
		segs, err := c.log.segments()
		if err != nil {
			return err
		}
		var seg uint64
		for _, first := range segs {
			if first > c.seg && (seg == 0 || first <= c.next) {
				seg = first
			}
		}
		if seg == 0 {
			return io.EOF
		}
		// One that was archived since it was listed: what is left begins behind it.
		if err := c.open(seg, 0); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func (c *Cursor) open(seg uint64, offset int64) error {
	f, err := c.log.Root.Open(c.log.segment(seg))
	if err != nil {
		return err
	}
	c.file, c.seg, c.good, c.twice, c.final = f, seg, offset, false, false
	c.rewind()
	return nil
}

// current reports whether the open segment is still the one at its path.
func (c *Cursor) current() bool {
	open, err := c.file.Stat()
	if err != nil {
		return false
	}
	now, err := c.log.Root.Lstat(c.log.segment(c.seg))
	return err == nil && os.SameFile(open, now)
}
