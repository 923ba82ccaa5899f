package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/backup"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

var restoreCommand = &cli.Command{
	Name: "restore", Category: "! import load", ArgsUsage: "FILE", Usage: "bring back the contents of a backup",
	UsageText: `atm restore atm-2026-05-01.tar
atm restore atm-2026-05-01.tar --root .atm     where there is no root yet`,
	Description: `What is there stays as it is. If the backup brings something, nothing in the root acts
until somebody has seen it and said yes, with atm init. Where agents run, that takes --yes.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "yes", Usage: "also where agents run, which get no mail and no answers then"},
	},
	Action: restore,
}

func restore(c *cli.Context) error {
	return restoreFile(c.Context, command.PrinterOf(c), c.Args().First(), c.Bool("yes"))
}

func restoreFile(ctx context.Context, p *command.Printer, name string, isSure bool) error {
	f, err := durable.OpenRegular(name, os.O_RDONLY)
	if err != nil {
		return failure.Usage("%v", err).WithHint("`atm restore FILE` takes a file of atm backup; for a member: `atm team restore NAME`")
	}
	defer f.Close()
	content, err := backup.Check(f)
	if errors.Is(err, rootdir.ErrNewer) {
		return fmt.Errorf("restore %s: %w", name, err)
	} else if err != nil {
		return failure.Failed("restore %s: %w", name, err).WithHint("`atm restore FILE` takes a file of atm backup; nothing was restored")
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
		return failure.NotFound("%w", err).WithHint("name the root to restore into: `atm restore %s --root .atm`", policy.Quote(name))
	}
	if err == nil && s.IsInAgent() {
		if inUse, _ := s.Root.Teams(); len(inUse) > 0 && s.CheckAccepted() == nil {
			return failure.Refused("an agent may not restore into a root in use: nothing there acts until a person has accepted it").
				WithHint("ask your person; to look at what is in it: `atm restore %s --root DIR`", policy.Quote(name))
		}
	}
	if err != nil {
		return err
	}
	ctx, stop := output.UntilSignal(ctx) // and then it says how to go on, however slow the disk is
	defer stop()
	if rootdir.CheckRestored(s.Root.Path) == nil {
		there, isNew, damaged := backup.Brings(ctx, s.Root, f)
		if damaged == nil && !isNew {
			warnOfRefused(p, there)
			return p.PrintDone(there, "nothing new, and nothing was changed: "+letter.Many(there.Skipped, "message")+" of it already there", nil)
		}
		if err = cmp.Or(ctx.Err(), mayStopTeams(s, name, isSure)); errors.Is(err, context.Canceled) {
			e := failure.Failed("interrupted: nothing was restored").WithHint("run it again: `atm restore %s`", policy.Quote(name))
			e.Exit = failure.ExitInterrupted
			return e
		}
		if err != nil {
			return err
		}
	}
	// Before anything of it is there.
	if err = s.Root.BeginRestore(f.Name(), content.SHA256); err != nil {
		return err
	}
	moved, err := backup.Restore(ctx, s.Root, f, p.Progress(fmt.Sprintf("restoring: %%d of %s", letter.Many(content.Messages, "message"))))
	if err == nil {
		err = s.Root.EndRestore()
	}
	if errors.Is(err, context.Canceled) {
		e := failure.Failed("interrupted: restored %d of %s", moved.Messages+moved.Skipped, letter.Many(content.Messages, "message")).
			WithHint("run it again, and it goes on: `atm restore %s`", policy.Quote(name))
		e.Exit, e.Done = failure.ExitInterrupted, moved
		return e
	}
	warnOfRefused(p, moved)
	text := fmt.Sprintf("restored %s; %d already there", letter.Many(moved.Messages, "message"), moved.Skipped)
	text += "\nnothing there acts until somebody has seen it and said yes: " + p.Command("atm init")
	return p.PrintUnlessError(err, moved, text)
}

func warnOfRefused(p *command.Printer, r backup.Restored) {
	for _, refused := range r.Refused {
		p.Warn("not restored: %s: %s", refused.Name, refused.Reason)
	}
	if r.MoreRefused > 0 {
		p.Warn("not restored: %s", letter.Many(r.MoreRefused, "more file"))
	}
}

// mayStopTeams refuses a restore that stops running agents, unless its person is sure.
func mayStopTeams(s *app.Scope, name string, isSure bool) error {
	if isSure || s.CheckAccepted() != nil { // nothing acts there now
		return nil
	}
	var running []string
	teams, err := s.Root.Teams()
	for _, team := range teams {
		t, _ := s.Root.Team(team) // Teams has opened it
		members, _ := t.Agents()
		for _, n := range members {
			if isRunning, _ := t.Running(n); isRunning || len(programs.Of(t, n)) > 0 {
				running = append(running, t.Box(n).Address().String())
			}
		}
	}
	if err != nil || len(running) == 0 {
		return err
	}
	verb := "run"
	if len(running) == 1 {
		verb = "runs"
	}
	return failure.Refused("%s %s here: once something is restored, no mail is handed over or typed in, no rule answers, until somebody has seen all of it and said yes with atm init",
		app.Join(running), verb).WithHint("to restore it all the same: `atm restore %s --yes`", policy.Quote(name))
}
