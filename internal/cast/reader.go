package cast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// The codes of events that mean something here. Others are passed on.
const (
	Output = 'o'
	Input  = 'i'
	Resize = 'r' // Data is COLSxROWS
	Marker = 'm' // Data is the label
	Exit   = 'x' // Data is the exit code

	// Begin is no line of a file: a file begins, and Header is its header. Data
	// is its size as COLSxROWS.
	Begin = 0
)

// Event is what happened at a time.
type Event struct {
	Code byte
	Data string
	At   time.Duration // since the first file began
	Time time.Time     // zero in a recording that does not tell when it began
}

// Header is the first line of a file.
type Header struct {
	Version        int // 2 or 3
	Cols, Rows     int
	Type           string // the terminal's
	Began          time.Time
	Command, Title string
}

// longestLine is the most that is taken for a line.
const longestLine = 16 << 20

// sameRun is how far the clock of a file may be from where the file before it
// ended: times in headers are whole seconds.
const sameRun = 2 * time.Second

// Reader reads a recording's files one after the other. Version 2 is read too.
type Reader struct {
	files  []io.Reader
	names  []string
	in     *bufio.Reader
	open   bool
	line   []byte
	header Header
	began  time.Time
	at     time.Duration
	start  time.Duration // at which the file began
	begun  bool          // a file was

	// Skipped counts the lines that were none, such as one that was torn.
	Skipped int
}

// Open opens a recording with its rotated files, oldest first, as they are now:
// a rotation meanwhile neither doubles nor loses anything.
func Open(path string) (*Reader, error) {
	for tries := 0; ; tries++ {
		r, first, err := open(path)
		if err != nil {
			return nil, err
		}
		// Two rotations meanwhile may have put a newer file where an older one was
		// looked for: only without any is the order sure.
		now, err := os.Stat(path)
		if err == nil && os.SameFile(first, now) || tries == maxOpens {
			return r, nil
		}
		r.Close()
	}
}

// maxOpens is how often a recording is opened that is rotated all the time.
const maxOpens = 50

// open is Open once. first is the newest file.
func open(path string) (r *Reader, first fs.FileInfo, err error) {
	numbers, err := rotated(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the recording %s: %w", path, bare(err))
	}
	// The newest first: a file that a rotation moves meanwhile is met again,
	// and known, where the other way round one would be missed.
	paths := []string{path}
	if len(numbers) > 0 {
		for n := 1; n <= numbers[0]+1; n++ {
			paths = append(paths, numbered(path, n))
		}
	}
	r = &Reader{}
	var infos []fs.FileInfo
	for _, path := range paths {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			r.Close()
			return nil, nil, fmt.Errorf("read the recording %s: %w", path, bare(err))
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			r.Close()
			return nil, nil, fmt.Errorf("read the recording %s: %w", path, bare(err))
		}
		if slices.ContainsFunc(infos, func(i fs.FileInfo) bool { return os.SameFile(i, info) }) {
			f.Close()
			continue
		}
		infos = append(infos, info)
		r.files = append(r.files, f)
		r.names = append(r.names, path)
	}
	if len(r.files) == 0 {
		return nil, nil, fmt.Errorf("read the recording %s: %w", path, fs.ErrNotExist)
	}
	slices.Reverse(r.files)
	slices.Reverse(r.names)
	return r, infos[0], nil
}

// OpenFiles opens these files as one recording.
func OpenFiles(paths ...string) (*Reader, error) {
	r := &Reader{names: paths}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("read the recording %s: %w", path, bare(err))
		}
		r.files = append(r.files, f)
	}
	return r, nil
}

// NewReader reads files that are open already.
func NewReader(files ...io.Reader) *Reader { return &Reader{files: files} }

// Files are the paths of a recording's files, oldest first.
func Files(path string) ([]string, error) {
	numbers, err := rotated(path)
	if err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", path, bare(err))
	}
	var paths []string
	for _, n := range numbers {
		paths = append(paths, numbered(path, n))
	}
	if _, err := os.Stat(path); err == nil {
		paths = append(paths, path)
	}
	return paths, nil
}

// Close closes the files that are still to be read.
func (r *Reader) Close() error {
	for _, f := range r.files {
		if c, ok := f.(io.Closer); ok {
			c.Close()
		}
	}
	r.files, r.in = nil, nil
	return nil
}

// Header is the header of the file that the last event is from.
func (r *Reader) Header() Header { return r.header }

// Next returns the next event, or io.EOF.
func (r *Reader) Next() (Event, error) {
	for len(r.files) > 0 {
		if r.in == nil {
			r.in = bufio.NewReaderSize(r.files[0], 64<<10)
		}
		line, err := r.next()
		if err != nil && err != io.EOF {
			return Event{}, fmt.Errorf("read the recording%s: %w", r.name(), bare(err))
		}
		if err == io.EOF && len(line) == 0 {
			r.shift()
			continue
		}
		if !r.open {
			h, ok := parseHeader(line)
			if !ok { // torn at once, or somebody else's: the other files may do
				r.Skipped++
				if len(r.files) == 1 && !r.begun {
					return Event{}, fmt.Errorf("read the recording%s: it does not begin as an asciicast of version 2 or 3", r.name())
				}
				r.shift()
				continue
			}
			r.open, r.begun = true, true
			return r.begin(h), nil
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		e, ok := r.parse(line)
		if !ok {
			r.Skipped++
			continue
		}
		return e, nil
	}
	return Event{}, io.EOF
}

// shift goes on with the next file.
func (r *Reader) shift() {
	if c, ok := r.files[0].(io.Closer); ok {
		c.Close()
	}
	r.files, r.in, r.open = r.files[1:], nil, false
	if len(r.names) > 0 {
		r.names = r.names[1:]
	}
}

func (r *Reader) name() string {
	if len(r.names) == 0 {
		return ""
	}
	return " " + r.names[0]
}

// next reads a line, without its end. At the end of the file it returns what
// there is, with io.EOF. A line that is too long is cut, and so no event.
func (r *Reader) next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.line) < longestLine {
			r.line = append(r.line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimRight(r.line, "\r\n"), err
	}
}

// begin takes up a file's header. The time goes on where the last file ended,
// unless the header tells that it is a later run.
func (r *Reader) begin(h Header) Event {
	switch now := r.began.Add(r.at); {
	case r.began.IsZero():
		if !h.Began.IsZero() {
			r.began = h.Began.Add(-r.at)
		}
	case !h.Began.IsZero() && h.Began.Sub(now) > sameRun:
		r.at = h.Began.Sub(r.began)
	}
	r.start = r.at
	r.header = h
	return r.stamp(Event{Code: Begin, Data: strconv.Itoa(h.Cols) + "x" + strconv.Itoa(h.Rows)})
}

func (r *Reader) stamp(e Event) Event {
	e.At = r.at
	if !r.began.IsZero() {
		e.Time = r.began.Add(r.at)
	}
	return e
}

func parseHeader(line []byte) (Header, bool) {
	var h struct {
		Version int
		Term    struct {
			Cols, Rows int
			Type       string
		}
		Width, Height  int
		Timestamp      float64
		Command, Title string
		Env            map[string]any
	}
	if json.Unmarshal(line, &h) != nil {
		return Header{}, false
	}
	out := Header{Version: h.Version, Cols: h.Term.Cols, Rows: h.Term.Rows, Type: h.Term.Type, Command: h.Command, Title: h.Title}
	if h.Version == 2 {
		out.Cols, out.Rows = h.Width, h.Height
		out.Type, _ = h.Env["TERM"].(string)
	}
	if h.Timestamp > 0 && h.Timestamp < 1<<33 {
		out.Began = time.UnixMilli(int64(h.Timestamp * 1000))
	}
	return out, (out.Version == 2 || out.Version == 3) && out.Cols > 0 && out.Rows > 0
}

// parse reads an event's line.
func (r *Reader) parse(line []byte) (Event, bool) {
	var fields []json.RawMessage
	var seconds float64
	var code, data string
	if json.Unmarshal(line, &fields) != nil || len(fields) < 3 ||
		json.Unmarshal(fields[0], &seconds) != nil ||
		json.Unmarshal(fields[1], &code) != nil || code == "" || code[0] >= 0x80 || code[0] == Begin ||
		json.Unmarshal(fields[2], &data) != nil {
		return Event{}, false
	}
	const longest = 100 * 365 * 24 * 3600
	if seconds < 0 || seconds > longest || string(fields[0]) == "null" {
		return Event{}, false
	}
	t := time.Duration(math.Round(seconds*1e6)) * time.Microsecond
	if r.header.Version == 2 {
		t = max(r.at, r.start+t) - r.at
	}
	if r.at > longest*time.Second-t {
		t = 0
	}
	r.at += t
	return r.stamp(Event{Code: code[0], Data: data}), true
}
