package tarball

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// Writer writes an archive. Call Header for each entry, then Write its content,
// then Close. After an error the archive is no good.
type Writer struct {
	w    io.Writer
	left int64 // of the content
	pad  int64 // after it
}

// NewWriter begins an archive. The caller closes w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Header begins an entry, a File or a Dir.
func (w *Writer) Header(h Header) error {
	if err := w.end(); err != nil {
		return err
	}
	if h.Name == "" || strings.Contains(h.Name, "\x00") || h.Size < 0 || h.Kind == Other || h.Kind == Dir && h.Size > 0 {
		return fmt.Errorf("write an entry %q of %d bytes: %w", h.Name, h.Size, ErrFormat)
	}
	var records []byte
	prefix, name, ok := split(h.Name)
	if !ok {
		records = record(records, "path", h.Name)
		prefix, name = "", clip(h.Name, nameField.to)
	}
	size := h.Size
	if size > maxOctal {
		records = record(records, "size", strconv.FormatInt(size, 10))
		size = 0
	}
	seconds := h.ModTime.Unix()
	if h.ModTime.IsZero() {
		seconds = 0
	} else if h.ModTime.Nanosecond() != 0 || seconds < 0 || seconds > maxOctal {
		records = record(records, "mtime", stamp(h.ModTime))
	}
	if seconds < 0 || seconds > maxOctal {
		seconds = 0
	}
	if len(records) > 0 {
		pax := clip("PaxHeaders.0/"+path.Base(h.Name), nameField.to)
		if err := w.block("", pax, paxKind, 0o600, int64(len(records)), 0); err != nil {
			return err
		}
		if err := w.all(append(records, make([]byte, padding(int64(len(records))))...)); err != nil {
			return err
		}
	}
	kind, mode := byte('0'), int64(0o600)
	if h.Kind == Dir {
		kind, mode = '5', 0o700
	}
	w.left, w.pad = h.Size, padding(h.Size)
	return w.block(prefix, name, kind, mode, size, seconds)
}

// Write writes content of the entry; more than its header says is an error.
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, errors.New("write an entry: more than its header says")
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)
	return n, err
}

// Close ends the archive. An entry that is not whole is an error.
func (w *Writer) Close() error {
	if err := w.end(); err != nil {
		return err
	}
	return w.all(make([]byte, 2*blockSize))
}

// end fills the entry's last block.
func (w *Writer) end() error {
	if w.left > 0 {
		return fmt.Errorf("write an entry: %d bytes are missing", w.left)
	}
	pad := w.pad
	w.pad = 0
	return w.all(make([]byte, pad))
}

func (w *Writer) all(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.w.Write(p)
	return err
}

func (w *Writer) block(prefix, name string, kind byte, mode, size, seconds int64) error {
	var b block
	copy(b.field(nameField), name)
	octal(b.field(modeField), mode)
	octal(b.field(uidField), 0)
	octal(b.field(gidField), 0)
	octal(b.field(sizeField), size)
	octal(b.field(mtimeField), seconds)
	b[kindAt] = kind
	copy(b.field(magicField), paxMagic)
	copy(b.field(prefixField), prefix)
	sum, _ := b.sum()
	copy(b.field(sumField), fmt.Sprintf("%06o\x00 ", sum))
	return w.all(b[:])
}

// octal fills a field with digits, the last byte NUL.
func octal(field []byte, n int64) {
	copy(field, fmt.Sprintf("%0*o", len(field)-1, n))
}

// split puts a name into the two fields that a header has for it.
func split(name string) (prefix, rest string, ok bool) {
	for i := range len(name) {
		if name[i] >= 0x80 { // pax says in which encoding
			return "", "", false
		}
	}
	if len(name) <= nameField.to {
		return "", name, true
	}
	room := prefixField.to - prefixField.from
	i := strings.LastIndexByte(name[:min(len(name)-1, room+1)], '/')
	if i <= 0 || len(name)-i-1 > nameField.to {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// clip is the part of a name that a reader without pax is shown.
func clip(name string, n int) string {
	name = strings.ToValidUTF8(name, "?")
	name = strings.Map(func(r rune) rune {
		if r >= 0x80 {
			return '?'
		}
		return r
	}, name)
	return name[:min(n, len(name))]
}

// record appends "LENGTH KEY=VALUE\n", whose length counts its own digits.
func record(to []byte, key, value string) []byte {
	n := len(key) + len(value) + 3
	for digits := int(math.Log10(float64(n))) + 1; ; digits++ {
		if s := strconv.Itoa(n + digits); len(s) == digits {
			return fmt.Appendf(to, "%s %s=%s\n", s, key, value)
		}
	}
}

// stamp is a time in seconds with a fraction. Before 1970 the fraction counts
// backwards as well: -1.5.
func stamp(t time.Time) string {
	s, n, sign := t.Unix(), int64(t.Nanosecond()), ""
	if s < 0 {
		sign, s = "-", -s
		if n > 0 {
			s, n = s-1, 1e9-n
		}
	}
	text := fmt.Sprintf("%s%d", sign, s)
	if n > 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%09d", n), "0")
	}
	return text
}
