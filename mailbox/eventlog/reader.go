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

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Gap is a range of missing events: their lines do not parse, or their segments are gone.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Position is where an event's line is in a log. A log that was replaced, or has lost its end in a power cut, has
// another line there or none.
type Position struct {
	Seq     uint64 `json:"seq"`     // the event's number
	Segment uint64 `json:"segment"` // the segment's first number
	Offset  int64  `json:"offset"`  // of the line, in bytes
	CRC     uint32 `json:"crc"`     // IEEE CRC-32 of the line, without its line feed
}

// Reader reads the events of a log in order, each once, while others append. If another log takes the place of this
// one, it goes on after the event that it read last, if the other has that too, or else begins with its first one. It is
// not for concurrent use.
type Reader struct {
	log  *Log
	last Position // of the last event
	next uint64   // the number of the next event

	begun error // of Follow's look for the first event: see IsEmpty

	file       *os.File // the open segment; nil: the one after first is to be opened
	first      uint64   // the segment's first number
	isFinal    bool     // nothing more is written to it, since there is a newer one
	lines      bufio.Reader
	offset     int64 // of the next line
	unfinished int64 // how much of the next line was there at the last look, without its end
}

// Follow returns a reader of the events after seq, archived ones too.
func (l *Log) Follow(after uint64) *Reader {
	lockfile.Reads("read a log")
	r := &Reader{log: l, next: after + 1}
	r.begun = r.openNext() // now, so that it notices if another log takes its place; after an error Next tries again
	if r.begun == nil {
		r.skip()
	}
	return r
}

// IsEmpty reports whether there was no event to follow when Follow looked.
func (r *Reader) IsEmpty() bool { return r.begun == io.EOF }

// skip has the reader begin with the first line of the open segment that Next may return: who follows has read most of
// it. As in lastSeq two lines that follow each other are sure, while one may be another program's.
func (r *Reader) skip() {
	if r.next <= r.first {
		return
	}
	begin, later := int64(-1), uint64(0) // where the lines begin that are needed; the number of the line after
	readBackward(r.file, func(line []byte, offset int64) bool {
		seq := number(line)
		if seq == 0 || seq >= r.next {
			begin = offset
		} else if begin < 0 {
			begin = offset + int64(len(line))
		}
		isSure := seq > 0 && seq+1 == later && later < r.next
		later = seq
		return isSure
	})
	r.seek(max(begin, 0))
}

// Resume returns a reader of the events after a position, or false if the log has another line there.
func (l *Log) Resume(p Position) (*Reader, bool) {
	lockfile.Reads("read a log")
	r := &Reader{log: l, last: p, next: p.Seq + 1}
	segs, err := l.segments()
	if err != nil || len(segs) == 0 || p.Seq == 0 || p.Segment > segs[len(segs)-1] || r.open(p.Segment) != nil {
		return nil, false
	}
	r.seek(p.Offset)
	line, n, err := wire.ReadLine(&r.lines, maxLine)
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if err != nil || number(line) != p.Seq || crc32.ChecksumIEEE(line) != p.CRC {
		r.Close()
		return nil, false
	}
	r.offset += n
	return r, true
}

// Position returns the position of the last event, for Resume.
func (r *Reader) Position() Position { return r.last }

// Seq returns the number of the last event.
func (r *Reader) Seq() uint64 { return r.next - 1 }

// Close closes the open segment. r may be nil.
func (r *Reader) Close() {
	if r != nil {
		r.file.Close() // nil too
		r.file = nil
	}
}

// Next returns the next event, or io.EOF if there is none yet; it may then be called again. A gap that is not nil says
// which events are missing before this one.
func (r *Reader) Next() (wire.Event, *Gap, error) {
	for {
		line, offset, err := r.readLine()
		if err != nil {
			return wire.Event{}, nil, err
		}
		if n := number(line); 0 < n && n < r.next { // skipped without decoding
			continue
		}
		e, ok := decode(line, r.first, offset)
		if !ok || e.Seq < r.next { // what is missing there, the next event shows
			continue
		}
		var gap *Gap
		if e.Seq > r.next {
			gap = &Gap{r.next, e.Seq - 1}
		}
		r.next = e.Seq + 1
		r.last = Position{e.Seq, r.first, offset, crc32.ChecksumIEEE(line)}
		return e, gap, nil
	}
}

// readLine returns the next whole line, without its line feed, and its offset, or io.EOF. A line that is too long is
// empty.
func (r *Reader) readLine() (line []byte, offset int64, err error) {
	for {
		if r.file == nil {
			if err := r.openNext(); err != nil {
				return nil, 0, err
			}
		}
		if !r.isUnchanged() {
			line, n, err := wire.ReadLine(&r.lines, maxLine)
			if err == nil {
				offset, r.offset = r.offset, r.offset+n
				return bytes.TrimSuffix(line, []byte{'\n'}), offset, nil
			}
			r.seek(r.offset) // the next look begins with this line
			if err != io.EOF {
				return nil, 0, err
			}
			r.unfinished = n
			if info, err := r.file.Stat(); err == nil && info.Size() > r.offset+n { // it has grown since it was buffered
				continue
			}
		}
		if r.isFinal { // and it was read to its end after that was known
			r.Close()
		} else if err := r.lookForNewer(); err != nil {
			return nil, 0, err
		}
	}
}

// isUnchanged reports whether the segment ends with the same unfinished line as at the last look. It may be long.
func (r *Reader) isUnchanged() bool {
	if r.unfinished == 0 {
		return false
	}
	info, err := r.file.Stat()
	return err == nil && info.Size() == r.offset+r.unfinished
}

// seek has the next line read at an offset.
func (r *Reader) seek(offset int64) {
	r.lines.Reset(io.NewSectionReader(r.file, offset, 1<<62))
	r.offset, r.unfinished = offset, 0
}

// lookForNewer looks for a newer segment, or another log, or returns io.EOF.
func (r *Reader) lookForNewer() error {
	segs, err := r.log.segments()
	if err != nil || len(segs) == 0 {
		return cmp.Or(err, io.EOF)
	}
	mine, err := r.file.Stat()
	if err != nil {
		return err
	}
	there, err := r.log.statSegment(r.first)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch newest := segs[len(segs)-1]; {
	case newest < r.first, err != nil, !os.SameFile(mine, there):
		r.restart()
	case newest > r.first:
		r.isFinal = true
	default:
		return io.EOF
	}
	return nil
}

// restart begins again in the log that is in place now.
func (r *Reader) restart() {
	r.Close()
	again, ok := r.log.Resume(r.last)
	if !ok {
		again = r.log.Follow(0)
	}
	*r = *again
}

// openNext opens a later segment, the one that should have the next event or else the first, or returns io.EOF.
func (r *Reader) openNext() error {
	segs, err := r.log.segments()
	if err != nil {
		return err
	}
	if len(segs) > 0 && r.next < segs[0] {
		old, err := r.log.segmentsIn(r.log.archive())
		if err != nil {
			return err
		}
		segs = append(old, segs...)
	}
	var next uint64
	for _, first := range segs {
		if first > r.first && (next == 0 || next < first && first <= r.next) {
			next = first
		}
	}
	if next == 0 {
		return io.EOF
	}
	err = r.open(next)
	if errors.Is(err, fs.ErrNotExist) { // the agent may have been retired since they were listed
		err = cmp.Or(r.log.present(), err)
	}
	return err
}

// open opens a segment, wherever it is.
func (r *Reader) open(first uint64) error {
	f, err := r.log.openSegment(first)
	if err == nil {
		r.file, r.first, r.isFinal = f, first, false
		r.seek(0)
	}
	return err
}
