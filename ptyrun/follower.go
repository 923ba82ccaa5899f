package ptyrun

import (
	"context"
	"log/slog"
	"time"

	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Follower sees what the agent of a run does and gets, may hold back its mail, and may stop it. Package sessions has
// one. What it does not do is nil. Run, Withhold and Body are called beside the loop, at any time, and may block; the
// others are called by the loop, and must not.
type Follower struct {
	Run         func(ctx context.Context)     // until ctx ends
	HandleEvent func(e *wire.Event)           // of the agent's log
	IsReady     func() bool                   // it has begun to follow: until then the run is not called ready
	Detach      func(exit Exit, failed error) // the last call, which may block; none if another runner has the agent by now
	Withhold    func(m *wire.Message) string  // why an unread message must not be given to the agent now; "": it may
	Body        func(m *wire.Message) string  // what the agent gets as the message's body
}

// Followed is the run of an agent, for its follower. Append is for HandleEvent, IsEngaged for what runs beside the loop.
type Followed struct {
	Dir string // of the agent: .atm/main/bob
	Log *slog.Logger

	r *runner
}

// Retry calls try beside the loop until it succeeds, and when the run is over once more.
func (f Followed) Retry(what string, try func() error) { f.r.Go(func() { f.r.Retry(what, try) }) }

// Stop stops the agent when its turn is over, or after patience. Mail that it has stays read: with what it was about it is
// over.
func (f Followed) Stop(why string, patience time.Duration) {
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

// Reread asks again whether a message is withheld, and acts on it.
func (f Followed) Reread(id wire.ID) {
	r := f.r
	r.Go(func() {
		if tell := r.inbox.Read(id); tell != nil {
			r.Post(tell)
		}
	})
}

// Append appends an event to the agent's log.
func (f Followed) Append(e wire.Event) { f.r.Append(e) }

// IsEngaged reports whether the agent starts, works or is about to, or a person has typed in its terminal within some
// time. It fails with the run.
func (f Followed) IsEngaged(within time.Duration) (isEngaged bool, err error) {
	r := f.r
	return loop.In(r.Loop, func() (bool, error) {
		switch r.State.Word() {
		case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
			return true, nil
		}
		return r.inbox.IsGiving() || r.Now().Before(r.LastKey.Add(within)), nil
	})
}
