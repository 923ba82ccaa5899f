package command

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

const (
	stdinPatience = 2 * time.Second       // without a byte, until Warn says that stdin is being read
	pipePatience  = 10 * time.Millisecond // for data in a pipe beside a text
)

// MessageFlag is the --message of a verb that takes a text.
func MessageFlag() cli.Flag {
	return &cli.StringFlag{Name: "message", Aliases: []string{"m"}, Category: "body text content", Usage: "`TEXT` as a flag"}
}

// ChoiceFlag is the --choice of a verb that asks; without a usage it is hidden.
func ChoiceFlag(usage string) cli.Flag {
	return cmdline.ListFlag("choice", usage, "choices", "option", "options")
}

// TextTwice is the error for a text beside one in a flag.
func TextTwice(word string) *failure.Error {
	return failure.Usage("the text is given twice: as a flag and as %q", word).WithHint("leave one out; a title is --subject, a file beside the text --attach FILE")
}

// MessageText returns the text of a message: that of --message; or the words joined by spaces; or stdin, if the only
// word is "-" or there is none and stdin is a pipe or a file. It never reads a terminal, a device or a closed
// descriptor. NotPiped applies to words.
func MessageText(c *cli.Context, words []string) (string, error) {
	if c.IsSet("message") {
		if len(words) > 0 {
			return "", TextTwice(words[0])
		}
		words = []string{c.String("message")}
	}
	text := strings.Join(words, " ")
	if len(words) > 0 && text != "-" {
		return text, cmp.Or(NotPiped(c.App.Reader), app.CheckText(text))
	}
	p := PrinterOf(c)
	if !HasText(p.In) {
		return "", failure.Usage("no text").WithHint("%s; or pipe it in", cmdline.LineOf(c).Completed())
	}
	if err := p.CheckStdin(); err != nil {
		return "", err
	}
	slow := time.AfterFunc(stdinPatience, func() { p.Warn("reading the text from stdin") })
	in := bufio.NewReader(p.In)
	_, isEmpty := in.Peek(1) // an interrupt ends the process
	slow.Stop()
	if isEmpty == io.EOF {
		return "", failure.Usage("stdin was empty: nothing is sent").WithHint("%s", cmdline.LineOf(c).Completed())
	}
	return ReadText(in)
}

// NotPiped refuses a file, or a pipe with data in it, beside a text: one of them would be lost. What a loop over a list
// or a script reads is not meant for the commands in it.
func NotPiped(stdin io.Reader) error {
	n := output.BytesWaiting(stdin, pipePatience)
	if n == 0 || isReadByOthers(stdin.(*os.File)) {
		return nil
	}
	return failure.Usage("a text and %s on stdin: only one can be sent", letter.Many(n, "byte")).
		WithHint("leave the text out to send stdin, or add </dev/null to send the text")
}

// isReadByOthers reports whether a part of a file has been read, or a pipe is the parent's stdin too, which only Linux
// tells. A file may be the parent's just for this command: dash redirects in its own process.
func isReadByOthers(stdin *os.File) bool {
	mine, err := stdin.Stat()
	if err != nil || mine.Mode().IsRegular() {
		at, err := stdin.Seek(0, io.SeekCurrent)
		return err == nil && at > 0
	}
	parents, err := os.Stat(fmt.Sprintf("/proc/%d/fd/0", os.Getppid()))
	return err == nil && os.SameFile(mine, parents)
}

// HasText reports whether stdin is a file, a pipe or a socket.
func HasText(stdin io.Reader) bool {
	f, isFile := stdin.(*os.File)
	if !isFile {
		return true
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0)
}

// bom is what some editors and shells put in front of UTF-8.
const bom = "\ufeff"

// ReadText reads a text, removes one newline (\n or \r\n) at its end, and checks it.
func ReadText(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, app.MaxText+3))
	if err != nil {
		return "", failure.Failed("read the text: %w", err)
	}
	text, found := strings.CutSuffix(strings.TrimPrefix(string(data), bom), "\n")
	if found {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, app.CheckText(text)
}

// EachLine calls f with each line that is not blank, and its number, until f returns an error. For a line that is
// larger than a message may be, err is set.
func EachLine(r io.Reader, f func(n int, line []byte, err error) error) error {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, size, err := wire.ReadLine(in, wire.MaxFile+2)
		if err == io.EOF && size == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		line, err = bytes.TrimRight(line, "\r\n"), nil
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte(bom))
		}
		if line == nil || len(line) > wire.MaxFile {
			err = failure.Usage("the line is over %d MiB", wire.MaxFile>>20).WithHint("send it as a file: `atm send NAME --attach FILE`")
		} else if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := f(n, line, err); err != nil {
			return err
		}
	}
}
