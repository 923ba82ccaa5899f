package command

import (
	"context"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/output"
)

// MaxText is the most bytes that the text of a message may have.
const MaxText = 1 << 20

// stdinPatience is how long stdin is read without a byte before that is said.
const stdinPatience = 2 * time.Second

// pipePatience is how long a pipe beside a text is given to bring something.
const pipePatience = 10 * time.Millisecond

// StdinText is the text of a message: the words joined by a space, or stdin
// where the only word is "-", or where there is none and stdin is a pipe or a
// file. A terminal, a device and a closed descriptor are never read. Words and a
// pipe with something in it are refused: one of them would be lost.
func StdinText(c *cli.Context, words []string) (string, error) {
	if len(words) == 1 && words[0] == "-" || len(words) == 0 && hasText(os.Stdin) {
		return readStdin(c)
	}
	if len(words) == 0 {
		example, _, _ := strings.Cut(c.Command.UsageText, "\n")
		return "", Usage("no text").WithHint("%s; or pipe it in", example)
	}
	if n := output.Waiting(os.Stdin, pipePatience); n > 0 {
		return "", Usage("a text and %d bytes on stdin: which of them is meant?", n).
			WithHint("leave the text out to send stdin, or put </dev/null behind the command to send the text")
	}
	text := strings.Join(words, " ")
	return text, CheckText(text)
}

// hasText reports whether text can come from f.
func hasText(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	mode := info.Mode()
	return mode.IsRegular() || mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0 && mode&fs.ModeCharDevice == 0
}

// readStdin comes back as soon as the command is interrupted; the goroutine that
// reads then ends with the process.
func readStdin(c *cli.Context) (string, error) {
	if !hasText(os.Stdin) {
		return "", Usage("no text on stdin").WithHint("pipe it in: echo \"text\" | %s …", c.Command.HelpName)
	}
	type result struct {
		text string
		err  error
	}
	began, done := make(chan struct{}), make(chan result, 1)
	go func() {
		text, err := ReadText(&announcing{Reader: os.Stdin, began: began})
		done <- result{text, err}
	}()
	ctx, stop := Interruptible(c.Context)
	defer stop()
	slow := time.NewTimer(stdinPatience)
	defer slow.Stop()
	for {
		select {
		case r := <-done:
			return r.text, r.err
		case <-began:
			slow.Stop()
			began = nil
		case <-slow.C:
			Warn(c, "reading the text from stdin")
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// announcing closes began once the first read returns.
type announcing struct {
	io.Reader
	began chan struct{}
}

func (a *announcing) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if a.began != nil {
		close(a.began)
		a.began = nil
	}
	return n, err
}

// ReadText reads a text to its end, takes one line feed (\n or \r\n) off it and
// checks it.
func ReadText(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxText+3))
	if err != nil {
		return "", Failed("read the text: %w", err)
	}
	text, found := strings.CutSuffix(string(data), "\n")
	if found {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, CheckText(text)
}

// CheckText refuses what cannot be the text of a message.
func CheckText(s string) error {
	if len(s) > MaxText {
		return Usage("the text is over 1 MiB").WithHint("send it as a file: --attach FILE")
	}
	if !utf8.ValidString(s) {
		return Usage("the text is not UTF-8").WithHint("any bytes can go as a file: --attach FILE")
	}
	if strings.Contains(s, "\x00") {
		return Usage("the text has a NUL byte").WithHint("any bytes can go as a file: --attach FILE")
	}
	if strings.TrimSpace(s) == "" {
		return Usage("the text is empty").WithHint("put the text behind the command, or pipe it in")
	}
	return nil
}
