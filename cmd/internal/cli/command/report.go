package command

import (
	"cmp"
	"context"
	"errors"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/wire"
)

// Report prints an error, as JSON on stdout or as text on stderr, and returns the exit code. With failsOpen, for verbs
// that an agent's program calls, it is a line on stderr and exit 0. Text of others is escaped.
func Report(c *cli.Context, err error, failsOpen bool) int {
	p := PrinterOf(c)
	failure.ShowProgress(p.Err, "")
	switch {
	case err == nil:
		return failure.ExitDone
	case failsOpen:
	case p.IsOutputError(err) && errors.Is(err, syscall.EPIPE): // its reader has enough; a runner's socket is no stdout
		return failure.ExitDone
	case errors.Is(err, context.Canceled):
		return failure.ExitInterrupted
	}
	e := p.Explain(err)
	if e.Silent {
		return e.Exit
	}
	if e.Hint == "" && e.Code == "usage" {
		e.WithHint("`%s --help`", cmp.Or(c.Command.HelpName, c.App.Name))
	} else if e.Hint == "" {
		e.WithHint("`%s`", p.Command("atm doctor"))
	}
	if failsOpen {
		e.Hint, e.Exit = "", failure.ExitDone
	} else if p.IsJSON && !p.hasPrinted {
		if WriteJSON(p.Out, ErrorObject(e)) == nil { // on a full disk the error goes to stderr
			return e.Exit
		}
	}
	e.Print(p.Err)
	return e.Exit
}

// ErrorObject is the JSON of an error, with what was done all the same.
func ErrorObject(e *failure.Error) map[string]any {
	object := map[string]any{}
	done, _ := JSON(e.Done)
	fields, _ := wire.ReadObject(done)
	for _, f := range fields {
		object[f.Name] = f.Value
	}
	object["error"] = e
	if e.Code == "timeout" {
		object["timeout"] = true
	}
	return object
}
