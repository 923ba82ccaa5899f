package main

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var primerVerb = &cmdline.Verb{
	Name: "primer", Summary: "what an agent needs to know",
	Examples: []string{"atm primer --as bob"},
	Run:      run(primer),
}

func primer(ctx context.Context, e *env) error {
	err := e.who()
	var c *cmdline.Error
	if err != nil && !(e.team != nil && errors.As(err, &c) && c.Exit == cmdline.ExitUsage) {
		return err
	}
	e.warnUnaccepted()
	var me wire.Name
	by := teams.Nothing
	if e.me != nil {
		me = e.me.Agent()
		if by = teams.Runner; e.Getenv("ATM_RUN") == "" {
			by = e.team.BroughtBy(me)
		}
	}
	text, err := e.team.Primer(me, by, e.agentSource == "--as")
	if err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(map[string]string{"primer": text})
	}
	_, err = e.Stdout.WriteString(text)
	return err
}
