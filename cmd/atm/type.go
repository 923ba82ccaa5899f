package main

import (
	"context"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
)

var typeVerb = &cmdline.Verb{
	Name: "type", Args: "NAME [TEXT…]", Summary: "type into an agent's terminal, as a person would",
	Examples: []string{
		`atm type bob "/compact" --enter`, `atm type bob --raw '\e[A\r'`, "atm type bob --enter",
	},
	Notes: []string{
		"Nobody is told who typed it, and nothing says that it was taken: mail is atm send.",
		`--raw knows \r \n \t \b \e \0 \\ \xHH and \uHHHH; a text from stdin (-) goes as it is.`,
		"Without --enter the text stays in the input line, and no mail is typed in until it is gone.",
	},
	Flags: []cmdline.Flag{
		{Name: "raw", Usage: "these bytes and no others: keys, escape sequences"},
		{Name: "enter", Usage: "and then the return key"},
	},
	Guesses: []string{"keys", "input", "enter", "inject", "send-keys", "keypress"},
	MinArgs: 1, MaxArgs: -1,
	Run: long(typeInto),
}

func typeInto(ctx context.Context, e *env) error {
	r := control.TypeRequest{Raw: e.Bool("raw"), Enter: e.Bool("enter")}
	var err error
	switch words := e.Args[1:]; {
	case len(words) == 0 && r.Enter:
	case r.Raw:
		r.Text, err = e.rawText(words)
	default:
		if r.Text, err = e.Text(words); err == nil {
			r.Text, err = typeable(r.Text)
		}
	}
	if err != nil {
		return err
	}
	return e.askRunner(ctx, "type into", func(c *control.Client) (control.Outcome, error) { return c.Type(ctx, r) })
}

// typeable is a text as it can be typed, or says why not: a key is no text.
func typeable(s string) (string, error) {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
			return "", cmdline.Usage("the text has the control character U+%04X, which no text needs", r).
				WithHint(`keys and escape sequences: atm type NAME --raw '\e[A\r'`)
		}
	}
	return s, nil
}

// rawText is what --raw types: words with their escapes undone, or the bytes of
// stdin.
func (e *env) rawText(words []string) (string, error) {
	var text string
	switch {
	case len(words) == 0:
		return "", cmdline.Usage("--raw types what?").WithHint(`atm type %s --raw '\e[A\r'`, cmdline.Escape(e.Args[0]))
	case len(words) == 1 && words[0] == "-":
		if e.Stdin == nil || term.IsTerminal(int(e.Stdin.Fd())) {
			return "", cmdline.Usage("stdin is a terminal").WithHint(`atm type %s --raw '\e[A\r'`, cmdline.Escape(e.Args[0]))
		}
		data, err := io.ReadAll(io.LimitReader(e.Stdin, cmdline.MaxText+1))
		if err != nil {
			return "", cmdline.Failed("reading the text: %v", err)
		}
		text = string(data)
	default:
		var err error
		if text, err = unescape(strings.Join(words, " ")); err != nil {
			return "", err
		}
	}
	switch {
	case text == "":
		return "", cmdline.Usage("the text is empty")
	case len(text) > cmdline.MaxText:
		return "", cmdline.Usage("the text is over 1 MiB")
	}
	return text, nil
}

// unescape undoes the escapes that --raw knows. Another one is an error, so that
// a misspelt key is not typed as a backslash and a letter.
func unescape(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		c, n := utf8.DecodeRuneInString(rest)
		s = rest[n:]
		switch c {
		case 'r':
			b.WriteByte('\r')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'b':
			b.WriteByte('\b')
		case 'e':
			b.WriteByte(0x1b)
		case '0':
			b.WriteByte(0)
		case '\\':
			b.WriteByte('\\')
		case 'x', 'u':
			digits := map[rune]int{'x': 2, 'u': 4}[c]
			if len(s) < digits {
				return "", badEscape(c, s)
			}
			code, err := strconv.ParseUint(s[:digits], 16, 16)
			if err != nil {
				return "", badEscape(c, s[:digits])
			}
			if s = s[digits:]; c == 'x' {
				b.WriteByte(byte(code))
			} else {
				b.WriteRune(rune(code))
			}
		default:
			if n == 0 {
				return "", badEscape(' ', "")
			}
			return "", badEscape(c, "")
		}
	}
}

func badEscape(c rune, digits string) error {
	return cmdline.Usage("--raw does not know %s", strconv.Quote(strings.TrimSpace(`\`+string(c)+digits))).
		WithHint(`it knows \r \n \t \b \e \0 \\ \xHH and \uHHHH`)
}
