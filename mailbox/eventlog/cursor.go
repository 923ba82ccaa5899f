package eventlog

import (
	"bufio"
	"bytes"
	"cmp"
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

// Cursor reads the events of a log in order, each once, while others append. If another log takes the place of this
// one, it goes on after its last event, which a restored log has, or else at the beginning. It is not for concurrent
// use.
type Cursor struct {
	log  *Log
	next uint64 // the number of the next event
	crc  uint32 // of the line of the last event

	file     *os.File // the open segment; nil: open the one after first
	first    uint64   // the first number of the segment
	isFinal  bool     // the segment does not change any more, since a newer one exists
	end      int64    // offset of the end of the last event; what follows may be cut off and written anew
	offset   int64    // of the next line
	noEvent  int64    // offset up to which no event follows end, if that was much to read
	lines    bufio.Reader
	isReread bool // these lines are read a second time
}

// Follow returns a cursor on the events after seq, archived ones too.
func (l *Log) Follow(after uint64) *Cursor {
	c := &Cursor{log: l, next: after + 1}
	c.openNext() // so that it notices if another log takes its place; after an error Next tries again
	return c
}

// Resume returns a cursor on the events after a snapshot, or false if the log no longer has the snapshot's event.
func (l *Log) Resume(s Snapshot) (*Cursor, bool) {
	if s.Seq == 0 {
		return nil, false
	}
	c := l.Follow(s.Seq - 1)
	if c.file != nil {
		found, err := readBackward(c.file, func(line []byte, offset int64) bool {
			c.end = offset + int64(len(line))
			return number(line) == s.Seq && crc32.ChecksumIEEE(line[:len(line)-1]) == s.CRC
		})
		if found && err == nil {
			c.next, c.crc = s.Seq+1, s.CRC
			c.rewind()
			return c, true
		}
	}
	c.Close()
	return nil, false
}

// Seq returns the number of the last event.
func (c *Cursor) Seq() uint64 { return c.next - 1 }

// Mark sets the snapshot's Seq and CRC to those of the last event. If the cursor has not met it, the CRC is 0, and
// Resume refuses the snapshot.
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
		line, begin, err := c.readLine()
		if err != nil {
			return wire.Event{}, nil, err
		}
		n := number(line)
		if n > 0 && n == c.Seq() && c.crc == 0 { // the event that Follow began after, which Mark needs
			c.crc = crc32.ChecksumIEEE(line)
		}
		// Earlier events are skipped without decoding, except the last line of each read, which sets end.
		if 0 < n && n < c.next && c.lines.Buffered() > 0 {
			continue
		}
		e, ok := decode(line, c.first, begin)
		if !ok {
			continue // the next event shows the gap
		}
		if e.Seq > c.next && c.readAgain() {
			continue
		}
		c.end = c.offset
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

// readLine returns the next whole line, without its line feed, and its offset, or io.EOF. A line that is too long is "".
func (c *Cursor) readLine() (line []byte, offset int64, err error) {
	for {
		if c.file == nil {
			if err := c.openNext(); err != nil {
				return nil, 0, err
			}
		}
		if !c.isAtEnd() {
			line, n, err := wire.ReadLine(&c.lines, maxLine)
			offset := c.offset
			if c.offset += n; err == nil {
				return bytes.TrimSuffix(line, []byte{'\n'}), offset, nil
			}
			if err != io.EOF {
				c.rewind()
				return nil, 0, err
			}
			if c.offset > c.end && c.readAgain() {
				continue
			}
			c.noEvent = c.offset
		}
		c.isReread = false
		c.rewind()
		if c.isFinal { // and it was read to its end after that was known
			c.Close()
		} else if err := c.lookForNewer(); err != nil {
			return nil, 0, err
		}
	}
}

// isAtEnd reports whether the file is as it was when much was read in it without an event: a line that is too long.
func (c *Cursor) isAtEnd() bool {
	if c.offset > c.end || c.noEvent-c.end < maxLine {
		return false
	}
	info, err := c.file.Stat()
	return err == nil && info.Size() == c.noEvent
}

// readAgain has the lines after the last event read once more: one of them may have been cut off, and another written
// in its place, while they were read. It returns false if that was done already.
func (c *Cursor) readAgain() bool {
	if c.isReread {
		return false
	}
	c.isReread = true
	c.rewind()
	return true
}

func (c *Cursor) rewind() {
	c.offset = c.end
	c.lines.Reset(io.NewSectionReader(c.file, c.end, 1<<62))
}

// lookForNewer looks for a newer segment, or another log, or returns io.EOF.
func (c *Cursor) lookForNewer() error {
	segs, err := c.log.segments()
	if err != nil || len(segs) == 0 {
		return cmp.Or(err, io.EOF)
	}
	newest := segs[len(segs)-1]
	now, missing := c.log.Root.Lstat(c.log.segment(c.first))
	mine, err := c.file.Stat()
	switch {
	case err != nil:
		return err
	case missing != nil && newest < c.first, missing == nil && !os.SameFile(mine, now):
		c.restart()
	case newest > c.first:
		c.isFinal = true
	case mine.Size() > c.noEvent: // it has grown since that was read: a buffer keeps the end that it has met
	default:
		return io.EOF
	}
	return nil
}

// restart begins again in the log that is in place now.
func (c *Cursor) restart() {
	c.Close()
	var last Snapshot
	c.Mark(&last)
	again, ok := c.log.Resume(last)
	if !ok {
		again = c.log.Follow(0)
	}
	*c = *again
}

// openNext opens a later segment, the one that should have the next event or else the first, or returns io.EOF.
func (c *Cursor) openNext() error {
	for {
		segs, err := c.log.segments()
		if err != nil {
			return err
		}
		if len(segs) > 0 && c.next < segs[0] {
			// What the archive has beyond that is from before the agent was retired and created again.
			old, err := c.log.segmentsIn(c.log.archive())
			if err != nil {
				return err
			}
			old = slices.DeleteFunc(old, func(first uint64) bool { return first >= segs[0] })
			segs = append(old, segs...)
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
		if errors.Is(err, fs.ErrNotExist) {
			f, err = c.log.Root.Open(path.Join(c.log.archive(), segmentName(next)))
		}
		if errors.Is(err, fs.ErrNotExist) { // the agent was retired since they were listed
			continue
		}
		if err == nil {
			c.file, c.first, c.isFinal, c.end, c.noEvent = f, next, false, 0, 0
			c.rewind()
		}
		return err
	}
}
