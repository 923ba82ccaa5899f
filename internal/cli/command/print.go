package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// Print writes one value to stdout: with --json as one JSON document on a line,
// else as its String, with a line feed at the end. Streams print value after value.
func Print(c *cli.Context, v fmt.Stringer) error { return PrintAs(c, v, v.String()) }

// PrintAs is Print for a value and the text that says it to people.
func PrintAs(c *cli.Context, v any, text string) error {
	if c.Bool("json") {
		return PrintJSON(v)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := os.Stdout.WriteString(text)
	return err
}

// Text is a value that is the same to people and, as a string, in JSON.
type Text string

func (t Text) String() string { return string(t) }

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

// Warn writes a line to stderr, escaped, unless --quiet.
func Warn(c *cli.Context, format string, args ...any) {
	if !c.Bool("quiet") {
		fmt.Fprintln(os.Stderr, "atm: "+letter.Escape(fmt.Sprintf(format, args...)))
	}
}

// Terminal reports whether a person sees stdout as it is written.
func Terminal() bool { return term.IsTerminal(int(os.Stdout.Fd())) }

// Colour reports whether stdout may be coloured.
func Colour() bool {
	return Terminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Width is how many columns the terminal has; 0: stdout is none.
func Width() int {
	w, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// Columns lines up rows of cells for a terminal, and cuts them to its width. Each column
// has a colour ("1": bold, "": none).
func Columns(rows [][]string, colours ...string) string {
	widths := make([]int, len(colours))
	for _, row := range rows {
		for n, cell := range row {
			widths[n] = max(widths[n], len(cell))
		}
	}
	text := ""
	for _, row := range rows {
		line, room := "", cmp.Or(Width(), 1<<20)
		for n, cell := range row {
			if widths[n] == 0 || room <= 1 {
				continue
			}
			shown := (&teams.Table{Width: room}).Fit(cell)
			if shown != "" && colours[n] != "" && Colour() {
				shown = "\x1b[" + colours[n] + "m" + shown + "\x1b[m"
			}
			line += shown + strings.Repeat(" ", widths[n]-len(cell)+2)
			room -= widths[n] + 2
		}
		text += strings.TrimRight(line, " ") + "\n"
	}
	return text
}

// Stamp is a moment for people: of today the time, else the day as well.
func Stamp(t time.Time) string {
	day, clock, _ := strings.Cut(t.Local().Format(time.DateTime), " ")
	if day == time.Now().Format(time.DateOnly) {
		return clock
	}
	return day + " " + clock
}
