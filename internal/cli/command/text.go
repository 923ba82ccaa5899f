package command

import (
	"bufio"
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
	dash := len(words) == 1 && words[0] == "-"
	if (dash || len(words) == 0) && HasText(os.Stdin) {
		return readStdin(c)
	}
	if dash || len(words) == 0 {
		return "", Usage("no text").WithHint("%s; or pipe it in", Example(c.Command))
	}
	if n := output.Waiting(os.Stdin, pipePatience); n > 0 {
		return "", Usage("a text and %d bytes on stdin: which of them is meant?", n).
			WithHint("leave the text out to send stdin, or put </dev/null behind the command to send the text")
	}
	text := strings.Join(words, " ")
	return text, CheckText(text)
}

// HasText reports whether text can come from f.
func HasText(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0)
}

// readStdin says that it reads where nothing comes. An interrupt ends the process.
func readStdin(c *cli.Context) (string, error) {
	slow := time.AfterFunc(stdinPatience, func() { Warn(c, "reading the text from stdin") })
	in := bufio.NewReader(os.Stdin)
	in.Peek(1)
	slow.Stop()
	return ReadText(in)
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
	what := ""
	switch {
	case strings.TrimSpace(s) == "":
		return Usage("the text is empty").WithHint("put the text behind the command, or pipe it in")
	case len(s) > MaxText:
		what = "is over 1 MiB"
	case !utf8.ValidString(s):
		what = "is not UTF-8"
	case strings.Contains(s, "\x00"):
		what = "has a NUL byte"
	default:
		return nil
	}
	return Usage("the text %s", what).WithHint("any bytes can go as a file: --attach FILE")
}
