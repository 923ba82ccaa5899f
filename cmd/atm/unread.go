package main

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
)

var unreadVerb = &cmdline.Verb{
	Name: "unread", Args: "ID…", Summary: "put read messages back",
	Examples: []string{"atm unread 9f3a1c"},
	Notes:    []string{"What you took (atm take) is given back; what was set aside is taken again."},
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
	list := listing{Messages: []jsonItem{}}
	for i, it := range items {
		if box := taken[i]; box != nil {
			if it, err = e.giveBack(ctx, box, it); err != nil {
				return err
			}
			if e.JSON() {
				list.Messages = append(list.Messages, jsonItem{Item: it})
			} else if err := e.print("%s given back to %s%s", it.ID.Short(6), box.Agent(), asideNow(it)); err != nil {
				return err
			}
			continue
		}
		if k := it.Takings.Holder(time.Now()); k != nil {
			return &mailbox.LeasedError{ID: it.ID, By: k.By, Until: k.Until()}
		}
		if it.State == "" {
			return cmdline.Refused("message %s is one that you sent", it.ID.Short(6)).WithHint("atm withdraw %s%s takes it back", it.ID.Short(6), e.typed())
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

// giveBack gives back what I took. It may have been the last try.
func (e *env) giveBack(ctx context.Context, box *mailbox.Box, it *mailbox.Item) (*mailbox.Item, error) {
	if err := box.GiveBack(ctx, it.ID, e.me.Address(), "", ""); err != nil {
		return nil, err
	}
	if err := e.root.Tidy(ctx, box, e.origin()); err != nil {
		e.Warn("%v", err)
	}
	return box.Get(it.ID)
}

// asideNow says that a message was set aside, if it was.
func asideNow(it *mailbox.Item) string {
	if it.State == mailbox.Aside {
		return ", and set aside: nobody finished it"
	}
	return ""
}
