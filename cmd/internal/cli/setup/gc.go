package setup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/presence"
)

var gcCommand = &cli.Command{
	Name: "gc", Usage: "move old finished messages and events to the archive",
	UsageText: `atm gc --dry-run
atm gc --keep 7d`,
	Description: "Leaves unread and owed mail alone, and deletes nothing. Works in whole days.",
	Flags: []cli.Flag{
		cmdline.DurationFlag("keep", 30*24*time.Hour, "keep what is newer than `D` (default 30d)", "older-than"),
		cmdline.CountFlag("keep-last", 100, "keep the newest `N` of each inbox (default 100)", "none"),
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only count; the totals are the same"},
	},
	Action: command.With(app.OpenTeam, gc),
}

func gc(c *cli.Context, s *app.Scope, p *command.Printer) error {
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	options := keep.GCOptions{Before: time.Now().Add(-cmdline.Duration(c, "keep")), KeepLast: c.Int("keep-last"), DryRun: c.Bool("dry-run")}
	looked, progress := 0, p.Progress("looking at old mail: %d messages")
	options.Progress = func() { looked++; progress(looked) }
	var total keep.Moved
	failed := s.Team.Each(func(b *maildir.Box) error { // the others go on
		messages, err := keep.GC(ctx, b, options)
		open, openErr := b.IDs(maildir.Range{Unread: true, Later: true, Owed: true}) // which gc never moves
		messages.Skipped += len(open)
		var events keep.Moved
		var eventsErr error
		events.Events, events.Bytes, eventsErr = b.Log().Archive(ctx, options.Before, options.DryRun)
		total.Add(messages)
		total.Add(events)
		return cmp.Or(ctx.Err(), err, openErr, eventsErr)
	})
	verb := "would move"
	if !options.DryRun {
		verb = "moved"
		s.Root.Stale(true)
		failed = cmp.Or(failed, presence.PruneTaken(s.Team), edits.PruneEdits(ctx, s.Team))
	}
	outboxes, err := s.Team.Store.Outboxes()
	failed = cmp.Or(failed, err)
	for _, b := range outboxes {
		_, err := keep.GC(ctx, b, options) // an outbox has only abandoned temp files
		failed = cmp.Or(failed, err)
	}
	what := "nothing"
	if total.Messages+total.Events > 0 {
		what = fmt.Sprintf("%s, %s, %s", letter.Many(total.Messages, "message"), letter.Many(total.Events, "event"), letter.Size(total.Bytes))
	}
	text := fmt.Sprintf("%s %s to the archive; %s in the inboxes", verb, what, letter.Many(total.Skipped, "message"))
	if !options.DryRun {
		p = p.Confirming()
	}
	return p.PrintDone(total, text, failed)
}
