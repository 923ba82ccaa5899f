package eventlog

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Gap says that events are missing before one that was returned: lines that do not parse, or segments that are gone.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Cursor reads the events of a log in order, each once, while others append. It is not for concurrent use.
type Cursor struct {
	log  *Log
	next uint64 // the number that comes next
	crc  uint32 // of the line of the event that was returned last

	isWhole bool // begins with what is in the archive

	file  *os.File // the open segment; nil: the one behind first is opened next
	first uint64   // its first number
	final bool     // it will not change: the next one is there

	// What follows the last event may yet be cut off and written anew: it is read again, all of it by one
	// read, until it is an event.
	after   int64  // where the last event ends
	seen    int64  // how far it was looked at
	lines   []byte // whole lines that were read from there on
	isTwice bool   // what follows was read again because of a gap
	buf     []byte
}

// Follow is a cursor on the events after seq; 0: from the first that is kept.
func (l *Log) Follow(after uint64) *Cursor { return &Cursor{log: l, next: after + 1} }

// FollowAll is a cursor on all events, those in the archive first.
func (l *Log) FollowAll() *Cursor { return &Cursor{log: l, next: 1, isWhole: true} }

// Resume is a cursor on the events after a snapshot. False when the log does not hold the snapshot's event any more.
func (l *Log) Resume(s Snapshot) (*Cursor, bool) {
	if s.Seq == 0 {
		return nil, false
	}
	c := l.Follow(s.Seq - 1)
	found, err := false, c.openNext()
	if err == nil {
		found, err = readBackward(c.file, func(line []byte, offset int64) bool {
			c.after = offset + int64(len(line))
			return number(line) == s.Seq && crc32.ChecksumIEEE(line[:len(line)-1]) == s.CRC
		})
	}
	if !found || err != nil {
		c.Close()
		return nil, false
	}
	c.next, c.crc, c.seen = s.Seq+1, s.CRC, c.after
	return c, true
}

// Seq is the number of the event that was returned last.
func (c *Cursor) Seq() uint64 { return c.next - 1 }

// Mark fills in which event was returned last, for a snapshot. Before there was one the CRC is 0, and the
// snapshot worth nothing.
func (c *Cursor) Mark(s *Snapshot) { s.Seq, s.CRC = c.Seq(), c.crc }

// Close lets go of the log.
func (c *Cursor) Close() error {
	file := c.file
	c.file = nil
	if file == nil {
		return nil
	}
	return file.Close()
}

// Next returns the next event, or io.EOF when there is none yet; call it again later. When the gap is not
// nil, events are missing before this one.
func (c *Cursor) Next() (wire.Event, *Gap, error) {
	for {
		if len(c.lines) == 0 {
			if err := c.read(); err != nil {
				return wire.Event{}, nil, err
			}
		}
		line, rest, _ := bytes.Cut(c.lines, []byte{'\n'})
		begin := c.seen
		c.lines, c.seen = rest, begin+int64(len(line))+1
		// What is passed over is not decoded, but for the last line of each read: from there it is read on.
		if n := number(line); 0 < n && n < c.next && len(rest) > 0 {
			continue
		}
		e, ok := decode(line, c.first, begin)
		if !ok {
			continue // not ours to mend: the gap shows at the next event
		}
		if e.Seq > c.next && !c.isTwice {
			// Was it cut off and written anew while it was read? Then it is whole now.
			c.lines, c.seen, c.isTwice = nil, c.after, true
			continue
		}
		c.after = c.seen
		if e.Seq < c.next {
			continue
		}
		var gap *Gap
		if e.Seq > c.next {
			gap = &Gap{c.next, e.Seq - 1}
		}
		c.next, c.crc, c.isTwice = e.Seq+1, crc32.ChecksumIEEE(line), false
		return e, gap, nil
	}
}

// read reads lines that were not looked at; io.EOF when there is none yet.
func (c *Cursor) read() error {
	for {
		if c.file == nil {
			if err := c.openNext(); err != nil {
				return err
			}
		}
		if err := c.readLines(); err != nil || len(c.lines) > 0 {
			return err
		}
		if c.final { // read to its end since the next one is there
			c.Close()
			continue
		}
		segs, err := c.segments()
		if err != nil {
			return err
		}
		if c.final = len(segs) > 0 && segs[len(segs)-1] > c.first; !c.final {
			return io.EOF
		}
	}
}

// readLines reads lines of the open segment that were not looked at, if there are any.
func (c *Cursor) readLines() error {
	for size := 16 << 10; ; size *= 8 {
		if len(c.buf) < size {
			c.buf = make([]byte, size)
		}
		n, err := c.file.ReadAt(c.buf[:size], c.after)
		if err != nil && err != io.EOF {
			return err
		}
		c.lines = c.buf[:bytes.LastIndexByte(c.buf[:n], '\n')+1]
		if c.after+int64(len(c.lines)) > c.seen {
			c.seen = c.after
			return nil
		}
		if n < size {
			c.lines, c.seen = nil, c.after
			return nil
		}
	}
}

// openNext opens, of the segments behind the one that was read, the last that begins at or before the next
// event, or else the first; io.EOF when there is none.
func (c *Cursor) openNext() error {
	for {
		segs, err := c.segments()
		if err != nil {
			return err
		}
		var next uint64
		for _, first := range segs {
			if first > c.first && (next == 0 || first <= c.next) {
				next = first
			}
		}
		if next == 0 {
			return io.EOF
		}
		f, err := c.log.Root.Open(c.log.segment(next))
		if errors.Is(err, fs.ErrNotExist) && c.isWhole {
			f, err = c.log.Root.Open(path.Join(c.log.archive(), segmentName(next)))
		} else if errors.Is(err, fs.ErrNotExist) {
			continue // archived since it was listed: what is left begins behind it
		}
		if err == nil {
			c.file, c.first, c.final, c.after, c.seen, c.lines, c.isTwice = f, next, false, 0, 0, nil, false
		}
		return err
	}
}

func (c *Cursor) segments() ([]uint64, error) {
	segs, err := c.log.segments()
	if err != nil || !c.isWhole {
		return segs, err
	}
	old, err := c.log.segmentsIn(c.log.archive())
	segs = append(segs, old...)
	slices.Sort(segs)
	return slices.Compact(segs), err
}
