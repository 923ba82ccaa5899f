package hook

import (
	"fmt"
	"io"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/wire"
)

// answer writes the text in the program's way, in one write, since half an answer is worse than none.
func (c *call) answer() (exit int, err error) {
	text := c.Text.String()
	switch {
	case c.Refusal == "" && text == "" && (!c.AnswersAlways || c.Permission != nil): // see waitForVerdict
		return 0, nil
	case c.Refusal == "" && text != "" && c.ReplyAs == agents.OnStderr:
		_, err = io.WriteString(c.scope.Given.Err, text)
		return 2, err
	}
	return 0, write(c.scope.Given.Out, c.Vendor.Answer(&c.Call, text))
}

// warnPerson answers a hook with a text for the person.
func warnPerson(stdout io.Writer, text string) error {
	return write(stdout, map[string]string{"systemMessage": "[atm] " + text})
}

func write(stdout io.Writer, document any) error {
	out, err := wire.Marshal(document)
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s\n", out)
	}
	return err
}
