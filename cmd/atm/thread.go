package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
)

var threadVerb = &cmdline.Verb{
	Name: "thread", Args: "ID", Summary: "the conversation, in order",
	Examples: []string{"atm thread 9f3a1c"},
	Notes:    []string{"Across the team's inboxes. Marks nothing."},
	Flags:    []cmdline.Flag{{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Default: "0", Usage: "the last N, 0: all"}},
	MinArgs:  1, MaxArgs: 1,
	Run: long(thread),
}

func thread(ctx context.Context, e *env) error {
	if err := e.whoIfSaid(); err != nil {
		return err
	}
	it, _, err := e.find(ctx, e.Args[0], false)
	if err != nil {
		return err
	}
	items, err := e.team.Thread(ctx, it.ThreadID())
	if err != nil {
		return err
	}
	more := 0
	if n := e.Int("limit"); n > 0 && len(items) > n {
		more = len(items) - n
		items = items[more:]
	}
	if e.JSON() {
		return e.PrintJSON(newListing(jsonItems(items), more))
	}
	if more > 0 {
		if err := e.print("%d earlier: atm thread %s", more, e.Args[0]); err != nil {
			return err
		}
	}
	l := e.renderer()
	l.Digits = letter.ShortLength(idsOf(items))
	for i, f := range flagsOf(items, nil, l.Now) {
		if _, err := e.Stdout.Write(l.Render(items[i].Message, f)); err != nil {
			return err
		}
	}
	return nil
}
