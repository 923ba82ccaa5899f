//go:build unix

package web

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server that is slow to be reached still runs: its address is printed, and stays known.
func TestTokenOfSlowServer(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	s.web("--no-open")
	file := s.webFile()
	data, err := os.ReadFile(file)
	must(t, err)
	var e entrance
	must(t, json.Unmarshal(data, &e))
	e.At = fullListener(t)
	data, err = json.Marshal(e)
	must(t, err)
	must(t, os.WriteFile(file, data, 0o600))
	for range 2 {
		if got := s.Atm("web", "--token"); !strings.HasPrefix(got, e.URL) {
			t.Fatal(got)
		}
	}
}

// fullListener returns the address of a listener that nobody accepts from, with as many connections as fit.
func fullListener(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	must(t, err)
	address := fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
}
