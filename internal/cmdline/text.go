package cmdline

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxText is the most bytes that the text of a message may have.
const MaxText = 1 << 20

// stdinPatience is how long Text reads stdin without a byte before it says
// so.
const stdinPatience = 2 * time.Second

// Text returns the text of a message: the words joined by a space, or stdin
// where the only word is "-", or where there is none and stdin is a pipe, a
// socket or a regular file. A terminal, another device (/dev/null) and a
// closed descriptor are never read. It comes back as soon as the call is
// interrupted; the one goroutine that reads stdin then ends with the process.
func (c *Call) Text(words []string) (string, error) {
	if len(words) > 0 && !(len(words) == 1 && words[0] == "-") {
		return checked(strings.Join(words, " "))
	}
	if hasText(c.Stdin) {
		return c.readStdin()
	}
	if len(words) == 1 {
		return "", Usage("no text on stdin")
	}
	return "", Usage("no text")
}

// checked returns the text where it can be one.
func checked(text string) (string, error) {
	if err := CheckText(text); err != nil {
		return "", err
	}
	return text, nil
}

// hasText says whether f is something that text comes from.
func hasText(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	mode := info.Mode()
	return mode.IsRegular() || mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0 && mode&fs.ModeCharDevice == 0
}

// readStdin is ReadText of stdin with a word on stderr when nothing comes.
func (c *Call) readStdin() (string, error) {
	type result struct {
		text string
		err  error
	}
	began, done := make(chan struct{}), make(chan result, 1)
	go func() {
		text, err := ReadText(&announced{reader: c.Stdin, began: began})
		done <- result{text, err}
	}()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	for {
		select {
		case r := <-done:
			return r.text, r.err
		case <-began:
			timer.Stop()
			began = nil
		case <-timer.C:
			c.Warn("reading the text from stdin")
		case <-c.ctx.Done():
			return "", c.ctx.Err()
		}
	}
}

// announced closes began once the first read returns.
type announced struct {
	reader io.Reader
	began  chan struct{}
}

func (a *announced) Read(p []byte) (int, error) {
	n, err := a.reader.Read(p)
	if a.began != nil {
		close(a.began)
		a.began = nil
	}
	return n, err
}

// ReadText reads the text of a message to the end of r, at most a little over
// MaxText, takes one newline (\n or \r\n) off its end, and checks it.
func ReadText(r io.Reader) (string, error) {
	const enough = MaxText + len("\r\n") + 1
	data, err := io.ReadAll(io.LimitReader(r, int64(enough)))
	if err != nil {
		return "", Failed("reading the text: %w", err)
	}
	text := string(data)
	if cut, ok := strings.CutSuffix(text, "\n"); ok {
		text = strings.TrimSuffix(cut, "\r")
	}
	return checked(text)
}

// CheckText returns a usage error for what cannot be the text of a message:
// nothing but blanks, over MaxText, not UTF-8, or with a NUL.
func CheckText(s string) error {
	switch {
	case len(s) > MaxText:
		return Usage("the text is over 1 MiB").WithHint("put it into a file: --attach FILE")
	case !utf8.ValidString(s):
		return Usage("the text is not UTF-8").WithHint("any bytes go as a file: --attach FILE")
	case strings.IndexByte(s, 0) >= 0:
		return Usage("the text has a NUL byte").WithHint("any bytes go as a file: --attach FILE")
	case strings.TrimSpace(s) == "":
		return Usage("the text is empty")
	}
	return nil
}
