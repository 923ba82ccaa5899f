package ptyrun

import (
	"context"
	"log/slog"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Follower sees what the agent of a run does and gets, may hold back its mail, and may stop it. Package sessions has
// one. The runner calls its methods one at a time, and they must not block. But Run and Admit are called beside the
// others, and may block; with what the others use they work through Followed.Do.
type Follower interface {
	Run(ctx context.Context)        // until ctx ends
	Detach(exit Exit, failed error) // the last call, which may block; none if another runner has the agent by now
	IsReady() bool                  // it has begun to follow: until then the run is not called ready

	// WhyWithheld says why an unread message must not be given to the agent now; "": it may. It is asked when a message
	// has arrived or is reread, and again before it is given. Admit is asked before messages are claimed, and returns
	// those that may be given by what is on disk then.
	WhyWithheld(m *wire.Message) string
	Admit(ids []wire.ID) []wire.ID

	Body(m *wire.Message) string // what the agent gets as the message's body; called one at a time or beside
	HandleEvent(e *wire.Event)   // of the agent's log
}

// Followed is the run of an agent, for its follower. Retry and Stop may be called from anywhere, Do by what runs
// beside, and the rest by the methods that are called one at a time, and in Do.
type Followed struct {
	Dir string // of the agent: .atm/main/bob
	Log *slog.Logger

	r *runner
}

// Do calls a function between two of the calls that come one at a time. It returns false if the run is over.
func (f Followed) Do(do func()) bool { return f.r.Call(do) }

// Retry calls try beside the others until it succeeds, and when the run is over once more.
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
		if it, err := r.Box.Get(id); err == nil {
			r.Post(func() { r.inbox.Arrived(it, r.Now()) })
		}
	})
}

// Append appends an event to the agent's log.
func (f Followed) Append(e wire.Event) { f.r.Append(e) }

// IsEngaged reports whether the agent starts, works or is about to, or a person has typed in its terminal within some
// time.
func (f Followed) IsEngaged(within time.Duration) bool {
	r := f.r
	switch r.State.Word() {
	case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
		return true
	}
	return r.inbox.IsGiving() || r.Now().Before(r.LastKey.Add(within))
}

// noFollower follows nothing.
type noFollower struct{}

func (noFollower) Run(context.Context)              {}
func (noFollower) Detach(Exit, error)               {}
func (noFollower) IsReady() bool                    { return true }
func (noFollower) WhyWithheld(*wire.Message) string { return "" }
func (noFollower) Admit(ids []wire.ID) []wire.ID    { return ids }
func (noFollower) Body(m *wire.Message) string      { return m.Body }
func (noFollower) HandleEvent(*wire.Event)          {}
