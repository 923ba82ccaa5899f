package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var searchVerb = &cmdline.Verb{
	Name: "search", Args: "WORDS…", Summary: "search every message of the team",
	Examples: []string{"atm search flaky test from:alice since:7d", "atm search in:new to:bob"},
	Notes:    []string{"Words fit subject or body, in any case; from:, to:, in:new|cur|done, since:.", "Newest first."},
	Flags:    []cmdline.Flag{{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Default: "20", Usage: "at most N, 0: all"}},
	MinArgs:  1, MaxArgs: -1,
	Run: long(search),
}

func search(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	q, err := teams.ParseQuery(e.Args, time.Now(), cmdline.ParseDuration)
	if err != nil {
		return cmdline.Usage("%v", err)
	}
	var seen atomic.Int64
	stop := e.progress("messages searched", &seen)
	items, err := e.team.Search(ctx, q, func() { seen.Add(1) })
	stop()
	if err != nil {
		return err
	}
	more := 0
	if n := e.Int("limit"); n > 0 && len(items) > n {
		more = len(items) - n
		items = items[:n]
	}
	if e.JSON() {
		return e.PrintJSON(newListing(jsonItems(items), more))
	}
	l := e.renderer()
	l.Digits = letter.ShortLength(idsOf(items))
	now := time.Now()
	for _, it := range items {
		if err := e.print("%s", e.line(l, jsonItem{Item: it}, now)); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		return e.print("nothing fits, of %d messages", seen.Load())
	}
	if more > 0 {
		return e.print("%d more: put --limit 0 on the command", more)
	}
	return nil
}
