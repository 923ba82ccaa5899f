package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir"
)

// A Printer prints what one command has to say: values on stdout, warnings on stderr.
type Printer struct {
	*app.Given

	// Answer takes each value, and its text, of a program that answers a client, and reports whether the client has received
	// it; nil: it is printed on stdout.
	Answer func(v any, text string) (isReceived bool, err error)

	IsJSON     bool // a value is a JSON document, else text
	IsStream   bool // each value is a document of its own, and so is the error behind them
	isSilent   bool // see Confirming
	hasPrinted bool // see SetPrinted
}

// PrinterOf returns the printer of the command line: the same one for each call.
func PrinterOf(c *cli.Context) *Printer {
	if p, ok := c.App.Metadata["printer"].(*Printer); ok {
		return p
	}
	p := &Printer{Given: newGiven(c), IsJSON: c.Bool("json")}
	c.App.Metadata["printer"] = p
	return p
}

// Confirming is the printer of a text that only confirms what the verb did: --quiet omits it.
func (p *Printer) Confirming() *Printer {
	silent := *p
	silent.isSilent = p.IsQuiet
	return &silent
}

// Print writes one value to stdout: with --json as a JSON document on a line, else as its String and a newline. A
// stream calls it for each value.
func (p *Printer) Print(v fmt.Stringer) error { return p.PrintAs(v, v.String()) }

// Say returns a text whose commands, between backticks, have those of --root, --team and --as that were given: it can be typed
// from anywhere.
func (p *Printer) Say(format string, args ...any) string {
	return failure.Say(format, args...).Map(p.Command).String()
}

// PrintAs is Print for a value with a text of its own.
func (p *Printer) PrintAs(v any, text string) error {
	if p.Answer != nil {
		_, err := p.Answer(v, text)
		return err
	}
	if p.isSilent && !p.IsJSON {
		return nil
	}
	out, err := p.encode(v, text)
	failure.ShowProgress(p.Err, "")
	if err == nil {
		_, err = p.Out.Write(out)
	}
	return err
}

// encode returns what PrintAs writes.
func (p *Printer) encode(v any, text string) ([]byte, error) {
	switch {
	case p.IsJSON:
		return JSON(v)
	case text != "" && !strings.HasSuffix(text, "\n"):
		text += "\n"
	}
	return []byte(letter.Wrap(text, p.Width())), nil
}

// SetPrinted says that with --json stdout has its one document, unless it IsStream: an error that follows goes to stderr.
func (p *Printer) SetPrinted() { p.hasPrinted = !p.IsStream }

// PrintDone is PrintAs for what was done (text "": nothing), and returns the error for the rest. With --json both are
// one document.
func (p *Printer) PrintDone(done any, text string, err error) error {
	if err == nil || text != "" && !p.IsJSON {
		return cmp.Or(p.PrintAs(done, text), err)
	}
	e := p.Explain(err)
	if text != "" {
		e.Done = done
	}
	return e
}

// PrintUnlessError is PrintAs unless there was an error.
func (p *Printer) PrintUnlessError(err error, v any, text string) error {
	if err != nil {
		return err
	}
	return p.PrintAs(v, text)
}

// WriteJSON writes a value as one JSON document on a line.
func WriteJSON(w io.Writer, v any) error {
	line, err := JSON(v)
	if err != nil {
		return err
	}
	_, err = w.Write(line)
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
	isPlain := func(r rune) bool { return r < 0x7f || r != utf8.RuneError && !letter.IsHidden(r) }
	if !bytes.ContainsFunc(doc, func(r rune) bool { return !isPlain(r) }) {
		return doc
	}
	out := make([]byte, 0, len(doc)+len(doc)/8)
	for _, r := range string(doc) {
		if r == utf8.RuneError || isPlain(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// WarnUnreadable prints an *UnreadableError, after which the verb shows what could be read. It returns any other error.
func (p *Printer) WarnUnreadable(err error) error {
	if _, ok := errors.AsType[*teamdir.UnreadableError](err); ok {
		(&failure.Error{Message: err.Error(), Hint: "atm doctor"}).Print(p.Err) // also with --quiet
		return nil
	}
	return err
}

const (
	quickTime     = time.Second            // work that takes no longer shows no progress
	progressEvery = 200 * time.Millisecond // how often it is shown
)

// Progress returns a function that long work calls with how much of it is done: "sent %d messages". If stderr is a
// terminal that shows it, in one line, which whatever is printed next removes.
func (p *Printer) Progress(format string) func(n int) {
	if !output.IsTerminal(p.Err) || isDumb() || p.IsJSON || p.IsQuiet {
		return func(int) {}
	}
	next := time.Now().Add(quickTime)
	return func(n int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(progressEvery)
			failure.ShowProgress(p.Err, fmt.Sprintf(format, n))
		}
	}
}

// IsTerminal reports whether stdout is a terminal.
func (p *Printer) IsTerminal() bool { return output.IsTerminal(p.Out) }

// IsColoured reports whether a stream may be coloured.
func IsColoured(out io.Writer) bool {
	return output.IsTerminal(out) && os.Getenv("NO_COLOR") == "" && !isDumb()
}

// isDumb reports whether TERM says that the terminal knows no control sequences.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// Width is the width of the terminal in columns, 80 if it does not say; 0: stdout is not a terminal.
func (p *Printer) Width() int { return output.Width(p.Out) }
