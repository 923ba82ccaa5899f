package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a client sends, a request that is taken is within bounds, and is the
// same after another way through JSON.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"op":"screen","ansi":true,"last":50}`, `{"op":"type","text":"hi","enter":true}`, `{"op":"type","bytes":"/w=="}`,
		`{"op":"answer","id":"a","option":"1","deny":true,"reason":"no","by":"me"}`, `{"op":"stop","grace_ms":100}`,
		`{"op":"attach","cols":80,"rows":24,"read_only":true}`, `{"op":"attach","cols":-1}`, `{"op":"x"}`, `[]`, "{\"op\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decodeRequest(line)
		if err != nil {
			if err.Code != "usage" || err.Message == "" {
				t.Fatalf("%+v", err)
			}
			encodeAnswer(nil, err)
			return
		}
		if r.Last < 0 || r.GraceMS < 0 || r.Op == opAttach && !(Size{r.Cols, r.Rows}).valid() {
			t.Fatalf("%+v", r)
		}
		again, _ := json.Marshal(r)
		if q, err := decodeRequest(again); err != nil || !cmp.Equal(q, r) {
			t.Fatalf("%+v %v", q, err)
		}
	})
}

// Whatever comes, reading frames ends, never reads too much at once, and what
// was read is what was there.
func FuzzFrames(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, frameInput, []byte("ls\r")), frameResize, []byte(`{"cols":80,"rows":24}`)))
	f.Add(appendFrame(nil, 'z', bytes.Repeat([]byte("x"), 70_000)))
	f.Add([]byte{'o', 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte("o\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		r := bytes.NewReader(p)
		var buf, again []byte
		for {
			kind, payload, grown, err := readFrame(r, buf)
			if err != nil {
				if errors.Is(err, io.EOF) && len(again) != len(p) {
					t.Fatalf("ended after %d of %d bytes", len(again), len(p))
				}
				break
			}
			again, buf = appendFrame(again, kind, payload), grown
		}
		if !bytes.HasPrefix(p, again) {
			t.Fatalf("%q became %q", p, again)
		}
	})
}

// Whatever its pieces, a viewer's input is the frames' and no panic.
func FuzzViewerInput(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, frameInput, []byte("a")), frameDetach, nil), false)
	f.Add(appendFrame(nil, frameResize, []byte(`{"cols":0,"rows":-1}`)), true)
	f.Fuzz(func(t *testing.T, p []byte, readOnly bool) {
		v := newViewer(nil)
		go v.read(t.Context(), bufio.NewReader(bytes.NewReader(p)), readOnly)
		for in := range v.Input() {
			switch {
			case len(in.Bytes) > 0 && (readOnly || in.Size != Size{}):
				t.Fatalf("%+v", in)
			case len(in.Bytes) == 0 && !in.Size.valid():
				t.Fatalf("%+v", in)
			}
		}
	})
}

func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("one\r\n\n"+strings.Repeat("x", 100)+"\ntorn"), 16)
	for _, want := range []string{"one", "", strings.Repeat("x", 100)} {
		if line, err := readLine(r, 200); err != nil || string(line) != want {
			t.Errorf("%q %v", line, err)
		}
	}
	if _, err := readLine(r, 200); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := readLine(r, 200); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := readLine(bufio.NewReader(strings.NewReader("12345\n")), 4); !errors.Is(err, errLong) {
		t.Error(err)
	}
}
