package appserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// frames are a socket that has received these bytes.
func frames(in string) *webSocket {
	ours, theirs := net.Pipe()
	go io.Copy(io.Discard, theirs)
	return &webSocket{conn: ours, in: bufio.NewReader(strings.NewReader(in))}
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", maxMessage)
	size := func(n int) string {
		return fmt.Sprintf("\x7f%s", []byte{0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for name, test := range map[string]struct{ in, want, err string }{
		"one":              {in: "\x81\x02hi", want: "hi"},
		"empty":            {in: "\x81\x00", want: ""},
		"of bytes":         {in: "\x82\x02hi", want: "hi"},
		"of 300 bytes":     {in: "\x81\x7e\x01\x2c" + long[:300], want: long[:300]},
		"in pieces":        {in: "\x01\x01h\x89\x01p\x00\x00\x80\x01i", want: "hi"}, // and a ping between them
		"as long as may":   {in: "\x81" + size(maxMessage) + long, want: long},
		"too long":         {in: "\x81" + size(maxMessage+1) + long + "x", err: errTooLong.Error()},
		"too long pieces":  {in: "\x01" + size(maxMessage) + long + "\x80\x01x", err: errTooLong.Error()},
		"beyond all":       {in: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", err: "a message of over"},
		"hung up":          {in: "\x88\x05\x03\xe8bye", err: `it hung up: "bye"`},
		"hung up mutely":   {in: "\x88\x00", err: `it hung up: ""`},
		"masked":           {in: "\x81\x82....hi", err: "masked"},
		"compressed":       {in: "\xc1\x02hi", err: "extension"},
		"of another kind":  {in: "\x83\x02hi", err: "kind 3"},
		"a long ping":      {in: "\x89\x7e\x01\x00", err: "control frame"},
		"a ping in pieces": {in: "\x09\x01p", err: "control frame"},
		"cut short":        {in: "\x81\x05hi", err: "EOF"},
		"nothing":          {in: "", err: "EOF"},
	} {
		got, err := frames(test.in).read()
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("a message %s: %v, want the error %q", name, err, test.err)
		}
		if string(got) != test.want {
			t.Errorf("a message %s is %.20q, want %.20q", name, got, test.want)
		}
	}
}

// A message that was skipped leaves the next one as it is, and a ping is answered with what is in it.
func TestFramesFollow(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	ws := &webSocket{conn: ours, in: bufio.NewReader(ours)}
	go func() {
		theirs.Write(append([]byte("\x81\x7f\x00\x00\x00\x00\x00\x40\x00\x01"), bytes.Repeat([]byte("x"), maxMessage+1)...))
		theirs.Write([]byte("\x89\x04ping"))
		pong := make([]byte, 10)
		io.ReadFull(theirs, pong)
		for i := range pong[6:] {
			pong[6+i] ^= pong[2+i]
		}
		if pong[0] != framePong|isLast || pong[1] != 0x84 {
			t.Errorf("a pong begins with % x", pong[:2])
		}
		theirs.Write(append([]byte("\x81\x04"), pong[6:]...))
	}()
	if _, err := ws.read(); err != errTooLong {
		t.Fatal(err)
	}
	if got, err := ws.read(); err != nil || string(got) != "ping" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHandshake(t *testing.T) {
	for name, answer := range map[string]string{
		"of a web server":     "HTTP/1.1 200 OK\r\n\r\n",
		"with another's key":  "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"without an end":      "HTTP/1.1 101 Switching Protocols\r\nX: " + strings.Repeat("x", maxHandshake),
		"that is none at all": "\r\n",
	} {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		go func() {
			theirs.Write([]byte(answer))
			if name == "that is none at all" {
				theirs.Close()
			}
		}()
		if ws, err := newWebSocket(t.Context(), ours); err == nil {
			t.Errorf("an answer %s makes a WebSocket: %v", name, ws)
		}
		theirs.Close()
	}
	ours, _ := net.Pipe() // to somebody who says nothing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newWebSocket(ctx, ours); err == nil {
		t.Error("a handshake goes on after its context")
	}
}
