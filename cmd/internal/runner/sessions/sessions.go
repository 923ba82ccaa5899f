// Package sessions is the runner's part in interactive sessions (package session): it follows the run of an agent.
//
// It attaches the agent to its sessions and detaches it, applies their rules, holds back human input while a session is
// paused and mail that is kept from the agent, and stops the agent when one is aborted or ends by its rules. Of the agent's
// answers it makes output of the sessions: events agent_output in the agent's log.
//
// Sessions that cannot be read hold no mail back, and what cannot be written is tried again.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Options say how the agent's sessions work, as configured when the runner started. Store and State are required.
type Options struct {
	Store   *session.Store // the team's, open until the agent has ended
	Begin   bool           // begin one if none is alive
	Capture Capture
	Mute    bool // human input is not allowed: it stays unread

	// WhyKept says why a message is kept from the agent as long as it runs; "": it is not. It must not block for long.
	// nil: none is.
	WhyKept func(*wire.Message) string

	Rules session.Rules
	State func() (*reducer.State, error) // what the agent's events say, by which the rules go
}

// Follow is for ptyrun.Options.
func (o Options) Follow(run ptyrun.Followed) ptyrun.Follower { return newFollower(o, run).follows() }

func newFollower(o Options, run ptyrun.Followed) *follower {
	if o.WhyKept == nil {
		o.WhyKept = func(*wire.Message) string { return "" }
	}
	return &follower{
		Options: o, run: run, agent: wire.Name(filepath.Base(run.Dir)), startedAt: time.Now(), held: map[wire.ID]*wire.Message{}, state: &reducer.State{},
	}
}

func (f *follower) follows() ptyrun.Follower {
	return ptyrun.Follower{Run: f.sync, HandleEvent: f.handleEvent, IsReady: f.isReady, Detach: f.detach, Withhold: f.withhold, Body: f.body}
}

// follower reads and changes the sessions' files, beside the runner's loop, and knows what it has read last.
type follower struct {
	Options
	run       ptyrun.Followed
	agent     wire.Name
	startedAt time.Time
	goalSeq   atomic.Uint64 // of the last event that says that a goal is reached

	isAttached bool // of sync, as is the following
	state      *reducer.State
	stateSeq   uint64 // the goalSeq that is in it

	hasSaid bool // words of the turn were emitted; of handleEvent

	reading  sync.Mutex // guards the following; the loop never takes it
	all      []*session.Session
	modified time.Time // the store's Modified before they were read

	lock    sync.Mutex                // guards the following
	isKnown bool                      // sync has looked at the sessions
	alive   []wire.UUID               // those that it has found alive
	held    map[wire.ID]*wire.Message // unread human input that was withheld once
}

const (
	syncEvery     = 500 * time.Millisecond // while a session is alive
	syncEveryIdle = 3 * time.Second        // else, so that an idle runner seldom wakes
	lastTurnTime  = 30 * time.Second       // for the turn that reached the goal to end
)

// sync looks at the agent's sessions again and again.
func (f *follower) sync(ctx context.Context) {
	for every := time.Duration(0); ; {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		if err := f.look(); err != nil {
			f.run.Log.Error("sessions", "err", err)
		}
		every = syncEveryIdle
		if len(f.alive) > 0 {
			every = syncEvery
		}
	}
}

// look reads the agent's sessions, and does what follows from what has changed. Before that it attaches the agent if it is not
// attached yet, or if a rule ends a session. What fails is tried again by the next call.
func (f *follower) look() error {
	isEngaged, err := f.run.IsEngaged(f.Rules.WhenIdle)
	if err != nil {
		return nil // the run is over
	}
	rules := f.Rules
	if isEngaged || !f.isAttached { // till then a session may have been quiet because nobody ran the agent
		rules.WhenIdle = 0
	}
	alive, err := f.read()
	isDue := func(s *session.Session) bool { return rules.Due(s, f.state, time.Now()) != "" }
	goals := f.goalSeq.Load()
	if !f.isAttached || goals > f.stateSeq || slices.ContainsFunc(alive, isDue) {
		state, failed := f.State()
		if failed == nil {
			f.state, f.stateSeq = state, goals
		}
		err = errors.Join(err, failed)
	}
	if !f.isAttached || slices.ContainsFunc(alive, isDue) {
		o := session.AttachOptions{Begin: f.Begin && !f.isAttached, Rules: rules, State: f.state}
		failed := f.Store.Attach(context.Background(), f.agent, o)
		f.isAttached = f.isAttached || failed == nil
		alive, err = f.read()
		err = errors.Join(failed, err)
	}
	before := f.alive
	f.found(alive)
	for _, id := range before {
		if s, bad := f.Store.Get(id); bad == nil && !slices.Contains(f.alive, id) {
			f.stopIfOver(s)
		}
	}
	return err
}

// read returns the sessions that go on, or that did if they cannot be read.
func (f *follower) read() ([]*session.Session, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	at := f.Store.Modified()
	if !at.IsZero() && at.Equal(f.modified) {
		return f.all, nil
	}
	all, err := f.Store.Of(f.agent)
	if err == nil {
		f.all, f.modified = all, at
	}
	return f.all, err
}

// found notes what sync has found, and has the runner ask again about human input that nothing withholds any more, in the
// order it was sent.
func (f *follower) found(all []*session.Session) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.isKnown, f.alive = true, nil
	for _, s := range all {
		f.alive = append(f.alive, s.SessionID)
	}
	for _, id := range slices.Sorted(maps.Keys(f.held)) {
		if why, _ := session.WithholdReason(f.held[id], all, f.Mute); why == "" {
			f.run.Reread(id)
		}
	}
}

// isReady reports whether the agent's sessions have been looked at once, so that whoever hears that the agent is ready
// finds the session that has begun with it.
func (f *follower) isReady() bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.isKnown
}

// stopIfOver stops the agent if a session was aborted, or if it was the last one and is complete by its rules: then
// after the turn that reached the goal.
func (f *follower) stopIfOver(s *session.Session) {
	name := wire.ID(s.SessionID).Short(6)
	switch {
	case s.State == session.Aborted:
		f.run.Stop("session "+name+" was aborted", 0)
	case s.EndedByRule() != "" && len(f.alive) == 0:
		f.run.Stop(fmt.Sprintf("session %s is complete (%s)", name, s.EndedByRule()), lastTurnTime)
	}
}

// handleEvent notes what is no longer unread and when a goal is reached, and captures the answers of turns.
func (f *follower) handleEvent(e *wire.Event) {
	f.lock.Lock()
	defer f.lock.Unlock()
	switch e.Kind {
	case wire.EventRead, wire.EventInjected, wire.EventWithdrawn:
		delete(f.held, e.MessageID())
	case wire.GoalComplete:
		f.goalSeq.Store(e.Seq)
	case wire.MessageDelta:
		f.captureWords(e)
	case wire.TurnCompleted:
		f.captureAnswer(e)
	}
}

// detach detaches the agent from its sessions; if it exited by itself they are complete.
func (f *follower) detach(exit ptyrun.Exit, failed error) {
	if err := f.carryOutAborts(); err != nil { // those that came too late for Retry
		f.run.Log.Error("sessions", "err", err)
	}
	isCompleted := failed == nil && !exit.Stopped && !exit.Loop && exit.Code == 0
	how := fmt.Sprintf("%s exited with %d", f.agent, exit.Code)
	switch {
	case failed != nil:
		how = fmt.Sprintf("the runner of %s ended: %v", f.agent, failed)
	case exit.Stopped:
		how = fmt.Sprintf("%s was stopped", f.agent)
	case isCompleted:
		how = fmt.Sprintf("%s has left", f.agent)
	}
	if err := f.Store.Detach(context.Background(), f.agent, isCompleted, how); err != nil {
		f.run.Log.Error("detaching from sessions", "err", err)
	}
}
