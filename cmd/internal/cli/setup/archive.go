package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/backup"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
)

var gcCommand = &cli.Command{
	Name: "gc", Usage: "move old finished messages and events to the archive",
	UsageText: `atm gc --dry-run
atm gc --keep 7d`,
	Description: "Leaves unread and owed mail alone, and deletes nothing. Works in whole days.",
	Flags: []cli.Flag{
		cmdline.DurationFlag("keep", 30*24*time.Hour, "keep what is newer than `D` (default 30d)", "older-than"),
		&cli.UintFlag{Name: "keep-last", Value: 100, Usage: "keep the newest `N` of each inbox (default 100)"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only count; the totals are the same"},
	},
	Action: command.With(app.OpenTeam, gc),
}

func gc(c *cli.Context, s *app.Scope, p *command.Printer) error {
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	options := maildir.GCOptions{Before: time.Now().Add(-cmdline.Duration(c, "keep")), KeepLast: int(c.Uint("keep-last")), DryRun: c.Bool("dry-run")}
	looked, progress := 0, p.Progress("looking at old mail: %d messages")
	options.Progress = func() { looked++; progress(looked) }
	var total maildir.Moved
	failed := s.Team.Each(func(b *maildir.Box) error { // the others go on
		messages, err := b.GC(ctx, options)
		open, openErr := b.IDs(maildir.Range{Unread: true, Owed: true}) // which gc never moves
		messages.Skipped += len(open)
		events, eventsErr := s.Team.ArchiveEvents(ctx, b.Agent(), options.Before, options.DryRun)
		total.Add(messages)
		total.Add(events)
		return cmp.Or(ctx.Err(), err, openErr, eventsErr)
	})
	verb := "would move"
	if !options.DryRun {
		verb = "moved"
		s.Root.Stale(true)
		failed = cmp.Or(failed, s.Team.PruneTaken())
	}
	outboxes, err := s.Team.Outboxes()
	failed = cmp.Or(failed, err)
	for _, b := range outboxes {
		_, err := b.GC(ctx, options) // an outbox has only abandoned temp files
		failed = cmp.Or(failed, err)
	}
	what := "nothing"
	if total.Messages+total.Events > 0 {
		what = fmt.Sprintf("%s, %s, %s", letter.Many(total.Messages, "message"), letter.Many(total.Events, "event"), letter.Size(total.Bytes))
	}
	text := fmt.Sprintf("%s %s to the archive; %s in the inboxes", verb, what, letter.Many(total.Skipped, "message"))
	return p.PrintDone(total, text, failed)
}

var backupCommand = &cli.Command{
	Name: "backup", ArgsUsage: "FILE", Usage: "save the whole root in one file",
	UsageText:   "atm backup atm-2026-05-01.tar",
	Description: "Safe while others send. Never replaces a file. Leaves out what is not atm's: atm doctor names it.",
	Flags:       []cli.Flag{cmdline.NoFlag("output o file f to", "leave it out: atm backup FILE")},
	Action:      command.With(app.OpenRoot, runBackup),
}

var restoreCommand = &cli.Command{
	Name: "restore", ArgsUsage: "FILE", Usage: "bring back the contents of a backup",
	UsageText: `atm restore atm-2026-05-01.tar
atm restore atm-2026-05-01.tar --root .atm     where there is no root yet`,
	Action: restore,
}

// runBackup writes a temp file beside the target, and renames it when it is complete.
func runBackup(c *cli.Context, s *app.Scope, p *command.Printer) error {
	path := c.Args().First()
	if path == "-" {
		return failure.Usage("atm backup writes a file, not to stdout").WithHint("atm backup atm.tar")
	}
	exists := failure.Refused("%s already exists", path).WithHint("use another name")
	if _, err := os.Lstat(path); err == nil {
		return exists
	}
	removeAbandoned(filepath.Dir(path))
	temp, err := os.CreateTemp(filepath.Dir(path), backupTemp+"*")
	if err != nil {
		return failure.Failed("backup %s: %w", path, errors.Unwrap(err)).WithHint("name a file in a directory that you can write to")
	}
	defer os.Remove(temp.Name())
	temp.Chmod(0o600) // under any umask; exFAT, which has no rights, refuses
	release, _ := lockfile.HoldFile(temp.Name())
	defer release()
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	moved, missing, err := backup.Write(ctx, s.Root, temp, p.Progress("backing up: %d messages"))
	if err == nil {
		err = temp.Sync()
	}
	if info, statErr := temp.Stat(); statErr == nil {
		moved.Bytes = info.Size()
	}
	if err = cmp.Or(err, temp.Close()); err != nil {
		return err
	}
	dir, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := publish(dir, filepath.Base(temp.Name()), filepath.Base(path)); errors.Is(err, fs.ErrExist) {
		return exists
	} else if err != nil {
		return err
	}
	text := fmt.Sprintf("backed up %s, %s; %s skipped",
		letter.Many(moved.Messages, "message"), letter.Size(moved.Bytes), letter.Many(moved.Skipped, "message"))
	return p.PrintDone(moved, text, missing)
}

// publish gives a file its name, durably. It makes no second name, which exFAT does not have.
func publish(dir *durable.Root, temp, name string) error {
	return cmp.Or(dir.Move(temp, name), dir.Sync("."))
}

const backupTemp = ".atm-backup-"

// removeAbandoned removes what killed backups have left in a directory. One that has just begun is not locked yet.
func removeAbandoned(dir string) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		info, err := f.Info()
		if !strings.HasPrefix(f.Name(), backupTemp) || err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < time.Second {
			continue
		}
		path := filepath.Join(dir, f.Name())
		if release, isAbandoned := lockfile.HoldFile(path); isAbandoned {
			os.Remove(path)
			release()
		}
	}
}

func restore(c *cli.Context) error {
	f, err := durable.OpenRegular(c.Args().First(), os.O_RDONLY)
	if err != nil {
		return failure.Usage("%v", err).WithHint("atm restore FILE takes a file of atm backup; for a member: atm team restore NAME")
	}
	defer f.Close()
	content, err := backup.Check(f)
	if err != nil {
		return failure.Failed("restore %s: %w", c.Args().First(), err).WithHint("atm restore FILE takes a file of atm backup; nothing was restored")
	}
	if place := command.Given(c).Place(); place.Flag != "" || place.Env != "" {
		named, err := rootdir.InitDir(place, false)
		if err == nil {
			_, err = rootdir.Make(named.Path)
		}
		if err != nil {
			return err
		}
	}
	s, err := app.OpenRoot(command.Given(c))
	if errors.Is(err, rootdir.ErrNoRoot) {
		return failure.NotFound("%w", err).WithHint("name the root to restore into: atm restore %s --root .atm", policy.Quote(c.Args().First()))
	}
	if err == nil && s.IsInAgent() {
		if inUse, _ := s.Root.Teams(); len(inUse) > 0 && s.CheckAccepted() == nil {
			return failure.Refused("an agent may not restore into a root in use: nothing there acts until a person has accepted it").
				WithHint("ask your person; to look at what is in it: atm restore %s --root DIR", policy.Quote(c.Args().First()))
		}
	}
	if err == nil { // before anything of it is there
		err = s.Root.BeginRestore(f.Name(), content.SHA256)
	}
	if err != nil {
		return err
	}
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	moved, err := backup.Restore(ctx, s.Root, f, command.PrinterOf(c).Progress(fmt.Sprintf("restoring: %%d of %s", letter.Many(content.Messages, "message"))))
	if err == nil {
		err = s.Root.EndRestore()
	}
	if errors.Is(err, context.Canceled) {
		e := failure.Failed("interrupted: restored %d of %s", moved.Messages+moved.Skipped, letter.Many(content.Messages, "message")).
			WithHint("run it again, and it goes on: atm restore %s", policy.Quote(c.Args().First()))
		e.Exit, e.Done = failure.ExitInterrupted, moved
		return e
	}
	for _, r := range moved.Refused {
		command.PrinterOf(c).Warn("not restored: %s: %s", r.Name, r.Reason)
	}
	if moved.MoreRefused > 0 {
		command.PrinterOf(c).Warn("not restored: %s", letter.Many(moved.MoreRefused, "more file"))
	}
	text := fmt.Sprintf("restored %s; %d already there", letter.Many(moved.Messages, "message"), moved.Skipped)
	text += "\nnothing there acts until somebody has seen it and said yes: " + command.Given(c).CompleteHint("atm init")
	return command.PrinterOf(c).PrintUnlessError(err, moved, text)
}
