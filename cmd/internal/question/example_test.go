//go:build linux || darwin

package question_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/cmd/internal/question"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A process is told that a program asks to run a command, and gives it the answer. ctx is cancelled when the program
// says that it no longer asks.
func ExampleWait() {
	waitFor := func(ctx context.Context, team *teamdir.Team, box *maildir.Box, askID, command string, give func(allow bool, reason string) error) error {
		err := question.Wait(ctx, team, box, question.Question{
			Question: ask.Question{
				ID: askID, Tool: "shell", Prompt: command,
				Options: []ask.Option{ // without them: allow once, deny
					{ID: "accept", Label: "Yes", Kind: "allow_once"},
					{ID: "decline", Label: "No", Kind: "reject_once"},
				},
			},
			Rule:  &policy.Request{Tool: "shell", Command: true, Input: command}, // whole, as it will run
			Event: wire.Event{Session: "thread", TurnID: "turn"},
		}, question.Options{
			Give: func(a ask.Answer) error { return give(!a.Deny, a.Reason) },
		})
		switch {
		case errors.Is(err, question.ErrOver), errors.Is(err, question.ErrAsked), ctx.Err() != nil:
			return nil // nothing to give
		}
		return err
	}
	_ = waitFor
	fmt.Println("the first answer counts")
	// Output: the first answer counts
}
