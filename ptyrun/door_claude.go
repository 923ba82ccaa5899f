package ptyrun

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/push/claude"
	ways "github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/process"
)

// claudeDoor is the inbox socket of a Claude Code, which its own process or one below it has.
type claudeDoor struct {
	env         []string // that it was started with
	pid         int
	command     []string
	isBypassing bool // its screen says that it asks for no permission
	session     *claude.Session
}

// isBypassing reports whether a command line of Claude Code turns its questions off.
func isBypassing(command []string) bool {
	return slices.ContainsFunc(command, func(arg string) bool {
		return strings.Contains(arg, "dangerously-skip-permissions") || strings.Contains(arg, "bypassPermissions")
	})
}

// showsBypass is the same for a row of its screen.
func showsBypass(row string) bool { return strings.Contains(row, "bypass permissions on") }

func (d *claudeDoor) by() string { return ways.InboxSocket }

func (d *claudeDoor) isVerbatim() bool { return true } // TestMailIsData tries that

func (d *claudeDoor) look(_ context.Context, screen []string) error {
	d.isBypassing = slices.ContainsFunc(screen, showsBypass)
	return d.find()
}

func (d *claudeDoor) find() (err error) {
	for _, env := range [][]string{process.Environment(d.pid), d.env} { // a script may have changed it
		if d.session, err = claude.FindBelow(claude.ConfigDir(env), d.pid); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if d.isBypassing || isBypassing(d.command) {
		d.session.Mode = "bypassPermissions"
	}
	return d.session.MayTake()
}

func (d *claudeDoor) push(ctx context.Context, out pushText) error {
	if err := d.find(); err != nil { // the process may have ended, and another one begun
		return err
	}
	err := d.session.Send(ctx, out.from, out.text)
	if errors.Is(err, claude.ErrUnconfirmed) {
		return errUnconfirmed
	}
	return err
}

func (d *claudeDoor) isReceived() bool { return false } // it tells its hooks
