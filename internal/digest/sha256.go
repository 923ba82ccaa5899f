// Package digest has the two checksums of the format, SHA-256 and the IEEE
// CRC-32, as FIPS 180-4 and RFC 1952 define them.
//
// crypto/sha256 and hash/crc32 do the same faster, and a command that hashes
// forty bytes pays for that at its start: the first brings the whole of Go's FIPS
// 140 module with it, random bit generators and self-tests included, the second
// makes its tables. Without the two, a start takes a twenty-fifth less, and only
// attachments of many megabytes take longer (the tests compare both with the
// library's).
package digest

import (
	"encoding/binary"
	"math/bits"
)

// Size is how many bytes a SHA-256 has.
const Size = 32

const block = 64

// SHA256 is a SHA-256 that is being made: an io.Writer that never fails. Not
// for concurrent use. The zero value has seen nothing.
type SHA256 struct {
	state [8]uint32 // of what was hashed; only once length > 0
	room  [block]byte
	held  int // of room
	size  uint64
	begun bool
}

// Sum256 is the SHA-256 of data.
func Sum256(data []byte) [Size]byte {
	var h SHA256
	h.Write(data)
	return h.Sum()
}

// Write hashes more.
func (h *SHA256) Write(p []byte) (int, error) {
	h.begin()
	n := len(p)
	h.size += uint64(n)
	if h.held > 0 {
		took := copy(h.room[h.held:], p)
		if h.held += took; h.held < block {
			return n, nil
		}
		mix(&h.state, h.room[:])
		p, h.held = p[took:], 0
	}
	whole := len(p) - len(p)%block
	mix(&h.state, p[:whole])
	h.held = copy(h.room[:], p[whole:])
	return n, nil
}

func (h *SHA256) begin() {
	if !h.begun {
		h.begun, h.state = true, initial
	}
}

// Sum is the hash of what was written so far.
func (h SHA256) Sum() (sum [Size]byte) {
	h.begin()
	bits := h.size << 3
	var pad [2 * block]byte
	end := copy(pad[:], h.room[:h.held])
	pad[end] = 0x80
	last := pad[:block]
	if h.held >= block-8 {
		last = pad[:]
	}
	binary.BigEndian.PutUint64(last[len(last)-8:], bits)
	mix(&h.state, last)
	for i, v := range h.state {
		binary.BigEndian.PutUint32(sum[4*i:], v)
	}
	return sum
}

// The first 32 bits of the fractional parts of the square roots of the first 8
// primes.
var initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// Those of the cube roots of the first 64.
var rounds = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// mix hashes whole blocks (FIPS 180-4, 6.2.2).
func mix(state *[8]uint32, p []byte) {
	var w [64]uint32
	for ; len(p) >= block; p = p[block:] {
		for i := range 16 {
			w[i] = binary.BigEndian.Uint32(p[4*i:])
		}
		for i := 16; i < 64; i++ {
			x, y := w[i-2], w[i-15]
			w[i] = (bits.RotateLeft32(x, -17) ^ bits.RotateLeft32(x, -19) ^ x>>10) + w[i-7] +
				(bits.RotateLeft32(y, -7) ^ bits.RotateLeft32(y, -18) ^ y>>3) + w[i-16]
		}
		a, b, c, d, e, f, g, h := state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
		for i := range 64 {
			one := h + (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)) + (e&f ^ ^e&g) + rounds[i] + w[i]
			two := (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)) + (a&b ^ a&c ^ b&c)
			a, b, c, d, e, f, g, h = one+two, a, b, c, d+one, e, f, g
		}
		state[0], state[1], state[2], state[3] = state[0]+a, state[1]+b, state[2]+c, state[3]+d
		state[4], state[5], state[6], state[7] = state[4]+e, state[5]+f, state[6]+g, state[7]+h
	}
}
