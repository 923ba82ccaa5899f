package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type entry struct {
	Header
	Body string
}

var names = rapid.OneOf(
	rapid.StringMatching(`[a-z]{1,8}(/[a-zA-Z0-9._-]{1,60}){0,5}`),
	rapid.StringMatching(`[a-z/]{1,20}/[a-z0-9-]{95,130}`),
	rapid.StringMatching(`(日本|é|x| |\n|=){1,60}`),
)

func entries(t *rapid.T) []entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
		e := entry{Body: rapid.StringN(0, 300, 1500).Draw(t, "body")}
		e.Name = strings.Trim(names.Draw(t, "name"), "/")
		if e.Name == "" {
			e.Name = "x"
		}
		e.Size = int64(len(e.Body))
		e.ModTime = time.Unix(rapid.Int64Range(-1<<33, 1<<34).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanos"))
		if rapid.Bool().Draw(t, "dir") {
			e.Kind, e.Body, e.Size, e.Name = Dir, "", 0, e.Name+"/"
		}
		return e
	}), 0, 6).Draw(t, "entries")
}

func write(t rapid.TB, all []entry) []byte {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, e := range all {
		if err := w.Header(e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.Body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(from io.Reader) (all []entry, err error) {
	r := NewReader(from)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return all, err
		}
		all = append(all, entry{h, string(body)})
	}
}

// theirs is what archive/tar reads.
func theirs(from io.Reader) (all []entry, err error) {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return all, err
		}
		e := entry{Header{Name: h.Name, Kind: Other, Size: h.Size, ModTime: h.ModTime}, string(body)}
		switch h.Typeflag {
		case tar.TypeReg:
			e.Kind = File
		case tar.TypeDir:
			e.Kind = Dir
		}
		all = append(all, e)
	}
}

var same = cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })

// What is written is read again, by us and by archive/tar.
func TestWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := entries(t)
		archive := write(t, all)
		if len(archive)%blockSize != 0 {
			t.Fatalf("%d bytes", len(archive))
		}
		for who, f := range map[string]func(io.Reader) ([]entry, error){"we": read, "archive/tar": theirs} {
			got, err := f(bytes.NewReader(archive))
			if err != nil {
				t.Fatalf("%s: %v", who, err)
			}
			if diff := cmp.Diff(all, got, same); len(all) > 0 && diff != "" {
				t.Fatalf("%s read\n%s", who, diff)
			}
		}
	})
}

// What archive/tar writes in each of its formats is read.
func TestTheirs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		n := 1
		for _, e := range entries(t) {
			h := &tar.Header{Name: e.Name, Size: e.Size, Mode: 0o640, ModTime: e.ModTime, Typeflag: tar.TypeReg, Uid: 1000, Uname: "bob"}
			if e.Kind == Dir {
				h.Typeflag = tar.TypeDir
			}
			h.Format = rapid.SampledFrom([]tar.Format{tar.FormatPAX, tar.FormatGNU, tar.FormatUSTAR, tar.FormatUnknown}).Draw(t, "format")
			if w.WriteHeader(h) != nil {
				continue // not in this format
			}
			io.WriteString(w, e.Body)
			n++
		}
		w.WriteHeader(&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("to/", 60)})
		w.Close()
		want, err := theirs(bytes.NewReader(out.Bytes()))
		if err != nil || len(want) != n {
			t.Fatal(len(want), err)
		}
		got, err := read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatal(diff)
		}
	})
}

// An archive that was cut off says so wherever that was.
func TestCut(t *testing.T) {
	archive := write(t, []entry{{Header{Name: "a/" + strings.Repeat("n", 120), Size: 700, ModTime: time.Unix(1, 5)}, strings.Repeat("x", 700)}, {Header{Name: "d/", Kind: Dir}, ""}})
	for n := range archive {
		if _, err := read(bytes.NewReader(archive[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(archive), err)
		}
	}
}

// A byte that changed in a header is noticed.
func TestDamaged(t *testing.T) {
	archive := write(t, []entry{{Header{Name: "a", Size: 3}, "abc"}})
	for i := range blockSize {
		b := bytes.Clone(archive)
		b[i] ^= 1
		all, err := read(bytes.NewReader(b))
		if err == nil && (i < sumField.from || i >= sumField.to) {
			t.Fatalf("byte %d: %+v", i, all)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter(io.Discard)
	for _, h := range []Header{{}, {Name: "a\x00b"}, {Name: "a", Size: -1}, {Name: "a", Kind: Other}, {Name: "d/", Kind: Dir, Size: 1}} {
		if err := w.Header(h); !errors.Is(err, ErrFormat) {
			t.Errorf("%+v: %v", h, err)
		}
	}
	if err := w.Header(Header{Name: "a", Size: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("abc")); err == nil {
		t.Error("more was written than the header says")
	}
	w.Write([]byte("a"))
	if w.Header(Header{Name: "b"}) == nil || w.Close() == nil {
		t.Error("less was written than the header says")
	}
}

// A file of more than 8 GiB has its size in pax's records.
func TestLarge(t *testing.T) {
	const size = 1 << 34
	var out bytes.Buffer
	w := NewWriter(&out)
	if err := w.Header(Header{Name: "large", Size: size}); err != nil {
		t.Fatal(err)
	}
	h, err := NewReader(bytes.NewReader(out.Bytes())).Next()
	if err != nil || h.Size != size {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := tar.NewReader(&out).Next(); err != nil || h.Size != size {
		t.Errorf("archive/tar: %+v, %v", h, err)
	}
}

// Whatever is read, nothing panics and nothing is larger than it says; and where
// both understand an archive, archive/tar reads the same.
func FuzzRead(f *testing.F) {
	f.Add(write(f, []entry{{Header{Name: "a/é", Size: 3, ModTime: time.Unix(1, 5)}, "abc"}, {Header{Name: "d/", Kind: Dir}, ""}}))
	for _, format := range []tar.Format{tar.FormatGNU, tar.FormatUSTAR} {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		w.WriteHeader(&tar.Header{Name: strings.Repeat("n/", 60) + "x", Size: 2, Mode: 0o600, ModTime: time.Unix(9, 0), Format: format})
		io.WriteString(w, "ab")
		w.Close()
		f.Add(out.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, err := read(bytes.NewReader(data))
		for _, e := range ours {
			if e.Name == "" || int64(len(e.Body)) != e.Size {
				t.Fatalf("%+v", e)
			}
		}
		if err != nil {
			return
		}
		others, err := theirs(bytes.NewReader(data))
		if err != nil {
			return
		}
		for i := range min(len(ours), len(others)) {
			a, b := ours[i], others[i]
			if a.Kind == File && b.Kind == File && (a.Name != b.Name || a.Body != b.Body) {
				t.Fatal(cmp.Diff(a, b, same), fmt.Sprint(len(data)))
			}
		}
	})
}
