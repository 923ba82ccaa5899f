package agent

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
)

var typeCommand = &cli.Command{
	Name: "type", Aliases: []string{"send-keys", "keys"}, ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
	UsageText: "atm type bob \"/compact\" --enter\natm type bob --raw '\\e[A\\r'\natm type bob --enter",
	Description: "The agent is not told who typed, and nothing says that it took it: mail is atm send.\n" +
		`--raw knows \r \n \t \b \e \0 \\ \xHH and \uHHHH; a text from stdin (-) goes as it is.` + "\n" +
		"Without --enter the text stays in the input line, and no mail is typed in until it is gone.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "these bytes and no others: keys, escape sequences"},
		&cli.BoolFlag{Name: "enter", Usage: "and then the return key"},
		command.Meant("key", `keys and escape sequences: atm type NAME --raw '\e[A\r'`),
		command.Meant("keys", `keys and escape sequences: atm type NAME --raw '\e[A\r'`),
	},
	Action: typeText,
}

func typeText(c *cli.Context) error {
	words := c.Args().Tail()
	r := control.TypeRequest{Raw: c.Bool("raw"), Enter: c.Bool("enter")}
	var err error
	if r.Raw {
		r.Text, err = rawText(words)
	} else if len(words) > 0 || !r.Enter {
		r.Text, err = plainText(c, words)
	}
	if err != nil {
		return err
	}
	return perform(c, "type into", func(ctx context.Context, client *control.Client) (control.Outcome, error) {
		return client.Type(ctx, r)
	})
}

const rawExample = `atm type NAME --raw '\e[A\r'`

// plainText is a text to be typed; one with a control character is refused.
func plainText(c *cli.Context, words []string) (string, error) {
	text, err := command.StdinText(c, words)
	if err != nil {
		return "", err
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for _, r := range text {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
			return "", command.Usage("the text has the control character U+%04X", r).WithHint("keys and escape sequences: " + rawExample)
		}
	}
	return text, nil
}

// rawText is what --raw types: words with their escapes undone, or the bytes of
// stdin.
func rawText(words []string) (string, error) {
	if len(words) == 0 {
		return "", command.Usage("--raw needs a text").WithHint(rawExample)
	}
	text, err := strings.Join(words, " "), error(nil)
	if text != "-" {
		text, err = unescape(text)
	} else if term.IsTerminal(int(os.Stdin.Fd())) {
		return "", command.Usage("stdin is a terminal").WithHint(rawExample)
	} else {
		var data []byte
		data, err = io.ReadAll(io.LimitReader(os.Stdin, command.MaxText+1))
		text = string(data)
	}
	if err != nil {
		return "", err
	}
	if text == "" {
		return "", command.Usage("the text is empty").WithHint(rawExample)
	}
	if len(text) > command.MaxText {
		return "", command.Usage("the text is over 1 MiB").WithHint("type it in pieces")
	}
	return text, nil
}

var escapes = map[rune]byte{'r': '\r', 'n': '\n', 't': '\t', 'b': '\b', 'e': 0x1b, '0': 0, '\\': '\\'}

// unescape undoes the escapes that --raw knows. Any other is an error: a misspelt
// key is not to be typed as a backslash and a letter.
func unescape(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		r, n := utf8.DecodeRuneInString(rest)
		s = rest[n:]
		if plain, ok := escapes[r]; ok {
			b.WriteByte(plain)
			continue
		}
		digits := map[rune]int{'x': 2, 'u': 4}[r]
		code, err := strconv.ParseUint(s[:min(digits, len(s))], 16, 16)
		if digits == 0 || len(s) < digits || err != nil {
			return "", command.Usage(`--raw does not know \%s`, rest[:n]).WithHint(`it knows \r \n \t \b \e \0 \\ \xHH and \uHHHH`)
		}
		if s = s[digits:]; r == 'x' {
			b.WriteByte(byte(code))
		} else {
			b.WriteRune(rune(code))
		}
	}
}
