package appserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/textproto"
	"sync"
	"time"
)

// A webSocket is the client's end of a WebSocket (RFC 6455) on a connection, for text messages without extensions. The
// libraries for it need net/http, with which atm would be a quarter larger, and each command and hook of it a tenth slower to
// start. One goroutine may read; writers may be several.
type webSocket struct {
	conn net.Conn
	in   *bufio.Reader

	writing sync.Mutex
}

// maxHandshake is how many bytes the server's answer to the handshake may have.
const maxHandshake = 64 << 10

// Kinds of frames.
const (
	frameMore  = 0 // goes on with the message
	frameText  = 1
	frameBytes = 2
	frameClose = 8
	framePing  = 9
	framePong  = 10

	isLast   = 0x80 // in a frame's first byte
	isMasked = 0x80 // in its second
)

// newWebSocket makes a WebSocket of a connection. After an error the connection is closed.
func newWebSocket(ctx context.Context, conn net.Conn) (*webSocket, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	limited := &io.LimitedReader{R: conn, N: maxHandshake}
	ws := &webSocket{conn: conn, in: bufio.NewReader(limited)}
	err := ws.shakeHands()
	if !stop() || err != nil {
		conn.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	limited.N = math.MaxInt64
	return ws, nil
}

func (ws *webSocket) shakeHands() error {
	random := make([]byte, 16)
	rand.Read(random)
	key := base64.StdEncoding.EncodeToString(random)
	_, err := fmt.Fprintf(ws.conn, "GET / HTTP/1.1\r\nHost: codex\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", key)
	if err != nil {
		return err
	}
	answer := textproto.NewReader(ws.in)
	status, err := answer.ReadLine()
	if err != nil {
		return err
	}
	header, err := answer.ReadMIMEHeader()
	if err != nil {
		return err
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return fmt.Errorf("it does not speak WebSocket: %s", status)
	}
	return nil
}

// read returns the next message. One longer than maxMessage is skipped: errTooLong.
func (ws *webSocket) read() ([]byte, error) {
	var message bytes.Buffer
	total := int64(0)
	for {
		kind, last, size, err := ws.readHeader()
		if err != nil {
			return nil, err
		}
		switch kind {
		case framePing, framePong, frameClose:
			if err := ws.control(kind, size); err != nil {
				return nil, err
			}
			continue
		case frameText, frameBytes, frameMore:
		default:
			return nil, fmt.Errorf("a frame of the unknown kind %d", kind)
		}
		if total += size; total > maxSkipped {
			return nil, fmt.Errorf("a message of over %d bytes", maxSkipped)
		}
		kept := min(size, max(0, maxMessage-int64(message.Len())))
		if _, err := io.CopyN(&message, ws.in, kept); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(io.Discard, ws.in, size-kept); err != nil {
			return nil, err
		}
		if last && total > maxMessage {
			return nil, errTooLong
		}
		if last {
			return message.Bytes(), nil
		}
	}
}

// readHeader reads what stands in front of a frame's content.
func (ws *webSocket) readHeader() (kind byte, last bool, size int64, err error) {
	var head [2]byte
	if _, err = io.ReadFull(ws.in, head[:]); err != nil {
		return 0, false, 0, err
	}
	kind, last, size = head[0]&0xf, head[0]&isLast != 0, int64(head[1]&^isMasked)
	if head[0]&0x70 != 0 || head[1]&isMasked != 0 {
		return 0, false, 0, errors.New("a frame with an extension, or masked")
	}
	long := map[int64]int{126: 2, 127: 8}[size]
	if long > 0 {
		var length [8]byte
		_, err = io.ReadFull(ws.in, length[8-long:])
		size = int64(min(binary.BigEndian.Uint64(length[:]), math.MaxInt32)) // over maxSkipped
	}
	if kind >= frameClose && (long > 0 || !last) {
		err = errors.Join(err, errors.New("a control frame that is long, or in pieces"))
	}
	return kind, last, size, err
}

// control does what a frame asks that has nothing of a message.
func (ws *webSocket) control(kind byte, size int64) error {
	content := make([]byte, size)
	if _, err := io.ReadFull(ws.in, content); err != nil {
		return err
	}
	switch kind {
	case frameClose:
		return fmt.Errorf("it hung up: %q", content[min(2, len(content)):]) // behind a number
	case framePing:
		return ws.writeFrame(framePong, content, time.Now().Add(timeout))
	}
	return nil
}

// write sends a message.
func (ws *webSocket) write(ctx context.Context, message []byte) error {
	until, _ := ctx.Deadline() // zero: it may take for ever
	return ws.writeFrame(frameText, message, until)
}

// writeFrame writes a whole frame. After an error nothing more can be written.
func (ws *webSocket) writeFrame(kind byte, content []byte, until time.Time) error {
	frame := []byte{kind | isLast, isMasked}
	switch size := len(content); {
	case size < 126:
		frame[1] |= byte(size)
	case size <= math.MaxUint16:
		frame[1] |= 126
		frame = binary.BigEndian.AppendUint16(frame, uint16(size))
	default:
		frame[1] |= 127
		frame = binary.BigEndian.AppendUint64(frame, uint64(size))
	}
	mask := make([]byte, 4)
	rand.Read(mask)
	frame = append(frame, mask...)
	for i, b := range content {
		frame = append(frame, b^mask[i%4])
	}
	ws.writing.Lock()
	defer ws.writing.Unlock()
	ws.conn.SetWriteDeadline(until)
	_, err := ws.conn.Write(frame)
	if err != nil {
		ws.conn.Close()
	}
	return err
}
