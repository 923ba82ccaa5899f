package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
)

var unreadVerb = &cmdline.Verb{
	Name: "unread", Args: "ID…", Summary: "put read messages back",
	Examples: []string{"atm unread 9f3a1c"},
	Notes:    []string{"What you took (atm take) is given back."},
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
	items, taken, err := e.findMineOrTaken(ctx, e.Args)
	if err != nil {
		return err
	}
	list := newListing(nil, 0)
	for i, it := range items {
		if box := taken[i]; box != nil {
			if err := box.EndLease(ctx, it.ID, e.me.Address()); err != nil {
				return err
			}
			if e.JSON() {
				if it, err = box.Get(it.ID); err != nil {
					return err
				}
				list.Messages = append(list.Messages, jsonItem{Item: it})
			} else if err := e.print("%s given back to %s", it.ID.Short(6), box.Agent()); err != nil {
				return err
			}
			continue
		}
		if it.Lease != nil {
			return &mailbox.LeasedError{ID: it.ID, By: it.Lease.By, Until: it.Lease.Until}
		}
		if it.State == "" {
			return cmdline.Refused("message %s is one that you sent", it.ID.Short(6)).WithHint("atm withdraw %s%s takes it back", it.ID.Short(6), e.typed())
		}
		moved, err := e.me.MarkUnread(ctx, it.ID)
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
