package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

const segmentEnd = ".ndjson"

// segmentSize is how many bytes a segment has when it is full. Tests shorten it.
var segmentSize int64 = 16 << 20

func segmentName(first uint64) string { return fmt.Sprintf("%020d", first) + segmentEnd }

func (l *Log) segment(first uint64) string { return path.Join(l.dir(), segmentName(first)) }

// segmentFirst returns the first number of the segment with that name, or 0 for other names.
func segmentFirst(name string) uint64 {
	first, err := strconv.ParseUint(strings.TrimSuffix(name, segmentEnd), 10, 64)
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

// find looks at a segment wherever it is: one that is archived meanwhile is found there.
func find[T any](l *Log, first uint64, look func(name string) (T, error)) (T, error) {
	found, err := look(l.segment(first))
	if errors.Is(err, fs.ErrNotExist) {
		found, err = look(path.Join(l.archive(), segmentName(first)))
	}
	return found, err
}

// end returns the last bytes of a segment, at most so many.
func (l *Log) end(first uint64, most int) ([]byte, error) {
	file, err := l.root.Open(l.segment(first))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(info.Size(), int64(most)))
	_, err = file.ReadAt(text, info.Size()-int64(len(text)))
	return text, err
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
		if _, err := file.ReadAt(lines[:more], begin); err != nil {
			return false, err
		}
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
