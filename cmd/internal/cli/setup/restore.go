package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/backup"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

var restoreCommand = &cli.Command{
	Name: "restore", Category: "! import load", ArgsUsage: "FILE", Usage: "bring back the contents of a backup",
	UsageText: `atm restore atm-2026-05-01.tar                 where init would make a root
atm restore atm-2026-05-01.tar --root copy     somewhere else
atm restore atm-2026-05-01.tar --in-place      back to that day`,
	Description: `It makes a root where there is none. With --in-place it first renames the one that is there, with
all mail since. Nothing in the new root acts until somebody has seen it and said yes, with atm init.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "in-place", Usage: "set the root that is there aside first; nobody may run in it"},
	},
	Action: restore,
}

// restored is what restore prints.
type restored struct {
	backup.Size
	Root  string `json:"root"`
	Aside string `json:"aside,omitempty"` // what was there is here now
}

func restore(c *cli.Context) error {
	p, name := command.PrinterOf(c), c.Args().First()
	f, err := durable.OpenRegular(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) {
		return failure.Usage("%v", err).WithHint("`atm restore FILE` takes a file of atm backup; for a member: `atm team restore NAME`")
	} else if err != nil {
		return err
	}
	defer f.Close()
	var r restored
	if c.Bool("in-place") {
		r.Root, err = inPlace(p, name)
	} else {
		r.Root, err = emptyPlace(p, name)
	}
	if err != nil {
		return err
	}
	above, base := filepath.Split(r.Root)
	aside := ""
	if c.Bool("in-place") {
		aside = base + time.Now().UTC().Format(".20060102T150405")
		r.Aside = above + aside
	}
	if err = os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	in, err := durable.Open(above)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx, stop := output.UntilSignal(c.Context)
	defer stop()
	r.Size, err = backup.Restore(ctx, in, base, aside, f, p.Progress("restoring: %d messages"))
	if errors.Is(err, backup.ErrNotBackup) {
		return failure.Failed("restore %s: %w", name, err).WithHint("`atm restore FILE` takes a file of atm backup; nothing was restored")
	} else if err != nil {
		return fmt.Errorf("restore %s: %w", name, err)
	}
	text := fmt.Sprintf("restored %s: %s", letter.Escape(r.Root), letter.Many(r.Messages, "message"))
	if r.Aside != "" {
		text += "\nwhat was there is in " + letter.Escape(r.Aside)
	}
	text += "\nnothing there acts until somebody has seen it and said yes: " + p.Command("atm init")
	return p.Confirming().PrintAs(r, text)
}

// emptyPlace returns where init would make a root, or an error if something is there.
func emptyPlace(p *command.Printer, name string) (string, error) {
	found, err := rootdir.InitDir(p.Place(), false)
	if err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(found.Path); err == nil && len(entries) == 0 || errors.Is(err, fs.ErrNotExist) {
		return found.Path, nil
	}
	return "", failure.Refused("%s is there already", found.Path).
		WithHint("to set it aside first: `atm restore %s --in-place`; elsewhere: `atm restore %[1]s --root DIR`", policy.Quote(name))
}

// inPlace returns the root in force, or an error if it must not be set aside.
func inPlace(p *command.Printer, name string) (string, error) {
	s, err := app.OpenRoot(p.Given)
	if err != nil {
		return "", err
	}
	defer s.Root.Close()
	if s.IsInAgent() {
		return "", failure.Refused("an agent may not set a root aside").
			WithHint("ask your person; to look at what is in the backup: `atm restore %s --root DIR`", policy.Quote(name))
	}
	var running []string
	teams, err := s.Root.Teams()
	for _, team := range teams {
		t, _ := s.Root.Team(team) // Teams has opened it
		members, failed := t.Agents()
		for _, n := range members {
			if b := t.Box(n); b.IsRunning() {
				running = append(running, b.Address().String())
			}
		}
		err = cmp.Or(err, failed)
	}
	if err == nil && len(running) > 0 {
		err = failure.Refused("what runs here goes with the root that is set aside: %s", app.Join(running)).WithHint("stop it first: `atm down`")
	}
	return s.Root.Path, err
}
