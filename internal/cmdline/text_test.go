package cmdline

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// ask returns an App whose verb prints its text in brackets.
func ask(stdin *os.File) *App {
	a := one(func(ctx context.Context, c *Call) error {
		c.patience = 20 * time.Millisecond
		text, err := c.Text(c.Args)
		if err != nil {
			return err
		}
		_, err = c.Stdout.WriteString("[" + text + "]")
		return err
	})
	a.Stdin = stdin
	return a
}

// pipe returns a pipe with text in it and its end closed.
func pipe(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	go func() {
		defer w.Close()
		io.WriteString(w, text)
	}()
	return r
}

func TestText(t *testing.T) {
	const form = "\natm: hint: atm do --help\n"
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	attach := "\natm: hint: any bytes go as a file: --attach FILE\n"
	for _, test := range []struct {
		name  string
		stdin *os.File
		args  []string
		want  result
	}{
		{"words", null, []string{"the", "parser ", "is"}, result{0, "[the parser  is]", ""}},
		{"words beat a pipe", pipe(t, "no"), []string{"yes"}, result{0, "[yes]", ""}},
		{"- among words", pipe(t, "no"), []string{"a", "-"}, result{0, "[a -]", ""}},
		{"a pipe", pipe(t, "a\nb\n\n"), nil, result{0, "[a\nb\n]", ""}},
		{"CRLF", pipe(t, "a\r\nb\r\n"), nil, result{0, "[a\r\nb]", ""}},
		{"a lone CR stays", pipe(t, "a\r"), nil, result{0, "[a\r]", ""}},
		{"-", pipe(t, "piped"), []string{"-"}, result{0, "[piped]", ""}},
		{"a file", file, nil, result{0, "[from a file]", ""}},
		{"/dev/null", null, nil, result{2, "", "atm: no text" + form}},
		{"- from /dev/null", null, []string{"-"}, result{2, "", "atm: no text on stdin" + form}},
		{"closed", closed, nil, result{2, "", "atm: no text" + form}},
		{"a directory", dir, nil, result{2, "", "atm: no text" + form}},
		{"empty", pipe(t, ""), nil, result{2, "", "atm: the text is empty" + form}},
		{"blank", pipe(t, " \n\t\n"), nil, result{2, "", "atm: the text is empty" + form}},
		{"blank word", null, []string{" "}, result{2, "", "atm: the text is empty" + form}},
		{"not UTF-8", pipe(t, "\xff"), nil, result{2, "", "atm: the text is not UTF-8" + attach}},
		{"not UTF-8 word", null, []string{"\xff"}, result{2, "", "atm: the text is not UTF-8" + attach}},
		{"NUL", pipe(t, "a\x00b"), nil, result{2, "", "atm: the text has a NUL byte" + attach}},
		{"too much", pipe(t, strings.Repeat("x", MaxText+1)), nil, result{2, "", "atm: the text is over 1 MiB\natm: hint: put it into a file: --attach FILE\n"}},
		{"far too much", pipe(t, strings.Repeat("\n", 3*MaxText)), nil, result{2, "", "atm: the text is over 1 MiB\natm: hint: put it into a file: --attach FILE\n"}},
		{"the most", pipe(t, strings.Repeat("x", MaxText)+"\r\n"), nil, result{0, "[" + strings.Repeat("x", MaxText) + "]", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := run(t, t.Context(), ask(test.stdin), append([]string{"do"}, test.args...)...); got != test.want {
				t.Errorf("got  %.200v\nwant %.200v", got, test.want)
			}
		})
	}
}

// Agents' harnesses hand over sockets for stdin.
func TestTextFromASocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets as files")
	}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	there, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	file, err := here.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	io.WriteString(there, "by socket")
	there.Close()
	if got := run(t, t.Context(), ask(file), "do"); got.out != "[by socket]" {
		t.Errorf("%v", got)
	}
}

// What waits says so, once, and Ctrl-C ends it.
func TestTextWaits(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, nil)
		defer cancel()
		interrupted, interrupt := context.WithCancel(t.Context())
		context.AfterFunc(ctx, interrupt)
		args, want := []string{"do"}, result{130, "", "atm: reading the text from stdin\n"}
		if quiet {
			args, want = []string{"do", "--quiet"}, result{exit: 130}
		}
		if got := run(t, interrupted, ask(r), args...); got != want {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		w.Close()
		r.Close()
	}
}

// A first byte is enough to wait in silence for the rest.
func TestTextBegins(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	io.WriteString(w, "slow")
	time.AfterFunc(100*time.Millisecond, func() { io.WriteString(w, "ly\n"); w.Close() })
	if got := run(t, t.Context(), ask(r), "do"); got != (result{0, "[slowly]", ""}) {
		t.Errorf("%v", got)
	}
}

func TestTextBreaks(t *testing.T) {
	broken := errors.New("broken")
	_, err := ReadText(io.MultiReader(strings.NewReader("a"), errReader{broken}))
	if !errors.Is(err, broken) || err.(*Error).Exit != ExitFailed {
		t.Errorf("%v", err)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }
