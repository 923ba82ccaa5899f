package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

const rawExample = `atm type NAME --raw '\e[A\r'`

var typeCommand = &cli.Command{
	Name: "type", Aliases: []string{"send-keys", "keys"}, ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
	UsageText: "atm type bob \"/compact\" --enter\natm type bob --raw '\\e[A\\r'\natm type bob --enter",
	Description: "The agent is not told who typed, and nothing says that it took it: mail is atm send.\n" +
		`--raw knows \e and the escapes of Go: \r \n \t \b \\ \xHH \uHHHH.` + "\n" +
		"Without --enter the text stays in the input line, and no mail is typed in until it is gone.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "these bytes and no others: keys, escape sequences"},
		&cli.BoolFlag{Name: "enter", Usage: "and then the return key"},
		command.Meant("key", "keys and escape sequences: "+rawExample),
	},
	Action: typeText,
}

func typeText(c *cli.Context) (err error) {
	words := c.Args().Tail()
	text := ""
	r := control.TypeRequest{Raw: c.Bool("raw"), Enter: c.Bool("enter")}
	if r.Raw {
		text, err = unescape(strings.Join(words, " "))
	} else if len(words) > 0 || !r.Enter {
		text, err = plainText(c, words)
	}
	if err != nil {
		return err
	}
	r.Text = []byte(text)
	return perform(c, "type into", func(ctx context.Context, client *control.Client, name wire.Name) (fmt.Stringer, error) {
		o, err := client.Type(ctx, r)
		return resultOf(name, o), err
	})
}

// plainText is a text to be typed; one with a control character is refused.
func plainText(c *cli.Context, words []string) (string, error) {
	text, err := command.StdinText(c, words)
	if err != nil {
		return "", err
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	isKey := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if strings.ContainsFunc(text, isKey) {
		return "", command.Usage("the text has control characters").WithHint("keys and escape sequences: " + rawExample)
	}
	return text, nil
}

// forGo writes a text with our escapes as the inside of a Go string.
var forGo = strings.NewReplacer(`\\`, `\\`, `\e`, `\x1b`, `"`, `\"`, "\n", `\n`)

// unescape undoes the escapes that --raw knows. Any other is an error: a misspelt
// key is not to be typed as a backslash and a letter.
func unescape(s string) (string, error) {
	text, err := strconv.Unquote(`"` + forGo.Replace(s) + `"`)
	if err != nil || text == "" {
		return "", command.Usage("--raw needs a text with escapes that it knows, not %q", s).WithHint(rawExample)
	}
	return text, nil
}
