package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
)

var unreadVerb = &cmdline.Verb{
	Name: "unread", Args: "ID…", Summary: "put read messages back",
	Examples: []string{"atm unread 9f3a1c"},
	MinArgs:  1, MaxArgs: -1,
	Run: run(unread),
}

func unread(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	items, err := e.findAll(ctx, e.Args, true)
	if err != nil {
		return err
	}
	list := listing{Messages: []jsonItem{}}
	for _, it := range items {
		if it.State == "" {
			return cmdline.Refused("message %s is one that you sent", it.ID.Short(6)).WithHint("atm withdraw %s takes it back", it.ID.Short(6))
		}
		moved, err := e.me.Unread(ctx, it.ID)
		if err != nil {
			return err
		}
		if e.JSON() {
			now, err := e.me.Get(it.ID)
			if err != nil {
				return err
			}
			list.Messages = append(list.Messages, jsonItem{Item: now})
			continue
		}
		word := "unread again"
		if !moved {
			word = "was unread"
		}
		if err := e.print("%s %s", it.ID.Short(6), word); err != nil {
			return err
		}
	}
	if e.JSON() {
		return e.PrintJSON(list)
	}
	return nil
}
