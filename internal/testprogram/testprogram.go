// Package testprogram builds programs for tests that run them, and takes the place of a runner that hangs.
package testprogram

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
)

// Main builds commands into a directory, which it notes in dir, runs the tests of a package, and ends the process.
func Main(m *testing.M, dir *string, commands ...string) {
	code := 1
	if err := build(dir, commands); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(*dir)
	os.Exit(code)
}

func build(dir *string, commands []string) (err error) {
	if *dir, err = os.MkdirTemp("", "atm-test-programs"); err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"build", "-tags", "urfave_cli_no_docs", "-ldflags=-w", "-o", *dir + "/"}, commands...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %v\n%s", err, out)
	}
	return nil
}

// Hang makes the socket of a runner that does not answer, in its agent's run directory. asked is called when a question
// begins and ends; nil: nobody wants to know.
func Hang(t *testing.T, run string, asked func(bool)) {
	t.Helper()
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(run) // the path may be too long for a socket
	l, err := net.Listen("unix", "control.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if asked == nil {
		asked = func(bool) {}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked(true)
			go func() {
				io.Copy(io.Discard, conn)
				asked(false)
			}()
		}
	}()
}
