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

// Sessions say how the agent's interactive sessions are held, as it was laid down when the runner started.
type Sessions struct {
	Begin   bool // one is begun where none is alive
	Capture Capture
	Mute    bool // nobody talks to the agent in sessions: what people say there stays unread
	Rules   session.Rules
}

// binding binds the runner to its agent's sessions. Their files are read and changed in rounds, beside the
// loop and one at a time. A round does what is wanted when it begins; what fails stays wanted.
type binding struct {
	Sessions
	store     *session.Store
	startedAt time.Time

	isSyncing  bool
	syncedAt   time.Time // the last one
	modified   time.Time // when any session had changed last before that; zero: not known. Only its round may set it
	syncFailed bool      // the last round

	isAttached    bool // the sessions know of the agent
	attachedLines bool // and that they get lines
	hasGoal       bool // an event says that a goal is complete: the rules are to be applied
	hasAbort      bool // somebody has said abort

	isKnown   bool                    // the sessions were read
	all       []*session.Session      // as they were after the last round
	idleAt    time.Time               // when one may end because nobody has said anything; zero: none
	input     map[wire.ID]*humanInput // that is unread
	endReason string                  // the session that is over, for which the agent is to be stopped
	endBy     time.Time               // at the latest
	capture   capture
}

// humanInput is what a person said, and why that is kept from the agent; "": it is not.
type humanInput struct {
	*mailbox.Item
	withheld string
}

const (
	syncEvery     = 500 * time.Millisecond // people change a session
	syncEveryIdle = 3 * time.Second        // somebody begins one: an idle runner need not wake often
	resyncAfter   = 50 * time.Millisecond  // after one, where files may have changed in the same moment
	lastTurnTime  = 30 * time.Second       // for the turn in which a goal was reached
)

func newBinding(o *Sessions, box *mailbox.Box, now time.Time) *binding {
	if o == nil {
		return nil
	}
	return &binding{
		Sessions: *o, store: &session.Store{Mail: box.Store()}, startedAt: now,
		input: map[wire.ID]*humanInput{}, capture: capture{budget: captureBudget, budgetAt: now},
	}
}

// unbindSessions lets go of the sessions: over where the agent has left by itself. Where another runner has
// the agent by now they are that one's.
func (r *runner) unbindSessions(failed error) {
	b := r.binding
	if b == nil || !r.Hold.StillHeld() {
		return
	}
	// An abort that came while the agent ended, or failed then, is carried out as well.
	if err := r.abortAll(); err != nil {
		r.Log.Error("sessions", "err", err)
	}
	name, e := r.Box.Agent(), r.exit
	isCompleted := failed == nil && !e.Stopped && !e.Loop && e.Code == 0 && e.Signal == ""
	how := fmt.Sprintf("%s ended with %d", name, e.Code)
	switch {
	case failed != nil:
		how = fmt.Sprintf("the runner of %s ended: %v", name, failed)
	case e.Stopped:
		how = fmt.Sprintf("%s was stopped", name)
	case isCompleted:
		how = fmt.Sprintf("%s has left", name)
	}
	if err := b.store.Detach(r.ctx, name, isCompleted, how); err != nil {
		r.Log.Error("letting go of sessions", "err", err)
	}
}

func (r *runner) stepSessions(now time.Time) {
	b := r.binding
	if b == nil {
		return
	}
	if b.endReason != "" && r.stopping == nil {
		isWorking := r.prog != nil && r.state.Turn().Word() == reducer.WordBusy
		if !isWorking || !r.mustWait(b.endBy, now) {
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
	if all, err = b.store.OfAgent(agent, b.all); err == nil {
		b.modified = at
	}
	return all, err
}

// startRound has what is wanted done beside the loop, and the sessions read.
func (r *runner) startSync(now time.Time, applyRules bool) {
	b, agent := r.binding, r.Box.Agent()
	b.isSyncing, b.syncedAt = true, now
	hadGoal, hadAbort := b.hasGoal, b.hasAbort
	b.hasGoal, b.hasAbort = false, false
	attach := session.AttachOptions{Begin: b.Begin && !b.isAttached, Lines: r.capturesLines(now), Rules: b.Rules}
	isAttached := b.isAttached && b.attachedLines == attach.Lines
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
				b.isAttached, b.attachedLines = true, attach.Lines
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

// abort ends the sessions for which an abort is meant, and the agent with them, whoever holds the
// sessions' lock and whether or not they can be written. It is never typed, and read when all that is done.
// One that is older than this run, or for a session that was over before, has come too late.
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
	if err != nil { // as long as it is unread anybody who changes a session takes it in
		return err
	}
	_, err = r.Box.Read(r.ctx, mailbox.ReadOptions{IDs: []wire.ID{in.ID}}, func(batch mailbox.Batch) (int, error) { return len(batch.Items), nil })
	return err
}

// wasEndedBy reports whether an abort has ended its session already, as a command does in one step; the runner may not
// have heard yet that there was one.
func (b *binding) wasEndedBy(abort session.Input) bool {
	s, err := b.store.Get(abort.Session)
	return err == nil && s.State == wire.SessionAborted && !s.UpdatedAt.Before(abort.At.Truncate(time.Millisecond))
}

// dismiss stops the agent because its session is over, and says so.
func (r *runner) stopForSession(why string) {
	if r.stopping == nil {
		r.notifyViewers(why)
	}
	r.stop(why)
}

// isEngaged reports whether the agent is in a turn, or about to be, or starts, or a person types in its
// terminal: then nobody has been idle.
func (r *runner) isEngaged() bool {
	switch r.state.Turn().Word() {
	case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
		return true
	}
	return r.mail.typing != nil || len(r.mail.queue) > 0 || r.Now().Before(r.lastKey.Add(r.binding.Rules.WhenIdle))
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
		b.capture.skip(r.prog.screen) // what was written before it began is none of its output
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
			b.endReason, b.endBy = fmt.Sprintf("session %s is complete (%s)", name, s.EndedBy()), r.Now().Add(lastTurnTime)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.input)) { // as they were said
		in := b.input[id]
		was := in.withheld
		in.withheld = b.withheld(in.Item)
		switch {
		case was == "" && in.withheld != "":
			r.mail.unqueue(id)
			r.apply(reducer.Input{Now: r.Now(), Settled: id})
		case was != "" && in.withheld == "":
			r.messageArrived(in.Item, r.Now())
		}
	}
}

// noteInput takes in a message of human input, and reports whether the reducer is to hear of it.
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
		return "its sessions are not known yet"
	}
	why, _ := session.Withheld(it.Message, b.all, b.Mute)
	return why
}

// withheld says why messages must not be typed now, whatever held when they were queued, and which of them may.
func (r *runner) withheld(items []*mailbox.Item) (why string, rest []wire.ID) {
	for _, it := range items {
		switch b := r.binding; {
		case b != nil && b.input[it.ID] != nil && b.input[it.ID].withheld != "":
			why = b.input[it.ID].withheld
		case !r.state.MayHandOver(it.ID, r.Now()):
			why = "it has expired, or another message replaces it"
		default:
			rest = append(rest, it.ID)
		}
	}
	return why, rest
}

// knowsSessions reports whether what is to be typed is judged by how the sessions are this moment. If not,
// it has them read.
func (r *runner) knowsSessions(ids []wire.ID, now time.Time) bool {
	b := r.binding
	switch {
	case b == nil || !slices.ContainsFunc(ids, func(id wire.ID) bool { return b.input[id] != nil }):
		return true
	case b.isSyncing:
		return false
	case b.syncFailed, !b.mayHaveChanged(): // what cannot be read keeps nothing back
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
