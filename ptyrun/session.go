package ptyrun

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Sessions say how the agent's interactive sessions work, as configured when the runner started.
type Sessions struct {
	Begin   bool // begin one if none is alive
	Capture Capture
	Mute    bool // human input is not allowed: it stays unread
	Rules   session.Rules
}

// binding binds the runner to its agent's sessions. Their files are read and changed by syncs, which run beside the
// loop, one at a time. A sync does what is pending when it begins; what fails stays pending.
type binding struct {
	Sessions
	store     *session.Store
	startedAt time.Time

	isSyncing  bool
	syncedAt   time.Time // the start of the last sync
	modified   time.Time // of the session files, when they were last read; zero: unknown. Only a sync sets it
	syncFailed bool      // the last one

	isAttached    bool // the sessions' files name the agent
	attachedLines bool // and say that their output is lines
	hasGoal       bool // pending: a goal is complete, apply the rules
	hasAbort      bool // pending: a person sent an abort

	isKnown   bool                    // the sessions have been read
	all       []*session.Session      // as last read
	idleAt    time.Time               // when the next session may time out; zero: none can
	input     map[wire.ID]*humanInput // unread
	endReason string                  // not "": a session is complete, stop the agent after its turn
	endBy     time.Time               // or then
}

// humanInput is a message to a session, and why it must not be typed; "": it may.
type humanInput struct {
	*mailbox.Item
	withheld string
}

const (
	syncEvery     = 500 * time.Millisecond // while a session is alive
	syncEveryIdle = 3 * time.Second        // else, so that an idle runner seldom wakes
	resyncAfter   = 50 * time.Millisecond  // a sync, before mail is typed
	lastTurnTime  = 30 * time.Second       // for the turn that reached the goal to end
)

func newBinding(o *Sessions, box *mailbox.Box, now time.Time) *binding {
	if o == nil {
		return nil
	}
	return &binding{
		Sessions: *o, store: &session.Store{Mail: box.Store()}, startedAt: now,
		input: map[wire.ID]*humanInput{},
	}
}

// unbindSessions detaches the agent from its sessions; if it exited by itself they are complete. If another runner has
// the agent by now, the sessions are that runner's.
func (r *runner) unbindSessions(failed error) {
	b := r.binding
	if b == nil || !r.Hold.StillHeld() {
		return
	}
	// Carry out aborts that came meanwhile or failed before.
	if err := r.abortAll(); err != nil {
		r.Log.Error("sessions", "err", err)
	}
	name, e := r.Box.Agent(), r.exit
	isCompleted := failed == nil && !e.Stopped && !e.Loop && e.Code == 0
	how := fmt.Sprintf("%s exited with %d", name, e.Code)
	switch {
	case failed != nil:
		how = fmt.Sprintf("the runner of %s ended: %v", name, failed)
	case e.Stopped:
		how = fmt.Sprintf("%s was stopped", name)
	case isCompleted:
		how = fmt.Sprintf("%s has left", name)
	}
	if err := b.store.Detach(r.ctx, name, isCompleted, how); err != nil {
		r.Log.Error("detaching from sessions", "err", err)
	}
}

func (r *runner) stepSessions(now time.Time) {
	b := r.binding
	if b == nil {
		return
	}
	if b.endReason != "" && r.stopping == nil {
		if r.state.Turn().Word() != reducer.WordBusy || !r.mustWait(b.endBy, now) {
			r.stopForSession(b.endReason)
		}
	}
	r.captureResting(now)
	isIdle := !b.idleAt.IsZero() && !r.mustWait(b.idleAt, now) && !r.isEngaged()
	every := syncEvery
	if len(b.alive()) == 0 && !b.hasAbort {
		every = syncEveryIdle
	}
	if b.isSyncing || r.mustWait(b.syncedAt.Add(every), now) {
		return
	}
	isAttached := b.isAttached && b.attachedLines == r.capturesLines(now)
	if !isAttached || b.hasGoal || b.hasAbort || isIdle || b.mayHaveChanged() {
		r.startSync(now, b.hasGoal || isIdle)
		return
	}
	b.syncedAt = now
	r.wakeAt(now.Add(every))
}

func (b *binding) mayHaveChanged() bool {
	at := b.store.Modified()
	return at.IsZero() || !at.Equal(b.modified)
}

func (b *binding) readSessions(agent wire.Name) (all []*session.Session, err error) {
	at := b.store.Modified()
	if all, err = b.store.AgentSessions(agent, b.all); err == nil {
		b.modified = at
	}
	return all, err
}

// startSync does beside the loop what is pending, and reads the sessions.
func (r *runner) startSync(now time.Time, applyRules bool) {
	b, agent := r.binding, r.Box.Agent()
	b.isSyncing, b.syncedAt = true, now
	hadGoal, hadAbort := b.hasGoal, b.hasAbort
	b.hasGoal, b.hasAbort = false, false
	attach := session.AttachOptions{Begin: b.Begin && !b.isAttached, CapturesLines: r.capturesLines(now), Rules: b.Rules}
	isAttached := b.isAttached && b.attachedLines == attach.CapturesLines
	var ruled []wire.UUID
	if applyRules {
		ruled = b.alive()
	}
	isBusy := r.isEngaged()
	r.wg.Go(func() {
		var aborted, attached, applied error
		if hadAbort {
			aborted = r.abortAll()
		}
		if !isAttached {
			attached = b.store.Attach(r.ctx, agent, attach)
		}
		for _, id := range ruled {
			_, err := b.store.Change(r.ctx, id, func(s *session.Session) error { return s.ApplyRules(b.Rules, isBusy, time.Now()) })
			applied = errors.Join(applied, err)
		}
		all, bad := b.readSessions(agent)
		r.post(func() {
			b.isSyncing = false
			b.hasAbort = b.hasAbort || aborted != nil
			b.hasGoal = b.hasGoal || hadGoal && applied != nil
			if attached == nil {
				b.isAttached, b.attachedLines = true, attach.CapturesLines
			}
			err := errors.Join(aborted, attached, applied, bad)
			b.syncFailed = err != nil
			if err != nil {
				r.Log.Error("sessions", "err", err)
			}
			r.updateSessions(all)
		})
	})
}

func (r *runner) abortAll() error {
	var aborts []session.Input
	_, _, err := r.Box.Walk(r.ctx, mailbox.Range{Unread: true}, func(it *mailbox.Item) bool {
		if in, ok := session.InputOf(it.Message); ok && in.Kind == "abort" {
			aborts = append(aborts, in)
		}
		return true
	})
	for _, in := range aborts {
		err = errors.Join(err, r.abort(in))
	}
	return err
}

// abort aborts the sessions that an abort is for, and stops the agent even if they are locked or cannot be written. The
// abort is never typed; it is read when all is done. The agent is not stopped by an abort that is older than this run,
// or whose session was already over.
func (r *runner) abort(in session.Input) error {
	b := r.binding
	all, err := b.readSessions(r.Box.Agent())
	ids := slices.DeleteFunc(aliveOf(all), func(id wire.UUID) bool { return !in.For(id) })
	isMeant := in.Session == "" || len(ids) > 0 || b.wasEndedBy(in)
	if isMeant && !in.ID.Time().Before(b.startedAt.Truncate(time.Millisecond)) {
		r.post(func() { r.stopForSession("aborted by " + string(in.From.Agent)) })
	}
	for _, id := range ids {
		_, bad := b.store.Change(r.ctx, id, nil)
		err = errors.Join(err, bad)
	}
	if err != nil { // it stays unread, and whoever changes a session next carries it out
		return err
	}
	_, err = r.Box.Read(r.ctx, mailbox.ReadOptions{IDs: []wire.ID{in.ID}}, func(batch mailbox.Batch) (int, error) { return len(batch.Items), nil })
	return err
}

// wasEndedBy reports whether its sender's command has already carried out an abort. The runner may not have read the
// session before.
func (b *binding) wasEndedBy(abort session.Input) bool {
	s, err := b.store.Get(abort.Session)
	return err == nil && s.State == wire.SessionAborted && !s.UpdatedAt.Before(abort.At.Truncate(time.Millisecond))
}

// stopForSession stops the agent because its session is over, and tells the viewers.
func (r *runner) stopForSession(why string) {
	if r.stopping == nil {
		r.notifyViewers(why)
	}
	r.stop(why)
}

// isEngaged reports whether the agent starts, works or is about to, or a person types in its terminal. No session times
// out meanwhile.
func (r *runner) isEngaged() bool {
	switch r.state.Turn().Word() {
	case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
		return true
	}
	return r.mail.typing != nil || len(r.mail.queue) > 0 || r.now().Before(r.lastKey.Add(r.binding.Rules.WhenIdle))
}

func (b *binding) alive() []wire.UUID { return aliveOf(b.all) }

func aliveOf(all []*session.Session) (ids []wire.UUID) {
	for _, s := range all {
		if s.State.Alive() {
			ids = append(ids, s.SessionID)
		}
	}
	return ids
}

func (r *runner) updateSessions(all []*session.Session) {
	b := r.binding
	before, alive := b.alive(), aliveOf(all)
	if b.isKnown && len(before) == 0 && len(alive) > 0 && r.prog != nil {
		_, y := r.prog.screen.Cursor()
		r.prog.capture.next = r.prog.screen.Scrolled() + uint64(y) // earlier output is not the session's
	}
	b.all, b.isKnown, b.idleAt = all, true, time.Time{}
	for _, s := range all {
		if s.State == wire.SessionActive && b.Rules.WhenIdle > 0 {
			b.idleAt = earlier(b.idleAt, later(s.UpdatedAt, r.lastKey).Add(b.Rules.WhenIdle))
		}
		if !slices.Contains(before, s.SessionID) {
			continue
		}
		name := wire.ID(s.SessionID).Short(6)
		if s.State == wire.SessionAborted {
			r.stopForSession("session " + name + " was aborted")
		}
		if s.State == wire.SessionCompleted && s.EndedBy() != "" && len(alive) == 0 {
			b.endReason, b.endBy = fmt.Sprintf("session %s is complete (%s)", name, s.EndedBy()), r.now().Add(lastTurnTime)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.input)) { // in the order they were sent
		in := b.input[id]
		was := in.withheld
		in.withheld = b.withheld(in.Item)
		switch {
		case was == "" && in.withheld != "":
			r.mail.unqueue(id)
			r.apply(reducer.Input{Now: r.now(), Settled: id})
		case was != "" && in.withheld == "":
			r.messageArrived(in.Item, r.now())
		}
	}
}

// admitsInput registers human input, and reports whether a message may go to the reducer.
func (r *runner) admitsInput(it *mailbox.Item) bool {
	b := r.binding
	if b == nil || it.State != mailbox.Unread {
		return true
	}
	in, ok := session.InputOf(it.Message)
	if !ok {
		return true
	}
	if in.Kind == "abort" {
		b.hasAbort = true
		return false
	}
	why := b.withheld(it)
	b.input[it.ID] = &humanInput{it, why}
	return why == ""
}

func (b *binding) withheld(it *mailbox.Item) string {
	if !b.isKnown {
		return "the runner has not read its sessions yet"
	}
	why, _ := session.WithholdReason(it.Message, b.all, b.Mute)
	return why
}

// withheld says why messages must not be typed although they were queued, and returns those that may be.
func (r *runner) withheld(items []*mailbox.Item) (why string, rest []wire.ID) {
	b := r.binding
	for _, it := range items {
		switch {
		case b != nil && b.input[it.ID] != nil && b.input[it.ID].withheld != "":
			why = b.input[it.ID].withheld
		case !r.state.MayHandOver(it.ID, r.now()):
			why = "it has expired, or another message replaces it"
		default:
			rest = append(rest, it.ID)
		}
	}
	return why, rest
}

// knowsSessions reports whether the sessions are read as they are now, if any of the messages is for one. If not, it
// starts a sync.
func (r *runner) knowsSessions(ids []wire.ID, now time.Time) bool {
	b := r.binding
	switch {
	case b == nil || !slices.ContainsFunc(ids, func(id wire.ID) bool { return b.input[id] != nil }):
		return true
	case b.isSyncing:
		return false
	case b.syncFailed, !b.mayHaveChanged(): // sessions that cannot be read hold no mail back
		return true
	case !r.mustWait(b.syncedAt.Add(resyncAfter), now):
		r.startSync(now, false)
	}
	return false
}

func (r *runner) handleSessionEvent(e *wire.Event) {
	b := r.binding
	if b == nil {
		return
	}
	switch e.Kind {
	case wire.EventRead, wire.EventInjected, wire.EventWithdrawn:
		delete(b.input, e.MessageID())
	case "goal_complete":
		b.hasGoal = b.hasGoal || b.Rules.OnGoal
	case wire.TurnCompleted, "turn_complete":
		r.captureAnswer(e)
	}
}
