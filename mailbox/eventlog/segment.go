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

func segmentName(first uint64) string { return fmt.Sprintf("%020d", first) + segmentEnd }

func (l *Log) segment(first uint64) string { return path.Join(l.dir(), segmentName(first)) }

// segmentFirst is the first number of a segment of that name, 0 for other names.
func segmentFirst(name string) uint64 {
	first, err := strconv.ParseUint(strings.TrimSuffix(name, segmentEnd), 10, 62)
	if err != nil || name != segmentName(first) {
		return 0
	}
	return first
}

// segments lists the first numbers of the segments, ascending.
func (l *Log) segments() ([]uint64, error) {
	if err := l.Present(); err != nil {
		return nil, err
	}
	return l.segmentsIn(l.dir())
}

func (l *Log) segmentsIn(dir string) (segs []uint64, err error) {
	names, err := l.Root.Names(dir)
	for _, name := range names {
		if first := segmentFirst(name); first > 0 {
			segs = append(segs, first)
		}
	}
	return segs, err
}

// backward calls f with the whole lines of the segments, the last first, until f has enough.
func (l *Log) backward(segs []uint64, f func(line []byte, first uint64, offset int64) (enough bool)) error {
	for _, first := range slices.Backward(segs) {
		file, err := l.Root.Open(l.segment(first))
		if errors.Is(err, fs.ErrNotExist) {
			continue // archived by now
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

// readBackward calls f with the whole lines of a file and where they begin, the last first, until f has
// enough. f keeps no line: what is read next takes its place.
func readBackward(file *os.File, f func(line []byte, offset int64) (enough bool)) (enough bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	at, lines := info.Size(), []byte(nil) // what was read and not given, and where that begins
	for size := int64(4 << 10); at > 0; size = min(2*size, 128<<10) {
		more := int(min(size, at))
		at -= int64(more)
		lines = slices.Grow(lines, more)[:more+len(lines)]
		copy(lines[more:], lines)
		n, err := file.ReadAt(lines[:more], at)
		if err != nil && err != io.EOF { // its end may have been cut off meanwhile
			return false, err
		}
		lines = slices.Delete(lines, n, more)
		lines = lines[:bytes.LastIndexByte(lines, '\n')+1]
		end := at + int64(len(lines))
		// Line by line from the end takes five times as long: only a search forwards looks at many bytes at once.
		for i, line := range slices.Backward(bytes.SplitAfter(lines, []byte{'\n'})) {
			if end -= int64(len(line)); i == 0 && at > 0 {
				lines = lines[:len(line)] // its beginning comes with the next read
			} else if len(line) > 0 && f(line, end) {
				return true, nil
			}
		}
	}
	return false, nil
}

// decode decodes a line of a segment that begins at an offset in it. A number that so many bytes cannot hold
// is not the log's: whoever counted on from it would miss the events to come.
func decode(line []byte, first uint64, offset int64) (wire.Event, bool) {
	e, err := wire.DecodeEvent(line)
	return e, err == nil && e.Seq <= first+uint64(offset)
}

// number is the number that a line begins with, as all of ours do, without decoding it; 0 when it does not.
func number(line []byte) uint64 {
	rest, _ := bytes.CutPrefix(line, []byte(`{"seq":`))
	digits, _, _ := bytes.Cut(rest, []byte{','})
	n, err := strconv.ParseUint(string(digits), 10, 62)
	if err != nil {
		return 0
	}
	return n
}
