package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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

	CheckVerdict func(agent wire.Name, m *wire.Message) error // as in session.Store
}

// binding is what the runner knows of its agent's sessions. Their files are read and changed beside the loop, which has
// a copy of what was read last.
type binding struct {
	Sessions
	store     *session.Store
	startedAt time.Time
	isKnown   bool                   // the sessions have been read
	all       []*session.Session     // the copy
	input     map[wire.ID]humanInput // unread
	goalSeq   uint64                 // of the last event that says that a goal is reached

	syncing    sync.Mutex // guards the following, which only goroutines beside the loop use
	isAttached bool
	modified   time.Time // the store's Modified before the sessions were read last
}

// humanInput is a message to a session, and why it must not be typed; "": it may.
type humanInput struct {
	*mailbox.Item
	withheld string
}

const (
	syncEvery     = 500 * time.Millisecond // while a session is alive
	syncEveryIdle = 3 * time.Second        // else, so that an idle runner seldom wakes
	lastTurnTime  = 30 * time.Second       // for the turn that reached the goal to end
)

// keepSessions syncs the agent's sessions until the loop ends. It runs beside it.
func (r *runner) keepSessions() {
	for every := time.Duration(0); ; {
		select {
		case <-time.After(every):
		case <-r.ctx.Done():
			return
		}
		isAnyAlive, err := r.syncSessions()
		if err != nil {
			r.Log.Error("sessions", "err", err)
		}
		every = syncEveryIdle
		if isAnyAlive {
			every = syncEvery
		}
	}
}

// syncSessions reads the agent's sessions and has the loop know them. Before that it attaches the agent if it is not
// attached yet, if a rule ends a session, or if one does not say how the agent's output is captured. What fails is tried
// again by the next call. It runs beside the loop.
func (r *runner) syncSessions() (isAnyAlive bool, err error) {
	b := r.binding
	b.syncing.Lock()
	defer b.syncing.Unlock()
	var all []*session.Session
	var goalSeq uint64
	o := session.AttachOptions{Begin: b.Begin && !b.isAttached, Rules: b.Rules}
	if !r.call(func() {
		all, goalSeq, o.CapturesLines = b.all, b.goalSeq, r.captures(r.now()) == lines
		if !b.isAttached || r.isEngaged() { // before, a session may have been quiet because nobody ran the agent
			o.Rules = o.Rules.WhileBusy()
		}
	}) {
		return false, nil
	}
	all, err = b.read(r.Box.Agent(), all)
	isDue := func(s *session.Session) bool {
		isOutdated := s.Notes.Runner.Lines != o.CapturesLines || s.Notes.Seq < goalSeq
		return s.State.Alive() && isOutdated || s.EndedBy(o.Rules, time.Now()) != ""
	}
	if !b.isAttached || slices.ContainsFunc(all, isDue) {
		failed := b.store.Attach(context.Background(), r.Box.Agent(), o)
		b.isAttached = b.isAttached || failed == nil
		all, err = b.read(r.Box.Agent(), all)
		err = errors.Join(failed, err)
	}
	r.call(func() { r.updateSessions(all) })
	return len(aliveOf(all)) > 0, err
}

// read returns the sessions as they are now; before is what it returned last. The caller holds syncing.
func (b *binding) read(agent wire.Name, before []*session.Session) ([]*session.Session, error) {
	at := b.store.Modified()
	if !at.IsZero() && at.Equal(b.modified) {
		return before, nil
	}
	all, err := b.store.AgentSessions(agent, before)
	if err == nil {
		b.modified = at
	}
	return all, err
}

// unbindSessions detaches the agent from its sessions; if it exited by itself they are complete. If another runner has
// the agent by now, the sessions are that runner's.
func (r *runner) unbindSessions(failed error) {
	b := r.binding
	if b == nil || !r.Hold.StillHeld() {
		return
	}
	// Carry out aborts that came too late for the loop.
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
	if err := b.store.Detach(context.Background(), name, isCompleted, how); err != nil {
		r.Log.Error("detaching from sessions", "err", err)
	}
}

func (r *runner) abortAll() error {
	var aborts []session.Input
	_, err := r.Box.Walk(context.Background(), mailbox.Range{Unread: true}, func(it *mailbox.Item) bool {
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
	all, err := b.store.AgentSessions(r.Box.Agent(), nil)
	ids := slices.DeleteFunc(aliveOf(all), func(id wire.UUID) bool { return !in.For(id) })
	isMeant := in.Session == "" || len(ids) > 0 || b.wasEndedBy(in)
	if isMeant && !in.ID.Time().Before(b.startedAt.Truncate(time.Millisecond)) {
		r.post(func() { r.stopForSession("aborted by " + string(in.From.Agent)) })
	}
	for _, id := range ids {
		_, bad := b.store.Change(context.Background(), id, nil)
		err = errors.Join(err, bad)
	}
	if err != nil { // it stays unread, and whoever changes a session next carries it out
		return err
	}
	_, err = r.Box.Read(context.Background(), mailbox.ReadOptions{IDs: []wire.ID{in.ID}}, func(batch mailbox.Batch) (int, error) { return len(batch.Items), nil })
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
	switch r.state.Word() {
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

// updateSessions replaces what the loop knows of the sessions, and does what follows from the changes.
func (r *runner) updateSessions(all []*session.Session) {
	b := r.binding
	before, wasKnown := b.alive(), b.isKnown
	b.all, b.isKnown = all, true
	if wasKnown && len(before) == 0 && len(b.alive()) > 0 && r.prog != nil {
		r.prog.forgetLines() // earlier output is not the session's
	}
	for _, s := range all {
		if slices.Contains(before, s.SessionID) {
			r.stopIfOver(s)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.input)) { // in the order they were sent
		in := b.input[id]
		why := b.whyWithheld(in.Item)
		b.input[id] = humanInput{in.Item, why}
		switch {
		case in.withheld == "" && why != "":
			r.mail.unqueue(id)
			r.apply(reducer.Input{Now: r.now(), Settled: id})
		case in.withheld != "" && why == "":
			r.messageArrived(in.Item, r.now())
		}
	}
}

// stopIfOver stops the agent if a session was aborted, or if it was the last one and is complete by its rules: then
// after the turn that reached the goal.
func (r *runner) stopIfOver(s *session.Session) {
	name := wire.ID(s.SessionID).Short(6)
	switch {
	case s.State == wire.SessionAborted:
		r.stopForSession("session " + name + " was aborted")
	case s.State == wire.SessionCompleted && s.Notes.Runner.Ended != "" && len(r.binding.alive()) == 0:
		r.wg.Go(func() {
			r.poll(lastTurnTime, func() bool { return r.state.Turn().Word() != reducer.WordBusy })
			r.post(func() { r.stopForSession(fmt.Sprintf("session %s is complete (%s)", name, s.Notes.Runner.Ended)) })
		})
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
		r.wg.Go(func() { r.retry("sessions", r.abortAll) })
		return false
	}
	why := b.whyWithheld(it)
	b.input[it.ID] = humanInput{it, why}
	return why == ""
}

func (b *binding) whyWithheld(it *mailbox.Item) string {
	if !b.isKnown {
		return "the runner has not read its sessions yet"
	}
	why, _ := session.WithholdReason(it.Message, b.all, b.Mute)
	return why
}

// typable returns those of queued messages that may still be typed, and why the others may not.
func (r *runner) typable(items []*mailbox.Item) (ids []wire.ID, why string) {
	for _, it := range items {
		withheld := ""
		if r.binding != nil {
			withheld = r.binding.input[it.ID].withheld
		}
		switch {
		case withheld != "":
			why = withheld
		case !r.state.MayHandOver(it.ID, r.now()):
			why = "it has expired, or another message replaces it"
		default:
			ids = append(ids, it.ID)
		}
	}
	return ids, why
}

// isForSession reports whether any of the messages is human input.
func (r *runner) isForSession(ids []wire.ID) bool {
	return r.binding != nil && slices.ContainsFunc(ids, func(id wire.ID) bool { return r.binding.input[id].Item != nil })
}

// admittedNow reads the sessions as they are now, and returns those messages that need not wait for one. Sessions that
// cannot be read hold no mail back. It runs beside the loop.
func (r *runner) admittedNow(ids []wire.ID) []wire.ID {
	r.syncSessions() // keepSessions logs the errors
	r.call(func() {
		ids = slices.DeleteFunc(ids, func(id wire.ID) bool { return !slices.Contains(r.mail.queue, id) })
	})
	return ids
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
		b.goalSeq = e.Seq
	case wire.TurnCompleted, "turn_complete":
		r.captureAnswer(e)
	}
}
