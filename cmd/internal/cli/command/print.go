package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// Print writes one value to stdout: with --json as a JSON document on a line, else as its String and a newline. A
// stream calls it for each value.
func Print(c *cli.Context, v fmt.Stringer) error { return PrintAs(c, v, v.String()) }

// PrintAs is Print for a value with a text of its own.
func PrintAs(c *cli.Context, v any, text string) error {
	if !c.Bool("json") && c.Bool("quiet") && !c.Bool("dry-run") && slices.Contains(confirming, c.Command.Name) {
		return nil
	}
	out, err := Encode(c, v, text)
	failure.ShowStatus("")
	if err == nil {
		_, err = os.Stdout.Write(out)
	}
	return err
}

// confirming are the verbs whose text only confirms what they did: --quiet omits it.
var confirming = strings.Fields("send reply ack unread withdraw init add retire restore install uninstall backup gc event " +
	"run up down stop interrupt restart type approve reject message pause resume complete abort")

// Encode returns what PrintAs writes.
func Encode(c *cli.Context, v any, text string) ([]byte, error) {
	switch {
	case c.Bool("json") && Given(c).Via != "":
		return JSON(map[string]any{"document": v, "text": text})
	case c.Bool("json"):
		return JSON(v)
	case text != "" && !strings.HasSuffix(text, "\n"):
		text += "\n"
	}
	return []byte(letter.Wrap(text, Width())), nil
}

// SetPrinted says that with --json stdout has its one document: an error that follows goes to stderr.
func SetPrinted(c *cli.Context) { c.App.Metadata[printed] = true }

const printed = "printed"

// PrintDone is PrintAs for what was done (text "": nothing), and returns the error for the rest. With --json both are
// one document.
func PrintDone(c *cli.Context, done any, text string, err error) error {
	if err == nil || text != "" && !c.Bool("json") {
		return cmp.Or(PrintAs(c, done, text), err)
	}
	e := Given(c).Explain(err)
	if text != "" {
		e.Done = done
	}
	return e
}

// PrintUnlessError is PrintAs unless there was an error.
func PrintUnlessError(c *cli.Context, err error, v any, text string) error {
	if err != nil {
		return err
	}
	return PrintAs(c, v, text)
}

// PrintJSON writes a value to stdout as one JSON document on a line.
func PrintJSON(v any) error {
	line, err := JSON(v)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(line)
	return err
}

// JSON encodes a value on one line. Runes that nobody sees become \u escapes; <, > and & stay as they are.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return EscapeJSON(b.Bytes()), err
}

// EscapeJSON escapes what is hidden and encoding/json does not escape. It occurs only inside strings.
func EscapeJSON(doc []byte) []byte {
	var out []byte
	for _, r := range string(doc) {
		if r < 0x7f || !letter.IsHidden(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// Warn is Given.Warn.
func Warn(c *cli.Context, format string, args ...any) { Given(c).Warn(format, args...) }

// WarnUnreadable prints an *UnreadableError, after which the verb shows what could be read. It returns any other error.
func WarnUnreadable(err error) error {
	if _, ok := errors.AsType[*teams.UnreadableError](err); ok {
		(&failure.Error{Message: err.Error(), Hint: "atm doctor"}).Print() // also with --quiet
		return nil
	}
	return err
}

// Terminal reports whether stdout is a terminal.
func Terminal() bool { return term.IsTerminal(int(os.Stdout.Fd())) }

// isColoured reports whether stdout may be coloured.
func isColoured() bool { return Terminal() && os.Getenv("NO_COLOR") == "" && !isDumb() }

// isDumb reports whether TERM says that the terminal knows no control sequences.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// Width is the width of the terminal in columns, 80 if it does not say; 0: stdout is not a terminal.
func Width() int { return failure.Width(os.Stdout) }
