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
	"time"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Options say how the agent's sessions work, as configured when the runner started. Store is required.
type Options struct {
	Store   *session.Store // the team's, open until the agent has ended
	Begin   bool           // begin one if none is alive
	Capture Capture
	Mute    bool // human input is not allowed: it stays unread

	// WhyKept says why a message is kept from the agent as long as it runs; "": it is not. It must not block for long.
	// nil: none is.
	WhyKept func(*wire.Message) string

	Rules session.Rules
}

// Follow is for ptyrun.Options.
func (o Options) Follow(run ptyrun.Followed) ptyrun.Follower {
	if o.WhyKept == nil {
		o.WhyKept = func(*wire.Message) string { return "" }
	}
	return &follower{
		Options: o, run: run, agent: wire.Name(filepath.Base(run.Dir)), startedAt: time.Now(), input: map[wire.ID]*wire.Message{},
	}
}

// follower reads and changes the sessions' files beside the methods that the runner calls one at a time. These have a
// copy of what was read last.
type follower struct {
	Options
	run       ptyrun.Followed
	agent     wire.Name
	startedAt time.Time

	isKnown bool                      // the sessions have been read
	all     []*session.Session        // the copy
	input   map[wire.ID]*wire.Message // human input that was unread
	goalSeq uint64                    // of the last event that says that a goal is reached
	hasSaid bool                      // words of the turn were emitted

	syncing    sync.Mutex // guards the following
	isAttached bool
	modified   time.Time // the store's Modified before the sessions were read last
}

const (
	syncEvery     = 500 * time.Millisecond // while a session is alive
	syncEveryIdle = 3 * time.Second        // else, so that an idle runner seldom wakes
	lastTurnTime  = 30 * time.Second       // for the turn that reached the goal to end
)

// Run syncs the agent's sessions.
func (f *follower) Run(ctx context.Context) {
	for every := time.Duration(0); ; {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		isAnyAlive, err := f.sync()
		if err != nil {
			f.run.Log.Error("sessions", "err", err)
		}
		every = syncEveryIdle
		if isAnyAlive {
			every = syncEvery
		}
	}
}

// sync reads the agent's sessions. Before that it attaches the agent if it is not attached yet, if a rule ends a session,
// or if one has not folded that its goal is reached. What fails is tried again by the next call.
func (f *follower) sync() (isAnyAlive bool, err error) {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	var all []*session.Session
	var goalSeq uint64
	o := session.AttachOptions{Begin: f.Begin && !f.isAttached, Rules: f.Rules}
	if !f.run.Do(func() {
		all, goalSeq = f.all, f.goalSeq
		// Before it was attached, a session may have been quiet because nobody ran the agent.
		if o.IsEngaged = !f.isAttached || f.run.IsEngaged(f.Rules.WhenIdle); o.IsEngaged {
			o.Rules.WhenIdle = 0
		}
	}) {
		return false, nil
	}
	all, err = f.read(all)
	isDue := func(s *session.Session) bool {
		return s.State.Alive() && s.Notes.Seq < goalSeq || s.EndedBy(o.Rules, time.Now()) != ""
	}
	if !f.isAttached || slices.ContainsFunc(all, isDue) {
		failed := f.Store.Attach(context.Background(), f.agent, o)
		f.isAttached = f.isAttached || failed == nil
		all, err = f.read(all)
		err = errors.Join(failed, err)
	}
	f.run.Do(func() { f.update(all) })
	return len(aliveOf(all)) > 0, err
}

// read returns the sessions as they are now; before is what it returned last. The caller holds syncing.
func (f *follower) read(before []*session.Session) ([]*session.Session, error) {
	at := f.Store.Modified()
	if !at.IsZero() && at.Equal(f.modified) {
		return before, nil
	}
	all, err := f.Store.AgentSessions(f.agent, before)
	if err == nil {
		f.modified = at
	}
	return all, err
}

func aliveOf(all []*session.Session) (ids []wire.UUID) {
	for _, s := range all {
		if s.State.Alive() {
			ids = append(ids, s.SessionID)
		}
	}
	return ids
}

// update replaces the copy, and does what follows from the changes.
func (f *follower) update(all []*session.Session) {
	before := aliveOf(f.all)
	withheld := map[wire.ID]bool{}
	for id, m := range f.input {
		withheld[id] = f.WhyWithheld(m) != ""
	}
	f.all, f.isKnown = all, true
	for _, s := range all {
		if slices.Contains(before, s.SessionID) {
			f.stopIfOver(s)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(withheld)) { // in the order they were sent
		if withheld[id] != (f.WhyWithheld(f.input[id]) != "") {
			f.run.Reread(id)
		}
	}
}

// IsReady reports whether the agent's sessions have been looked at once, so that whoever hears that the agent is ready
// finds the session that has begun with it.
func (f *follower) IsReady() bool { return f.isKnown }

// stopIfOver stops the agent if a session was aborted, or if it was the last one and is complete by its rules: then
// after the turn that reached the goal.
func (f *follower) stopIfOver(s *session.Session) {
	name := wire.ID(s.SessionID).Short(6)
	switch {
	case s.State == session.Aborted:
		f.run.Stop("session "+name+" was aborted", 0)
	case s.State == session.Completed && s.Notes.Runner.Ended != "" && len(aliveOf(f.all)) == 0:
		f.run.Stop(fmt.Sprintf("session %s is complete (%s)", name, s.Notes.Runner.Ended), lastTurnTime)
	}
}

// HandleEvent notes what is no longer unread and when a goal is reached, and captures the answers of turns.
func (f *follower) HandleEvent(e *wire.Event) {
	switch e.Kind {
	case wire.EventRead, wire.EventInjected, wire.EventWithdrawn:
		delete(f.input, e.MessageID())
	case wire.GoalComplete:
		f.goalSeq = e.Seq
	case wire.MessageDelta:
		f.captureWords(e)
	case wire.TurnCompleted:
		f.captureAnswer(e)
	}
}

// Detach detaches the agent from its sessions; if it exited by itself they are complete.
func (f *follower) Detach(exit ptyrun.Exit, failed error) {
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
