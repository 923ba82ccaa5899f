package eventlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/wire"
)

const segmentEnd = ".ndjson"

func segmentName(first uint64) string { return fmt.Sprintf("%020d", first) + segmentEnd }

func (l *Log) segment(first uint64) string { return path.Join(l.Dir, segmentName(first)) }

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
	names, err := l.Root.Names(l.Dir)
	var segs []uint64
	for _, name := range names {
		if first := segmentFirst(name); first > 0 {
			segs = append(segs, first)
		}
	}
	return segs, err
}

// readEnd reads the whole lines among the last bytes of a file, and says where the
// first of them begins: 0 when that is all of the file.
func readEnd(f *os.File, window int64) (lines []byte, at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	at = max(0, info.Size()-window)
	lines = make([]byte, info.Size()-at)
	n, err := f.ReadAt(lines, at)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	lines = lines[:bytes.LastIndexByte(lines[:n], '\n')+1]
	if at > 0 { // the first line is perhaps not whole
		i := bytes.IndexByte(lines, '\n') + 1
		lines, at = lines[i:], at+int64(i)
	}
	return lines, at, nil
}

// lastEvent returns the last number of a segment, and where its last event ends.
//
// It reads further back until it has met the event before that too. The last line may
// be somebody else's, and were its number believed, followers that are further would
// pass over the events that come.
func lastEvent(f *os.File, first uint64) (seq uint64, end int64, err error) {
	for window := int64(2 << 10); ; window *= 8 {
		lines, at, err := readEnd(f, window)
		if err != nil {
			return 0, 0, err
		}
		seq, end = first-1, 0
		sure := at == 0
		for begin, stop := 0, len(lines); stop > 0; stop = begin {
			begin = bytes.LastIndexByte(lines[:stop-1], '\n') + 1
			n := number(lines[begin:stop])
			sure = sure || end > 0 && n+1 == seq
			if end > 0 && 0 < n && n <= seq {
				continue
			}
			if e, ok := decode(lines[begin:stop], first, at+int64(begin)); ok {
				seq = max(seq, e.Seq)
				end = max(end, at+int64(stop))
			}
		}
		if sure {
			return seq, end, nil
		}
	}
}

// decode decodes a line of a segment that begins at an offset in it. A number that
// so many bytes cannot hold is not the log's: whoever counted on from it would miss
// the events to come.
func decode(line []byte, first uint64, offset int64) (wire.Event, bool) {
	e, err := wire.DecodeEvent(line)
	return e, err == nil && e.Seq <= first+uint64(offset)
}

// number is the number that a line begins with, as all of ours do, without decoding
// it; 0 when it does not.
func number(line []byte) uint64 {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		return 0
	}
	digits, _, _ := bytes.Cut(rest, []byte{','})
	n, err := strconv.ParseUint(string(digits), 10, 62)
	if err != nil {
		return 0
	}
	return n
}
