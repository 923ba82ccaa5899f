package control

import (
	"encoding/binary"
	"errors"
	"io"
)

// A frame's kind.
const (
	frameOutput = 'o'
	frameExit   = 'x'
	frameDetach = 'd' // either way: the end
	frameInput  = 'i'
	frameResize = 'r'
)

const (
	frameHead = 5
	// maxFrame bounds what a frame carries.
	maxFrame = 1 << 20
	// chunk is how much output one frame carries at most, so that the end of a
	// frame is never far.
	chunk = 32 << 10
)

// errFrame: what should be a frame is longer than one may be.
var errFrame = errors.New("a frame is over 1 MiB")

// appendFrame adds a frame to b. The payload is at most maxFrame long.
func appendFrame(b []byte, kind byte, payload []byte) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// readFrame reads the next frame into buf, which it grows where needed and
// returns; the payload is good until the next call. io.EOF: there was none.
func readFrame(r io.Reader, buf []byte) (kind byte, payload, grown []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, buf, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > maxFrame {
		return 0, nil, buf, errFrame
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	payload = buf[:n]
	if _, err := io.ReadFull(r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, buf, err
	}
	return head[0], payload, buf, nil
}
