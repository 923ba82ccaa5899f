package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
)

var completionVerb = &cmdline.Verb{
	Name: "completion", Args: "SHELL", Summary: "a completion script for bash, zsh or fish",
	Examples: []string{"source <(atm completion bash)", "atm completion fish > ~/.config/fish/completions/atm.fish"},
	MinArgs:  1, MaxArgs: 1,
}

func init() {
	// Set here: the script is made of the app, which holds this verb.
	completionVerb.Run = func(_ context.Context, c *cmdline.Call) error {
		script, err := app().Completion(c.Args[0])
		if err != nil {
			return cmdline.Usage("%v", err)
		}
		_, err = c.Stdout.WriteString(script)
		return err
	}
}
