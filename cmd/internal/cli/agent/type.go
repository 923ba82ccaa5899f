package agent

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
)

const rawExample = `atm type NAME --raw '\t'`

var typeCommand = &cli.Command{
	Name: "type", Aliases: []string{"send-keys"}, ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
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
		&cli.BoolFlag{Name: "enter", Aliases: []string{"submit"}, Usage: "press return at the end"},
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
		err = checkNoKeys(c.Args().First(), words, text)
	}
	if err != nil {
		return err
	}
	r.Text = []byte(text)
	return onRunner(policy.Type, func(ctx context.Context, _ *cli.Context, k *call, client *control.Client) error {
		who := k.s.Actor().Name
		r.By = string(who)
		o, err := client.Type(ctx, r)
		done := resultOf(k.name(), o)
		if o.NotSubmitted {
			done.Detail = app.JoinFilled(", ", done.Detail, "not submitted: "+k.p.Command("atm type "+string(k.name())+" --enter"))
		}
		return k.print(done, err)
	})(c)
}

// checkNoKeys refuses a text that was probably meant as keys: the name of one as the only word or, written as tmux
// has it, as the last; and control characters.
func checkNoKeys(name string, words []string, text string) error {
	// Names of keys, most of them tmux's, in lower case, and the flags that type them.
	keyNames := map[string]string{
		"enter": "--enter", "return": "--enter", "c-m": "--enter", "escape": `--raw '\e'`, "esc": `--raw '\e'`,
		"up": `--raw '\e[A'`, "down": `--raw '\e[B'`, "right": `--raw '\e[C'`, "left": `--raw '\e[D'`,
		"tab": `--raw '\t'`, "c-c": `--raw '\x03'`, "ctrl-c": `--raw '\x03'`, "c-d": `--raw '\x04'`,
	}
	last := strings.Join(words[max(0, len(words)-1):], "")
	key, isUpper := keyNames[strings.ToLower(last)], last != strings.ToLower(last)
	isControl := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t", r) }
	if key == "--enter" && isUpper && len(words) > 1 {
		return failure.Usage("%q would be typed as a word", last).WithHint("`atm type %s %s --enter`", name, policy.Quote(strings.Join(words[:len(words)-1], " ")))
	} else if key != "" && (isUpper || len(words) == 1) {
		return failure.Usage("%q would be typed as a word", last).WithHint("`atm type %s %s`; to end a turn: `atm interrupt %[1]s`", name, key)
	} else if strings.ContainsFunc(text, isControl) {
		return failure.Usage("the text has control characters").WithHint(rawExample)
	}
	return nil
}

// goEscapes turns a text with our escapes into the inside of a Go string.
var goEscapes = strings.NewReplacer(`\\`, `\\`, `\e`, `\x1b`, `"`, `\"`, "\n", `\n`)

// unescape decodes the escapes of --raw. It refuses any other, so that a misspelt key is not typed as text.
func unescape(s string) (string, error) {
	text, err := strconv.Unquote(`"` + goEscapes.Replace(s) + `"`)
	if err != nil || text == "" {
		return "", failure.Usage("--raw needs text with escapes that it understands, not %q", s).WithHint(rawExample)
	}
	return text, nil
}
