//go:build linux || darwin

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// sendLines starts a batch whose stderr is given, sends lines to it until isEnough, interrupts it, and returns how many
// lines it has read, by its stdout.
func (s *stage) sendLines(stderr *os.File, isEnough func() bool) (lines int) {
	s.t.Helper()
	out := filepath.Join(s.t.TempDir(), "out")
	stdout, err := os.Create(out)
	must(s.t, err)
	defer stdout.Close()
	c := s.command("send", "--batch", "--as", "alice")
	c.Stdout, c.Stderr = stdout, stderr
	stdin, err := c.StdinPipe()
	must(s.t, err)
	must(s.t, c.Start())
	read := func() int {
		text, _ := os.ReadFile(out)
		return bytes.Count(text, []byte("\n"))
	}
	if !within(3*time.Minute, func() bool {
		lines++
		fmt.Fprintf(stdin, `{"to":"bob","body":"message %d","once":"%[1]d"}`+"\n", lines)
		return isEnough()
	}) {
		s.t.Error("no progress is shown")
	}
	within(3*time.Minute, func() bool { return read() == lines })
	must(s.t, c.Process.Signal(os.Interrupt)) // it waits for more
	if err, isExit := c.Wait().(*exec.ExitError); !isExit || err.ExitCode() != 130 {
		s.t.Errorf("it ends with %v", err)
	}
	return lines
}

// Long work shows on a terminal how far it is, in one line that goes with the next. What is interrupted says how to go on.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	master, slave, err := pty.Open()
	must(t, err)
	defer master.Close()
	defer slave.Close()
	w := &window{t: t, master: master}
	go w.read()
	shown := regexp.MustCompile(`^\r\x1b\[Ksent \d+ messages`)
	n := s.sendLines(slave, func() bool { return shown.MatchString(w.String()) })
	w.shows("\r\x1b[Katm: interrupted: sent " + fmt.Sprint(n) + " messages, of the first " + fmt.Sprint(n) + " lines\r\n")
	w.shows(fmt.Sprintf("hint: to send the rest: tail -n +%d FILE | atm send --batch --as alice", n+1))

	// Not in a pipe; and a name for each line keeps one that is sent again from being there twice.
	r, pipe, err := os.Pipe()
	must(t, err)
	lines := 0
	s.sendLines(pipe, func() bool { lines++; return lines > n })
	pipe.Close()
	text := new(bytes.Buffer)
	text.ReadFrom(r)
	if strings.Contains(text.String(), "\x1b") || !strings.HasPrefix(text.String(), "atm: interrupted: sent ") {
		t.Errorf("%q", text)
	}
	if out := s.atm(0, "ls", "bob", "--count"); out != fmt.Sprintln(lines) {
		t.Errorf("%s messages of %d", out, lines)
	}
}
