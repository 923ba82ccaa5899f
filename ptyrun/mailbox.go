package ptyrun

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir/snapshot"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
)

// Mail is an agent's mailbox, from which it gets mail and in whose log its events are. One process at a time runs the
// agent: the one that holds the runner lock. Start holds it until Close, unless the caller does from Hold to Release.
type Mail struct {
	// Mailbox is that of a member: teams.Team.Mailbox. The team must stay open. Its Options.MayAct says whether mail may
	// be typed and rules may answer; without it nothing may in a root in which git tracks files.
	Mailbox *mailbox.Mailbox

	hold  *claim.Runner // nil: it is not held
	state reducer.State // the fold of its events; those after its Seq are followed
}

func (m *Mail) box() *maildir.Box { return (*maildir.Box)(m.Mailbox) }

// Hold takes the runner lock, for a caller who has to look at something under the lock before Start.
func (m *Mail) Hold(ctx context.Context) error {
	if m.Mailbox == nil || !m.box().Store().IsOfRoot {
		return errors.New("hold a mailbox: it is of no open team: take one of teams.Team.Mailbox")
	}
	hold, err := claim.HoldRunner(ctx, m.box().Store(), m.box().Agent())
	if err != nil {
		return err
	}
	state, err := snapshot.State(m.box())
	if err != nil {
		return errors.Join(err, hold.Release())
	}
	m.hold, m.state = hold, *state
	return nil
}

// Release gives up the runner lock. It may be called twice.
func (m *Mail) Release() error {
	if m.hold == nil {
		return nil
	}
	err := m.hold.Release()
	m.hold = nil
	return err
}
