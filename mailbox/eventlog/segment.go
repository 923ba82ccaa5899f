package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/wire"
)

const segmentEnd = ".ndjson"

// segmentSize is how many bytes a segment has when it is full. Tests shorten it.
var segmentSize int64 = 16 << 20

func segmentName(first uint64) string { return fmt.Sprintf("%020d", first) + segmentEnd }

func (l *Log) segment(first uint64) string { return path.Join(l.dir(), segmentName(first)) }

// segmentFirst returns the first number of the segment with that name, or 0 for other names.
func segmentFirst(name string) uint64 {
	first, err := strconv.ParseUint(strings.TrimSuffix(name, segmentEnd), 10, 62)
	if err != nil || name != segmentName(first) {
		return 0
	}
	return first
}

// segments lists the first numbers of the segments, ascending.
func (l *Log) segments() ([]uint64, error) {
	if err := l.present(); err != nil {
		return nil, err
	}
	return l.segmentsIn(l.dir())
}

func (l *Log) segmentsIn(dir string) (segs []uint64, err error) {
	names, err := l.root.Names(dir)
	for _, name := range names {
		if first := segmentFirst(name); first > 0 {
			segs = append(segs, first)
		}
	}
	return segs, err
}

// openSegment opens a segment, wherever it is: one that is archived meanwhile is found there.
func (l *Log) openSegment(first uint64) (*os.File, error) {
	f, err := l.root.Open(l.segment(first))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = l.root.Open(path.Join(l.archive(), segmentName(first)))
	}
	return f, err
}

// statSegment describes a segment, wherever it is.
func (l *Log) statSegment(first uint64) (fs.FileInfo, error) {
	info, err := l.root.Lstat(l.segment(first))
	if errors.Is(err, fs.ErrNotExist) {
		info, err = l.root.Lstat(path.Join(l.archive(), segmentName(first)))
	}
	return info, err
}

// backward calls f with the whole lines of the segments, last line first, until f returns true.
func (l *Log) backward(f func(line []byte, first uint64, offset int64) (enough bool)) error {
	segs, err := l.segments()
	if err != nil {
		return err
	}
	return l.backwardIn(segs, f)
}

// backwardIn is backward for some of the segments.
func (l *Log) backwardIn(segs []uint64, f func(line []byte, first uint64, offset int64) (enough bool)) error {
	for _, first := range slices.Backward(segs) {
		file, err := l.root.Open(l.segment(first))
		if errors.Is(err, fs.ErrNotExist) {
			continue // archived meanwhile
		}
		if err != nil {
			return err
		}
		enough, err := readBackward(file, func(line []byte, offset int64) bool { return f(line, first, offset) })
		file.Close()
		if enough || err != nil {
			return err
		}
	}
	return nil
}

// readBackward calls f with the whole lines of a file and their offsets, last line first, until f returns true. A line
// is only valid during the call. One that is too long is skipped without being held.
func readBackward(file *os.File, f func(line []byte, offset int64) (enough bool)) (enough bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	begin, lines := info.Size(), []byte(nil) // where the lines begin that f has not got yet
	for size := int64(4 << 10); begin > 0; size = min(2*size, 128<<10) {
		more := int(min(size, begin))
		begin -= int64(more)
		lines = slices.Grow(lines, more)[:more+len(lines)]
		copy(lines[more:], lines)
		n, err := file.ReadAt(lines[:more], begin)
		if err != nil && err != io.EOF {
			return false, err
		}
		lines = slices.Delete(lines, n, more)
		lines = lines[:bytes.LastIndexByte(lines, '\n')+1]
		end := begin + int64(len(lines))
		// SplitAfter is five times as fast as LastIndexByte for each line.
		for i, line := range slices.Backward(bytes.SplitAfter(lines, []byte{'\n'})) {
			if end -= int64(len(line)); i == 0 && begin > 0 {
				lines = lines[:len(line)] // the next read has its beginning
			} else if len(line) > 0 && f(line, end) {
				return true, nil
			}
		}
		if int64(len(lines)) > maxLine {
			lines = lines[:0] // the rest of this line is skipped
		}
	}
	return false, nil
}

// decode decodes the line at an offset of a segment. It refuses a number that is too high for the bytes before: another
// program wrote the line, and a follower that believed it would miss the next events.
func decode(line []byte, first uint64, offset int64) (wire.Event, bool) {
	e, err := wire.DecodeEvent(line)
	return e, err == nil && e.Seq <= first+uint64(offset)
}

// number returns an event's number without decoding its line, or 0 if another program wrote it and it begins otherwise.
func number(line []byte) uint64 {
	rest, _ := bytes.CutPrefix(line, []byte(`{"seq":`))
	digits, _, _ := bytes.Cut(rest, []byte{','})
	n, err := strconv.ParseUint(string(digits), 10, 62)
	if err != nil {
		return 0
	}
	return n
}
