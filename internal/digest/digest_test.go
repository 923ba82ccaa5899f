package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestLengths compares both with the library's, around every length at which a
// block ends.
func TestLengths(t *testing.T) {
	data := make([]byte, 4*block+3)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	for n := range data {
		if got, want := Sum256(data[:n]), sha256.Sum256(data[:n]); got != want {
			t.Errorf("SHA-256 of %x: %x, not %x", data[:n], got, want)
		}
		if got, want := CRC32(data[:n]), crc32.ChecksumIEEE(data[:n]); got != want {
			t.Errorf("CRC-32 of %x: %x, not %x", data[:n], got, want)
		}
	}
}

// TestLong ends a text of more bits than 32 of them can count: the library is
// told that it has seen as many.
func TestLong(t *testing.T) {
	const size = 1<<33 + block
	want := sha256.New()
	saved := binary.BigEndian.AppendUint32(nil, 0x73686103) // "sha", 3
	for _, v := range initial {
		saved = binary.BigEndian.AppendUint32(saved, v)
	}
	saved = append(saved, make([]byte, block)...)
	saved = binary.BigEndian.AppendUint64(saved, size)
	if err := want.(encoding.BinaryUnmarshaler).UnmarshalBinary(saved); err != nil {
		t.Fatal(err)
	}
	want.Write([]byte("abc"))
	h := SHA256{state: initial, begun: true, size: size}
	h.Write([]byte("abc"))
	if got := h.Sum(); !bytes.Equal(got[:], want.Sum(nil)) {
		t.Errorf("%x", got)
	}
}

// FuzzSHA256 hashes a text in pieces: the sum so far is right after each, and
// asking for it changes nothing.
func FuzzSHA256(f *testing.F) {
	f.Add([]byte("abc"), uint64(1))
	f.Add([]byte(strings.Repeat("x", 200)), uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var h SHA256
		for done := 0; ; {
			if got, want := h.Sum(), sha256.Sum256(data[:done]); got != want {
				t.Fatalf("after %d bytes: %x, not %x", done, got, want)
			}
			if got, want := CRC32(data[:done]), crc32.ChecksumIEEE(data[:done]); got != want {
				t.Fatalf("after %d bytes: %x, not %x", done, got, want)
			}
			if done == len(data) {
				return
			}
			n := 1 + r.IntN(min(len(data)-done, 150))
			h.Write(data[done : done+n])
			done += n
		}
	})
}

func BenchmarkSHA256(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Sum256(data)
	}
}

func BenchmarkCRC32(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		CRC32(data)
	}
}
