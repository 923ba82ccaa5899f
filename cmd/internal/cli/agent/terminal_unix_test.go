//go:build unix

package agent

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// A deferred close restores the terminal after a panic.
func TestTerminalPanic(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		_, _, restore, err := openTerminal(slave, slave)
		if err != nil {
			t.Fatal(err)
		}
		defer restore()
		slave.WriteString("\x1b[?25l")
		panic("oh")
	}()
	after, err := term.GetState(int(slave.Fd()))
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Error("the terminal is not as it was", err)
	}
	master.SetReadDeadline(time.Now().Add(time.Minute))
	var shown []byte
	for !bytes.Contains(shown, []byte("\x1b[?25h")) {
		buf := make([]byte, 1000)
		n, err := master.Read(buf)
		if err != nil {
			t.Fatalf("%q: %v", shown, err)
		}
		shown = append(shown, buf[:n]...)
	}
}
