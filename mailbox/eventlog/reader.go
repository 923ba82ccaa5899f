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
	"strconv"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

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
	last Position // of the last event; until one is read it has only the number

	file    *os.File // the open segment; nil: the one after first is to be opened
	first   uint64   // the segment's first number
	isFinal bool     // nothing more is written to it, since there is a newer one
	lines   bufio.Reader
	offset  int64 // of the next line
	count   int   // how many lines were read since the segment was opened
}

// Follow returns a reader of the events after seq, archived ones too.
func (l *Log) Follow(after uint64) *Reader {
	lockfile.Reads("read a log")
	r := &Reader{log: l, last: Position{Seq: after}}
	r.openNext() // now, so that it notices if another log takes its place; after an error Next tries again
	return r
}

// Resume returns a reader of the events after a position, or false if the log has another line there.
func (l *Log) Resume(p Position) (*Reader, bool) {
	lockfile.Reads("read a log")
	r := &Reader{log: l, last: p}
	segs, err := l.segments()
	if err != nil || len(segs) == 0 || p.Segment > segs[len(segs)-1] || r.open(p.Segment) != nil {
		return nil, false
	}
	r.seek(p.Offset)
	line, n, err := wire.ReadLine(&r.lines, maxLine)
	e, damage := wire.DecodeEvent(line)
	if err != nil || damage != nil || e.Seq != p.Seq || checksum(line) != p.CRC {
		r.Close()
		return nil, false
	}
	r.offset += n
	return r, true
}

// Position returns the position of the last event that was read, for Resume.
func (r *Reader) Position() Position { return r.last }

// Seq returns the number of the last event.
func (r *Reader) Seq() uint64 { return r.last.Seq }

// Close closes the open segment. r may be nil.
func (r *Reader) Close() {
	if r != nil {
		r.file.Close() // nil too
		r.file = nil
	}
}

// Next returns the next event, or io.EOF if there is none yet; it may then be called again. If its number is not the one
// after the last, events are missing: a line was damaged, or a segment is gone.
func (r *Reader) Next() (wire.Event, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return wire.Event{}, err
		}
		if e, err := wire.DecodeEvent(line); err == nil {
			r.last = Position{e.Seq, r.first, r.offset - int64(len(line)), checksum(line)}
			return e, nil
		}
	}
}

func checksum(line []byte) uint32 { return crc32.ChecksumIEEE(bytes.TrimSuffix(line, []byte{'\n'})) }

// readLine returns the next whole line, or io.EOF. A line that is too long is empty.
func (r *Reader) readLine() (line []byte, err error) {
	for {
		if r.file == nil {
			if err := r.openNext(); err != nil {
				return nil, err
			}
		}
		line, n, err := wire.ReadLine(&r.lines, maxLine)
		if err == nil {
			r.offset, r.count = r.offset+n, r.count+1
			return line, nil
		}
		r.seek(r.offset) // the next look begins with this line
		if err != io.EOF {
			return nil, err
		}
		if r.isFinal { // and it was read to its end after that was known
			r.Close()
		} else if err := r.lookForNewer(); err != nil {
			return nil, err
		}
	}
}

// seek has the next line read at an offset.
func (r *Reader) seek(offset int64) {
	r.file.Seek(offset, io.SeekStart)
	r.lines.Reset(r.file)
	r.offset = offset
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
	there, err := find(r.log, r.first, r.log.root.Lstat)
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
	seq, next := r.last.Seq+1, uint64(0)
	if len(segs) > 0 && seq < segs[0] {
		old, err := r.log.segmentsIn(r.log.archive())
		if err != nil {
			return err
		}
		segs = append(old, segs...)
	}
	for _, first := range segs {
		if first > r.first && (next == 0 || next < first && first <= seq) {
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

// open opens a segment, wherever it is. A reader that has read nothing yet begins after the last event that it is not to
// return, without reading what is before it.
func (r *Reader) open(first uint64) error {
	file, err := find(r.log, first, r.log.root.Open)
	if err != nil {
		return err
	}
	begin := int64(0)
	if r.last.Segment == 0 && r.last.Seq >= first {
		_, err = readBackward(file, func(line []byte, offset int64) bool {
			digits, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(`{"seq":`)), []byte{','})
			if seq, _ := strconv.ParseUint(string(digits), 10, 64); seq > r.last.Seq {
				return false // known without decoding the line, which takes thirty times as long
			}
			e, err := wire.DecodeEvent(line)
			isBefore := err == nil && e.Seq <= r.last.Seq
			if isBefore {
				begin = offset + int64(len(line))
			}
			return isBefore
		})
	}
	if err != nil {
		file.Close()
		return err
	}
	r.file, r.first, r.isFinal, r.count = file, first, false, 0
	r.seek(begin)
	return nil
}
