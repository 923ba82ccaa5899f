package tarball

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Reader reads an archive from its beginning to its end.
type Reader struct {
	r    io.Reader
	left int64 // of the entry's content
	pad  int64 // after it
	err  error // for ever
}

// maxRecords is the longest list of pax records, or long name, that is read.
const maxRecords = 1 << 20

// NewReader reads an archive.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next goes on to the next entry; io.EOF after the last. An archive that ends
// without saying so was cut off: io.ErrUnexpectedEOF.
func (r *Reader) Next() (Header, error) {
	if r.err != nil {
		return Header{}, r.err
	}
	h, err := r.next()
	if err != nil {
		r.err = err
		return Header{}, err
	}
	return h, nil
}

// Read reads the content of the entry; io.EOF at its end.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err == io.EOF && r.left > 0 {
		err = io.ErrUnexpectedEOF
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}

func (r *Reader) next() (Header, error) {
	var more extra
	for {
		if err := r.skip(r.left + r.pad); err != nil {
			return Header{}, err
		}
		r.left, r.pad = 0, 0
		b, err := r.header()
		if err != nil {
			return Header{}, err
		}
		size, err := number(b.field(sizeField))
		if err != nil || size < 0 {
			return Header{}, bad("size", b.field(sizeField))
		}
		switch b[kindAt] {
		case paxKind, paxGlobal, 'L', 'K':
			text, err := r.text(size)
			if err != nil {
				return Header{}, err
			}
			switch b[kindAt] {
			case paxKind:
				err = more.records(text)
			case 'L':
				more.name = textOf(text)
			}
			if err != nil {
				return Header{}, err
			}
			continue
		}
		return r.entry(b, size, more)
	}
}

// extra is what entries before an entry say about it.
type extra struct {
	name  string
	size  int64
	sized bool
	when  time.Time
	other bool // a sparse file
}

func (r *Reader) entry(b *block, size int64, more extra) (Header, error) {
	h := Header{Name: textOf(b.field(nameField)), Kind: Other, Size: size}
	if string(b.field(magicField)) == paxMagic {
		if prefix := textOf(b.field(prefixField)); prefix != "" {
			h.Name = prefix + "/" + h.Name
		}
	}
	if more.name != "" {
		h.Name = more.name
	}
	if more.sized {
		h.Size = more.size
	}
	seconds, err := number(b.field(mtimeField))
	if err != nil {
		return h, bad("time", b.field(mtimeField))
	}
	h.ModTime = time.Unix(seconds, 0)
	if !more.when.IsZero() {
		h.ModTime = more.when
	}
	switch kind := b[kindAt]; {
	case more.other:
	case kind == '5', kind == 0 && strings.HasSuffix(h.Name, "/"):
		h.Kind, h.Size = Dir, 0
	case kind == '0', kind == 0, kind == '7':
		h.Kind = File
	case kind >= '1' && kind <= '6':
		h.Size = 0 // what a link or device says of its size is not there
	}
	if h.Name == "" || strings.Contains(h.Name, "\x00") {
		return h, fmt.Errorf("an entry without a name: %w", ErrFormat)
	}
	r.left, r.pad = h.Size, padding(h.Size)
	return h, nil
}

// header reads the next header; io.EOF where the archive says that it ends.
func (r *Reader) header() (*block, error) {
	var b block
	if err := r.full(b[:]); err != nil {
		return nil, err
	}
	if b == (block{}) {
		if err := r.full(b[:]); err != nil {
			return nil, err
		}
		if b != (block{}) {
			return nil, fmt.Errorf("an empty block among the entries: %w", ErrFormat)
		}
		return nil, io.EOF
	}
	want, err := number(b.field(sumField))
	unsigned, signed := b.sum()
	if err != nil || want != unsigned && want != signed {
		return nil, fmt.Errorf("a header's sum is not that of its bytes: %w", ErrFormat)
	}
	return &b, nil
}

// full reads all of p; the archive does not end there.
func (r *Reader) full(p []byte) error {
	_, err := io.ReadFull(r.r, p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) skip(n int64) error {
	m, err := io.CopyN(io.Discard, r.r, n)
	if err == io.EOF && m < n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) text(size int64) ([]byte, error) {
	if size > maxRecords {
		return nil, fmt.Errorf("%d bytes about one entry: %w", size, ErrFormat)
	}
	text := make([]byte, size)
	if err := r.full(text); err != nil {
		return nil, err
	}
	return text, r.skip(padding(size))
}

// records takes in a list of pax records.
func (x *extra) records(text []byte) error {
	for len(text) > 0 {
		digits, _, ok := bytes.Cut(text, []byte{' '})
		n, err := strconv.Atoi(string(digits))
		if !ok || err != nil || n <= len(digits)+1 || n > len(text) || text[n-1] != '\n' {
			return fmt.Errorf("a pax record is torn: %w", ErrFormat)
		}
		key, value, ok := strings.Cut(string(text[len(digits)+1:n-1]), "=")
		if !ok || key == "" {
			return fmt.Errorf("a pax record is torn: %w", ErrFormat)
		}
		text = text[n:]
		switch {
		case key == "path":
			x.name = value
		case key == "size":
			x.size, err = strconv.ParseInt(value, 10, 64)
			if x.sized = true; err != nil || x.size < 0 {
				return bad("size", []byte(value))
			}
		case key == "mtime":
			if x.when, err = timeOf(value); err != nil {
				return bad("time", []byte(value))
			}
		case strings.HasPrefix(key, "GNU.sparse."):
			x.other = true
		}
	}
	return nil
}

// timeOf reads seconds with a fraction, of which nanoseconds count.
func timeOf(s string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	nanos := int64(0)
	if fraction != "" {
		fraction = (fraction + "000000000")[:9]
		if nanos, err = strconv.ParseInt(fraction, 10, 64); err != nil || nanos < 0 {
			return time.Time{}, ErrFormat
		}
	}
	if strings.HasPrefix(whole, "-") {
		nanos = -nanos
	}
	return time.Unix(seconds, nanos), nil
}

// number reads digits in base 8, or GNU's numbers in base 256.
func number(field []byte) (int64, error) {
	if field[0]&0x80 != 0 {
		n := int64(field[0] & 0x3f)
		if negative := field[0]&0x40 != 0; negative {
			n -= 0x40
		}
		for _, c := range field[1:] {
			if n > 1<<54 || n < -1<<54 {
				return 0, ErrFormat
			}
			n = n<<8 | int64(c)
		}
		return n, nil
	}
	digits := strings.Trim(string(field), " \x00")
	if digits == "" {
		return 0, nil
	}
	return strconv.ParseInt(digits, 8, 64)
}

// textOf is the text of a field, to its first NUL.
func textOf(field []byte) string {
	text, _, _ := bytes.Cut(field, []byte{0})
	return string(text)
}

func bad(what string, field []byte) error {
	return fmt.Errorf("a %s of %q: %w", what, field, ErrFormat)
}
