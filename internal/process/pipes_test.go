//go:build linux || darwin

package process

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// A program on pipes has no terminal; what it writes is read to its end, also by a slow reader.
func TestPipes(t *testing.T) {
	c, err := Start(Command{Argv: []string{"sh", "-c", `read x; seq 10000; echo "$x" >&2; (: >/dev/tty) 2>/dev/null || exit 3`}, Pipes: true})
	must(t, err)
	fmt.Fprintln(c.Stdin, "told")
	said, err := io.ReadAll(c.Stdout)
	if err != nil || !strings.HasSuffix(string(said), "\n10000\n") {
		t.Errorf("it said %d bytes: %v", len(said), err)
	}
	<-c.Done()
	time.Sleep(2 * readGrace) // the reader is slow
	noted, err := io.ReadAll(c.Stderr)
	if err != nil || string(noted) != "told\n" || c.Exit() != (Exit{Code: 3}) {
		t.Errorf("it noted %q: %v; it ended with %+v", noted, err, c.Exit())
	}
	if _, err := c.Stdin.Write(make([]byte, 1<<20)); err == nil {
		t.Error("it is written to after its end")
	}
	if others, err := c.Stop(t.Context(), grace); len(others) > 0 || err != nil {
		t.Errorf("ended: %v, %v", others, err)
	}
}

// A pipe that a grandchild keeps open ends soon after the program.
func TestPipeKeptOpen(t *testing.T) {
	c, err := Start(Command{Argv: []string{"sh", "-c", `sleep 1000 & echo said`}, Pipes: true})
	must(t, err)
	defer c.Stop(t.Context(), grace)
	go io.Copy(io.Discard, c.Stderr)
	if said, err := io.ReadAll(c.Stdout); err != nil || string(said) != "said\n" {
		t.Errorf("it said %q: %v", said, err)
	}
}

// A helper's end kills what is left in its group.
func TestHelper(t *testing.T) {
	findsAll(t)
	nap := nap()
	run := func(script string) *Helper {
		h, err := StartHelper(Command{Argv: []string{"sh", "-c", strings.ReplaceAll(script, "NAP", nap)}}, io.Discard)
		must(t, err)
		return h
	}
	alone := run("sleep NAP & exit 9")
	if <-alone.Done(); alone.Exit() != (Exit{Code: 9}) {
		t.Errorf("it ended with %+v", alone.Exit())
	}
	killed := run("sleep NAP; :")
	killed.Kill()
	eventually(t, func() bool { return nappers(t, nap) == 0 }, func() string { return "both to be gone" })
	if _, err := StartHelper(Command{Argv: []string{"/nowhere"}}, io.Discard); err == nil {
		t.Error("what is not there was started")
	}
}
