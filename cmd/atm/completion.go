package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
)

var completionVerb = &cmdline.Verb{
	Name: "completion", Args: "SHELL", Summary: "a completion script for bash, zsh or fish",
	Examples: []string{"source <(atm completion bash)", "atm completion fish > ~/.config/fish/completions/atm.fish"},
	MinArgs:  1, MaxArgs: 1,
	Run: completion{},
}

// completion is a type: the script is made of the app, which holds this verb,
// and a function that does so could not stand in the verb.
type completion struct{}

// Run prints the script.
func (completion) Run(_ context.Context, c *cmdline.Call) error {
	script, err := app().Completion(c.Args[0])
	if err != nil {
		return cmdline.Usage("%v", err)
	}
	_, err = c.Stdout.WriteString(script)
	return err
}
