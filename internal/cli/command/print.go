package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// Print writes one value to stdout: with --json as one JSON document on a line,
// else as its String, with a line feed at the end. Streams print value after value.
func Print(c *cli.Context, v fmt.Stringer) error { return PrintAs(c, v, v.String()) }

// doers are verbs whose text only says that it is done: --quiet leaves it out.
var doers = strings.Fields("send reply ack unread withdraw init add retire restore install uninstall backup gc event " +
	"run up down stop interrupt restart type approve reject message pause resume complete abort")

// Via is the program of ours that runs the verb for somebody else, atm-mcp; "": none. What it sends says so.
// With --json it gets, of each value, the text for people as well: a Said.
func Via(c *cli.Context) string { return c.String("via") }

// A Said is what a verb prints for a program that has said --via.
type Said struct {
	Document any    `json:"document"`
	Text     string `json:"text"`
}

// PrintAs is Print for a value and the text that says it to people.
func PrintAs(c *cli.Context, v any, text string) error {
	if c.Bool("json") && Via(c) != "" {
		v = Said{v, text}
	}
	if c.Bool("json") {
		return PrintJSON(v)
	}
	if c.Bool("quiet") && !c.Bool("dry-run") && slices.Contains(doers, c.Command.Name) {
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := os.Stdout.WriteString(text)
	return err
}

// Done is PrintAs for what was done, unless it failed.
func Done(c *cli.Context, err error, v any, text string) error {
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

// JSON is a value as one line. What could steer a terminal stands as \u escapes,
// which a reader undoes; <, > and & stay as they are.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return EscapeJSON(b.Bytes()), err
}

// EscapeJSON escapes what letter.Escape would, where encoding/json has left it:
// such runes stand only inside strings, where \u may stand.
func EscapeJSON(doc []byte) []byte {
	var out []byte
	for _, r := range string(doc) {
		if r >= 0x7f && letter.Escape(string(r)) != string(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// WarnUnreadable says of an *UnreadableError that it is one: what could be read is shown all the same. Any other
// error is returned.
func WarnUnreadable(err error) error {
	unreadable, ok := errors.AsType[*teams.UnreadableError](err)
	if ok {
		(&Error{Message: unreadable.Error(), Hint: "atm doctor"}).Tell() // also with --quiet
		return nil
	}
	return err
}

// Warn writes a line to stderr, escaped, unless --quiet.
func Warn(c *cli.Context, format string, args ...any) {
	if !c.Bool("quiet") {
		fmt.Fprintln(os.Stderr, "atm: "+escapeLine(fmt.Sprintf(format, args...)))
	}
}

// escapeLine is a text, or several errors, on one line.
func escapeLine(text string) string { return letter.Escape(strings.ReplaceAll(text, "\n", "; ")) }

// Terminal reports whether a person sees stdout as it is written.
func Terminal() bool { return term.IsTerminal(int(os.Stdout.Fd())) }

// Colour reports whether stdout may be coloured.
func Colour() bool {
	return Terminal() && os.Getenv("NO_COLOR") == "" && !isDumb()
}

// isDumb reports whether the terminal knows no control sequences, as far as it says; on Windows none says.
func isDumb() bool {
	kind := os.Getenv("TERM")
	return kind == "dumb" || kind == "" && runtime.GOOS != "windows"
}

// Width is how many columns the terminal has; 0: stdout is none.
func Width() int {
	w, _, _ := term.GetSize(int(os.Stdout.Fd()))
	return max(w, 0)
}
