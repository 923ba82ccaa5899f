package mailbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

func segmentName(first uint64) string {
	digits := strconv.FormatUint(first, 10)
	return "00000000000000000000"[len(digits):] + digits + ".ndjson"
}

// segments lists the first sequence numbers of the log's segments, ascending.
func segments(dir *atomicfile.Dir) ([]uint64, error) {
	var out []uint64
	err := dir.Names(func(names []string) bool {
		for _, n := range names {
			if s, ok := strings.CutSuffix(n, ".ndjson"); ok && len(s) == 20 {
				if v, err := strconv.ParseUint(s, 10, 62); err == nil && v > 0 {
					out = append(out, v)
				}
			}
		}
		return true
	})
	slices.Sort(out)
	return out, err
}

// repair returns the last sequence number of a segment and its length, after
// cutting off what follows the last line that parses. What is cut goes to bad.
func (r *room) repair(f *os.File, first uint64) (seq uint64, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size()
	end := size
	for window := int64(2 << 10); ; window *= 8 {
		from := max(0, size-window)
		buf := make([]byte, size-from)
		if _, err := f.ReadAt(buf, from); err != nil && err != io.EOF {
			return 0, 0, err
		}
		if from > 0 { // the first line is perhaps not whole
			i := bytes.IndexByte(buf, '\n') + 1
			from += int64(i)
			buf = buf[i:]
		}
		last, stop, sure := lastEvent(buf, first, from)
		if sure || size <= window {
			if seq, end = max(last, first-1), 0; stop > 0 {
				end = from + int64(stop)
			}
			break
		}
	}
	if end == size {
		return seq, size, nil
	}
	torn := make([]byte, size-end)
	if _, err := f.ReadAt(torn, end); err != nil {
		return 0, 0, err
	}
	bad, err := r.dir("inbox/bad", true)
	if err != nil {
		return 0, 0, fmt.Errorf("keep a torn line of the events: %w", err)
	}
	name := "events." + segmentName(first) + "." + string(wire.NewID())
	if err := bad.Replace(name, torn, false); err != nil {
		return 0, 0, fmt.Errorf("keep a torn line of the events: %w", err)
	}
	bad.Replace(name+".reason", []byte("a line of the event log that was not written whole\n"), false)
	if err := f.Truncate(end); err != nil {
		return 0, 0, fmt.Errorf("cut a torn line off the events: %w", err)
	}
	return seq, end, nil
}

// logged decodes a line of a segment; first is the segment's number and at where
// the line begins in it. A number beyond what so many bytes can hold is not
// ours, and no line of the log is lost to those who would count on from it.
func logged(line []byte, first uint64, at int64) (wire.Event, bool) {
	e, err := wire.DecodeEvent(line)
	return e, err == nil && e.Seq <= first+uint64(at)
}

// lastEvent returns the largest number among whole lines of a segment, which
// begin at from, and where the last one that parses ends; 0 when none does. The
// largest is the last one's, unless somebody else wrote a line into the log:
// then counting on from that would make followers, who are further, pass over
// what comes. sure means that the last one counts on from the one before it.
func lastEvent(lines []byte, first uint64, from int64) (seq uint64, end int, sure bool) {
	start := 0
	for stop := len(lines); stop > 0 && end == 0; {
		nl := bytes.LastIndexByte(lines[:stop], '\n')
		if nl < 0 {
			return 0, 0, false
		}
		start = bytes.LastIndexByte(lines[:nl], '\n') + 1
		if e, ok := logged(lines[start:nl], first, from+int64(start)); ok {
			seq, end = e.Seq, nl+1
		}
		stop = nl
	}
	if start > 0 {
		begin := bytes.LastIndexByte(lines[:start-1], '\n') + 1
		before, ok := numbered(lines[begin : start-1])
		sure = ok && before+1 == seq && wire.Valid(lines[begin:start-1])
	}
	if highest(lines[:end]) > seq {
		for at := 0; at < end; {
			n := bytes.IndexByte(lines[at:], '\n')
			if e, ok := logged(lines[at:at+n], first, from+int64(at)); ok {
				seq = max(seq, e.Seq)
			}
			at += n + 1
		}
	}
	return seq, end, sure
}

// highest is the largest number that lines begin with, as ours do: a hint.
func highest(lines []byte) (seq uint64) {
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		n, _ := numbered(line)
		seq = max(seq, n)
	}
	return seq
}

// numbered is the number that a line begins with, as ours do.
func numbered(line []byte) (n uint64, ok bool) {
	digits, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	for _, c := range digits {
		if c < '0' || c > '9' || n > 1<<58 {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return n, ok
}

// recentLines is the last MiB of the log: of the last segment, and of the one
// before it while that one is young.
func recentLines(dir *atomicfile.Dir, segs []uint64, f *os.File, size int64) ([]byte, error) {
	recent := []byte{}
	if f == nil {
		return recent, nil
	}
	if n := len(segs); n > 1 && size < dedupeWindow {
		last, err := dir.Open(segmentName(segs[n-2]))
		if err != nil && !atomicfile.Absent(err) {
			return nil, err
		}
		if err == nil {
			defer last.Close()
			info, err := last.Stat()
			if err != nil {
				return nil, err
			}
			if recent, err = tail(last, info.Size(), dedupeWindow-size); err != nil {
				return nil, err
			}
			recent = append(recent, '\n')
		}
	}
	own, err := tail(f, size, dedupeWindow)
	return append(recent, own...), err
}

// tail reads the last n bytes of a file of this size.
func tail(f *os.File, size, n int64) ([]byte, error) {
	from := max(0, size-n)
	buf := make([]byte, size-from)
	m, err := f.ReadAt(buf, from)
	if err == io.EOF {
		err = nil
	}
	return buf[:m], err
}

// mentions reports whether the id of one of the events stands in the last n
// bytes of a file of this size, as an id or as anything else.
func mentions(f *os.File, size, n int64, events []wire.Event) (bool, error) {
	var ids [][]byte
	overlap := int64(0)
	for i := range events {
		if id := events[i].EventID; id != "" {
			// Ids of hooks have a rare character: from there on it is quick.
			text := wire.AppendString(nil, id[max(0, strings.IndexByte(id, '/')):])
			ids = append(ids, text[1:len(text)-1])
			overlap = max(overlap, int64(len(text)))
		}
	}
	buf := make([]byte, min(size, 16<<10+overlap))
	from := max(0, size-n)
	for end := size; end > from; {
		at := max(from, end-int64(len(buf)))
		m, err := f.ReadAt(buf[:end-at], at)
		if err != nil && err != io.EOF {
			return false, err
		}
		for _, id := range ids {
			if bytes.Contains(buf[:m], id) {
				return true, nil
			}
		}
		if at == from {
			break
		}
		end = at + overlap
	}
	return false, nil
}

func hasEventID(lines []byte, id string) bool {
	key := append([]byte(`"event_id":`), wire.AppendString(nil, id)...)
	for rest := lines; ; {
		i := bytes.Index(rest, key)
		if i < 0 {
			return false
		}
		start := bytes.LastIndexByte(rest[:i], '\n') + 1
		stop := bytes.IndexByte(rest[i:], '\n')
		if stop < 0 {
			stop = len(rest) - i
		}
		if e, err := wire.DecodeEvent(rest[start : i+stop]); err == nil && e.EventID == id {
			return true
		}
		rest = rest[i+stop:]
	}
}
