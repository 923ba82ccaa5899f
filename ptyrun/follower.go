package ptyrun

import (
	"log/slog"
	"time"

	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// followed is a runhost.Followed.
type followed struct{ r *runner }

func (f followed) Agent() wire.Name                    { return f.r.Box.Agent() }
func (f followed) Log() *slog.Logger                   { return f.r.Options.Log }
func (f followed) Append(e wire.Event)                 { f.r.Append(e) }
func (f followed) Retry(what string, try func() error) { f.r.Go(func() { f.r.Retry(what, try) }) }

func (f followed) Stop(why string, patience time.Duration) {
	r := f.r
	r.Go(func() {
		r.Poll(patience, func() bool { return r.State.Session().Word() != reducer.WordBusy && r.IsLogged() })
		r.Post(func() {
			if r.stopping == nil {
				r.Notify(why)
			}
			r.stopWith(why, func() {})
		})
	})
}

func (f followed) Reread(id wire.ID) { f.r.inbox.Reread(id) }

func (f followed) IsEngaged(within time.Duration) (isEngaged bool, err error) {
	r := f.r
	return loop.In(r.Loop, func() (bool, error) {
		switch r.State.Word() {
		case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
			return true, nil
		}
		return r.inbox.IsGiving() || r.Now().Before(r.LastKey.Add(within)), nil
	})
}
