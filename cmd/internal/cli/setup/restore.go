package setup

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/backup"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
)

var restoreCommand = &cli.Command{
	Name: "restore", ArgsUsage: "FILE", Usage: "bring back the contents of a backup",
	UsageText: `atm restore atm-2026-05-01.tar
atm restore atm-2026-05-01.tar --root .atm     where there is no root yet`,
	Action: restore,
}

func restore(c *cli.Context) error {
	return restoreFile(c.Context, command.PrinterOf(c), c.Args().First())
}

func restoreFile(ctx context.Context, p *command.Printer, name string) error {
	f, err := durable.OpenRegular(name, os.O_RDONLY)
	if err != nil {
		return failure.Usage("%v", err).WithHint("atm restore FILE takes a file of atm backup; for a member: atm team restore NAME")
	}
	defer f.Close()
	content, err := backup.Check(f)
	if errors.Is(err, rootdir.ErrNewer) {
		return fmt.Errorf("restore %s: %w", name, err)
	} else if err != nil {
		return failure.Failed("restore %s: %w", name, err).WithHint("atm restore FILE takes a file of atm backup; nothing was restored")
	}
	if place := p.Place(); place.Flag != "" || place.Env != "" {
		named, err := rootdir.InitDir(place, false)
		if err == nil {
			_, err = rootdir.Make(named.Path)
		}
		if err != nil {
			return err
		}
	}
	s, err := app.OpenRoot(p.Given)
	if errors.Is(err, rootdir.ErrNoRoot) {
		return failure.NotFound("%w", err).WithHint("name the root to restore into: atm restore %s --root .atm", policy.Quote(name))
	}
	if err == nil && s.IsInAgent() {
		if inUse, _ := s.Root.Teams(); len(inUse) > 0 && s.CheckAccepted() == nil {
			return failure.Refused("an agent may not restore into a root in use: nothing there acts until a person has accepted it").
				WithHint("ask your person; to look at what is in it: atm restore %s --root DIR", policy.Quote(name))
		}
	}
	if err == nil { // before anything of it is there
		err = s.Root.BeginRestore(f.Name(), content.SHA256)
	}
	if err != nil {
		return err
	}
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	moved, err := backup.Restore(ctx, s.Root, f, p.Progress(fmt.Sprintf("restoring: %%d of %s", letter.Many(content.Messages, "message"))))
	if err == nil {
		err = s.Root.EndRestore()
	}
	if errors.Is(err, context.Canceled) {
		e := failure.Failed("interrupted: restored %d of %s", moved.Messages+moved.Skipped, letter.Many(content.Messages, "message")).
			WithHint("run it again, and it goes on: atm restore %s", policy.Quote(name))
		e.Exit, e.Done = failure.ExitInterrupted, moved
		return e
	}
	for _, r := range moved.Refused {
		p.Warn("not restored: %s: %s", r.Name, r.Reason)
	}
	if moved.MoreRefused > 0 {
		p.Warn("not restored: %s", letter.Many(moved.MoreRefused, "more file"))
	}
	text := fmt.Sprintf("restored %s; %d already there", letter.Many(moved.Messages, "message"), moved.Skipped)
	text += "\nnothing there acts until somebody has seen it and said yes: " + p.CompleteHint("atm init")
	return p.PrintUnlessError(err, moved, text)
}
