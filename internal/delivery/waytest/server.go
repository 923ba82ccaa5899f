package waytest

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/coder/websocket"
)

// Serve serves a handler, which may be Messages, at a socket until the test ends.
func Serve(t *testing.T, h http.Handler) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ws") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return socket
}

// Messages takes the messages of each WebSocket connection, one after the other. The connection ends once it returns false.
type Messages func(conn *websocket.Conn, data []byte) (goesOn bool)

func (take Messages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		_, data, err := conn.Read(context.Background())
		if err != nil || !take(conn, data) {
			return
		}
	}
}
