package main

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/wire"
)

var whereVerb = &cmdline.Verb{
	Name: "where", Aliases: []string{"whoami"}, Summary: "root, team and agent in force, and why",
	Examples: []string{"atm where"},
	Run:      run(where),
}

type sourced struct {
	Path   string    `json:"path,omitempty"`
	Name   wire.Name `json:"name,omitempty"`
	Source string    `json:"source"`
}

func where(ctx context.Context, e *env) error {
	err := e.who()
	if e.root == nil {
		return err
	}
	out := map[string]sourced{"root": {Path: e.root.Path, Source: e.root.Source}}
	if e.team != nil {
		out["team"] = sourced{Name: e.team.Name, Source: e.teamSource}
	}
	if e.me != nil {
		out["agent"] = sourced{Name: e.me.Agent(), Source: e.agentSource}
	}
	var c *cmdline.Error
	if err != nil && (e.Given("as") || !(errors.As(err, &c) && c.Exit == cmdline.ExitUsage)) {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(out)
	}
	if err := e.print("root   %s (%s)", cmdline.Escape(e.root.Path), cmdline.Escape(e.root.Source)); err != nil {
		return err
	}
	if e.team == nil {
		return e.print("team   none: %s", c.Message)
	}
	if err := e.print("team   %s (%s)", e.team.Name, e.teamSource); err != nil {
		return err
	}
	if e.me == nil {
		return e.print("agent  none: put --as NAME on the command, or set ATM_AGENT")
	}
	return e.print("agent  %s (%s)", e.me.Agent(), e.agentSource)
}
