package ptyrun

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Mail is an agent's mailbox, from which it gets mail and in whose log its events are. One process at a time runs the
// agent: the one that holds the runner lock. Start holds it until Close, unless the caller does from Hold to Release.
type Mail struct {
	Dir string // the agent's directory in a team's, such as .atm/main/bob

	// BeforeLook is called before the mailbox is looked at, and the function that it returns after it. That returns why
	// no mail may be typed and no rule may answer. Nil: nothing may in a root in which git tracks files.
	BeforeLook func() (mayAct func(context.Context) error)

	box   *maildir.Box
	hold  *claim.Runner // nil: it is not held
	state reducer.State // the fold of its events; those after its Seq are followed
	close func() error
}

// Hold opens the mailbox and takes the runner lock, for a caller who has to look at something under the lock before
// Start.
func (m *Mail) Hold(ctx context.Context) (err error) {
	if m.Dir == "" {
		return errors.New("hold a mailbox: it has no directory")
	}
	dir, err := filepath.Abs(m.Dir)
	if err != nil {
		return err
	}
	team, agent := filepath.Dir(dir), wire.Name(filepath.Base(dir))
	root, err := teamdir.Open(filepath.Dir(team), notices.Tell)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			root.Close()
		}
	}()
	t, err := root.Team(wire.Name(filepath.Base(team)))
	if err != nil {
		return err
	}
	if m.BeforeLook != nil {
		t.Store.BeforeLook = m.BeforeLook
	}
	hold, err := claim.HoldRunner(ctx, t.Store, agent)
	if err != nil {
		return err
	}
	state, err := t.State(agent)
	if err != nil {
		return errors.Join(err, hold.Release())
	}
	m.box, m.hold, m.state, m.close = t.Box(agent), hold, *state, root.Close
	return nil
}

// Release gives up the runner lock. It may be called twice.
func (m *Mail) Release() error {
	if m.hold == nil {
		return nil
	}
	err := errors.Join(m.hold.Release(), m.close())
	m.hold = nil
	return err
}
