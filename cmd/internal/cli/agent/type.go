package agent

import (
	"context"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/control"
)

var typeCommand = &cli.Command{
	Name: "type", Category: "exec input keys\nsend-keys paste key    atm type NAME \"…\" --enter\n--keys    atm type NAME --raw '\\e'", ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
	UsageText: `atm type bob "/compact" --enter
atm type bob --raw '\e[A\r'
atm type bob --enter`,
	Description: `The agent does not learn who typed and may ignore the text: to send mail, use atm send.
Text is refused while a model asks something, since it might answer that (one key is not), and
while its input line may still hold mail. A shell that asks takes it. --raw types anyway.
--raw understands \e and Go's escapes: \r \n \t \b \\ \xHH \uHHHH.
Without --enter the text stays in the input line, and atm types no mail in until it is gone.
An agent that speaks ACP has no terminal: a text with --enter is a prompt, while it is idle.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "exactly these bytes: keys, escape sequences"},
		&cli.BoolFlag{Name: "enter", Category: "submit", Usage: "press return at the end"},
	},
	Action: typeText,
}

// typeText checks the text before it looks for the agent.
func typeText(c *cli.Context) (err error) {
	words, text := c.Args().Tail(), ""
	r := control.TypeRequest{Raw: c.Bool("raw"), Enter: c.Bool("enter")}
	if r.Raw {
		text, err = unescape(strings.Join(words, " "))
	} else if len(words) > 0 || !r.Enter {
		text, err = command.MessageText(c, words)
	}
	if err == nil && !r.Raw {
		err = app.CheckTyped(text)
	}
	if err != nil {
		return err
	}
	r.Text = []byte(text)
	return withAgent(func(ctx context.Context, _ *cli.Context, k *call) error {
		o, err := k.s.Type(ctx, k.name(), r)
		done := resultOf(k.name(), o)
		if o.NotSubmitted {
			done.Detail = app.JoinFilled(", ", done.Detail, "not submitted: "+k.p.Command("atm type "+string(k.name())+" --enter"))
		}
		return k.print(done, err)
	})(c)
}

// goEscapes turns a text with our escapes into the inside of a Go string.
var goEscapes = strings.NewReplacer(`\\`, `\\`, `\e`, `\x1b`, `"`, `\"`, "\n", `\n`)

// unescape decodes the escapes of --raw. It refuses any other, so that a misspelt key is not typed as text.
func unescape(s string) (string, error) {
	text, err := strconv.Unquote(`"` + goEscapes.Replace(s) + `"`)
	if err != nil || text == "" {
		return "", failure.Usage("--raw needs text with escapes that it understands, not %q", s).WithHint(`atm type NAME --raw '\t'`)
	}
	return text, nil
}
