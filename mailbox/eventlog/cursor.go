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

// Gap is a range of missing events: their lines do not parse, or their segments are gone.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Cursor reads the events of a log in order, each once, while others append. It is not for concurrent use.
type Cursor struct {
	log         *Log
	next        uint64 // the number of the next event
	crc         uint32 // of the line of the last event
	withArchive bool   // begin with the archived segments

	file    *os.File // the open segment; nil: open the one after first
	first   uint64   // the first number of the segment
	isFinal bool     // the segment does not change any more, since a newer one exists

	// The bytes after the last event may be cut off and written anew. So they are all read again, in one read, until
	// there is an event among them.
	eventEnd int64  // offset of the end of the last event
	examined int64  // offset up to which lines were examined
	lines    []byte // whole lines at that offset
	isReread bool   // these lines were read again because of a gap
	buf      []byte
}

// Follow returns a cursor on the events after seq; 0: from the first that is not archived.
func (l *Log) Follow(after uint64) *Cursor { return &Cursor{log: l, next: after + 1} }

// FollowAll returns a cursor on all events, beginning with the archived ones.
func (l *Log) FollowAll() *Cursor { return &Cursor{log: l, next: 1, withArchive: true} }

// Resume returns a cursor on the events after a snapshot, or false if the log no longer has the snapshot's event.
func (l *Log) Resume(s Snapshot) (*Cursor, bool) {
	if s.Seq == 0 {
		return nil, false
	}
	c := l.Follow(s.Seq - 1)
	found, err := false, c.openNext()
	if err == nil {
		found, err = readBackward(c.file, func(line []byte, offset int64) bool {
			c.eventEnd = offset + int64(len(line))
			return number(line) == s.Seq && crc32.ChecksumIEEE(line[:len(line)-1]) == s.CRC
		})
	}
	if !found || err != nil {
		c.Close()
		return nil, false
	}
	c.next, c.crc, c.examined = s.Seq+1, s.CRC, c.eventEnd
	return c, true
}

// Seq returns the number of the last event.
func (c *Cursor) Seq() uint64 { return c.next - 1 }

// Mark sets the snapshot's Seq and CRC to those of the last event. Before the first event the CRC is 0, and Resume
// refuses the snapshot.
func (c *Cursor) Mark(s *Snapshot) { s.Seq, s.CRC = c.Seq(), c.crc }

// Close closes the open segment. c may be nil.
func (c *Cursor) Close() {
	if c != nil {
		c.file.Close() // nil too
		c.file = nil
	}
}

// Next returns the next event, or io.EOF if there is none yet; it may then be called again. A gap that is not nil says
// which events are missing before this one.
func (c *Cursor) Next() (wire.Event, *Gap, error) {
	for {
		if len(c.lines) == 0 {
			if err := c.read(); err != nil {
				return wire.Event{}, nil, err
			}
		}
		line, rest, _ := bytes.Cut(c.lines, []byte{'\n'})
		begin := c.examined
		c.lines, c.examined = rest, begin+int64(len(line))+1
		// Earlier events are skipped without decoding, except the last line of each read, which sets eventEnd.
		if n := number(line); 0 < n && n < c.next && len(rest) > 0 {
			continue
		}
		e, ok := decode(line, c.first, begin)
		if !ok {
			continue // the next event shows the gap
		}
		if e.Seq > c.next && !c.isReread {
			// A torn line may have been replaced while it was read, so read it once more.
			c.lines, c.examined, c.isReread = nil, c.eventEnd, true
			continue
		}
		c.eventEnd = c.examined
		if e.Seq < c.next {
			continue
		}
		var gap *Gap
		if e.Seq > c.next {
			gap = &Gap{c.next, e.Seq - 1}
		}
		c.next, c.crc, c.isReread = e.Seq+1, crc32.ChecksumIEEE(line), false
		return e, gap, nil
	}
}

// read reads lines that were not examined yet, from this segment or the next, or returns io.EOF.
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
		if c.isFinal { // and it was read to its end after that was known
			c.Close()
			continue
		}
		segs, err := c.segments()
		if err != nil {
			return err
		}
		if c.isFinal = len(segs) > 0 && segs[len(segs)-1] > c.first; !c.isFinal {
			return io.EOF
		}
	}
}

// readLines reads the lines after the last event if some of them were not examined yet.
func (c *Cursor) readLines() error {
	for size := 16 << 10; ; size *= 8 {
		if len(c.buf) < size {
			c.buf = make([]byte, size)
		}
		n, err := c.file.ReadAt(c.buf[:size], c.eventEnd)
		if err != nil && err != io.EOF {
			return err
		}
		c.lines = c.buf[:bytes.LastIndexByte(c.buf[:n], '\n')+1]
		if c.eventEnd+int64(len(c.lines)) > c.examined {
			c.examined = c.eventEnd
			return nil
		}
		if n < size {
			c.lines, c.examined = nil, c.eventEnd
			return nil
		}
	}
}

// openNext opens a later segment, the one that should have the next event or else the first, or returns io.EOF.
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
		if errors.Is(err, fs.ErrNotExist) && c.withArchive {
			f, err = c.log.Root.Open(path.Join(c.log.archive(), segmentName(next)))
		} else if errors.Is(err, fs.ErrNotExist) {
			continue // archived since it was listed
		}
		if err == nil {
			c.file, c.first, c.isFinal, c.eventEnd, c.examined, c.lines, c.isReread = f, next, false, 0, 0, nil, false
		}
		return err
	}
}

func (c *Cursor) segments() ([]uint64, error) {
	segs, err := c.log.segments()
	if err != nil || !c.withArchive || len(segs) == 0 {
		return segs, err
	}
	// What the archive has beyond that is from before the agent was retired and created again.
	old, err := c.log.segmentsIn(c.log.archive())
	old = slices.DeleteFunc(old, func(first uint64) bool { return first >= segs[0] })
	return append(old, segs...), err
}
