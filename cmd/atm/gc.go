package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var gcVerb = &cmdline.Verb{
	Name: "gc", Summary: "move old finished messages and events to the archive",
	Examples: []string{"atm gc --dry-run", "atm gc --keep 7d"},
	Notes:    []string{"Never unread, never owed; nothing is deleted; whole days only, by the ids' day. Old events too."},
	Flags: []cmdline.Flag{
		{Name: "keep", Kind: cmdline.Duration, Arg: "D", Default: "30d", Usage: "what is younger stays"},
		{Name: "keep-last", Kind: cmdline.Int, Arg: "N", Default: "100", Usage: "the newest N of an inbox stay"},
		{Name: "dry-run", Usage: "count only, the same totals"},
	},
	Run: long(gc),
}

func gc(ctx context.Context, e *env) error {
	list, err := e.someTeams()
	if err != nil {
		return err
	}
	opt := mailbox.GCOptions{Before: time.Now().Add(-e.Duration("keep")), KeepLast: e.Int("keep-last"), DryRun: e.Bool("dry-run")}
	var total mailbox.Moved
	var n atomic.Int64
	stop := e.progress("inboxes looked at", &n)
	defer stop()
	for _, t := range list {
		boxes, err := t.Boxes()
		if err != nil {
			return err
		}
		for _, b := range boxes {
			m, err := b.GC(ctx, opt)
			total.Add(m)
			if err == nil {
				m, err = t.ArchiveEvents(ctx, b.Agent(), opt.Before, opt.DryRun)
				total.Add(m)
			}
			n.Add(1)
			if errors.Is(err, mailbox.ErrNoAgent) {
				continue // retired meanwhile
			}
			if err != nil {
				return err
			}
		}
	}
	if e.JSON() {
		return e.PrintJSON(total)
	}
	word := "moved"
	if opt.DryRun {
		word = "would move"
	}
	events := ""
	if total.Events > 0 {
		events = fmt.Sprintf(", %d events", total.Events)
	}
	return e.print("%s %d messages%s, %s, to the archive; %d stay", word, total.Messages, events, letter.Size(total.Bytes), total.Skipped)
}

// someTeams is the team that is named, or all teams of the root.
func (e *env) someTeams() ([]*teams.Team, error) {
	if e.Given("team") || e.Getenv("ATM_TEAM") != "" {
		err := e.open()
		return []*teams.Team{e.team}, err
	}
	if err := e.openRoot(); err != nil {
		return nil, err
	}
	names, err := e.root.Teams()
	if err != nil {
		return nil, err
	}
	var out []*teams.Team
	for _, n := range names {
		t, err := e.root.Team(n)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
