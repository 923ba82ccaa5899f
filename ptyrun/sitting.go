package ptyrun

import (
	"context"
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

// Sessions say how the agent's interactive sessions are held, as it was laid
// down when the runner started.
type Sessions struct {
	Begin   bool // one is begun where none is alive
	Capture Capture
	Mute    bool // nobody talks to the agent in sessions: what people say there stays unread
	Rules   session.Rules
}

// sitting is the runner's part in its agent's sessions. The files are read and
// changed by a clerk; what the loop knows of them is as old as the last look.
type binding struct {
	Sessions
	worker worker
	store  *session.Store

	// The clerk's, or the loop's while the clerk does not look.
	read     []*session.Session // as they were when they were read last
	modified time.Time          // when any had changed last before that; zero: not known

	began   time.Time
	taken   bool // the sessions were taken up
	known   bool // they were looked at
	looking int  // what the clerk has to do: it may look meanwhile
	asked   time.Time
	all     []*session.Session // as they were at the last look
	idle    time.Time          // when one may end because nobody has said anything; zero: none
	retry   time.Time          // after what failed
	failed  time.Duration      // the pause before that
	goal    bool               // an event says that a goal is complete
	aborts  []session.Input    // that failed, to be tried again

	input map[wire.ID]*mailbox.Item // human input that is unread
	held  map[wire.ID]bool          // of that, what is kept from the agent

	over    string // the session that is over, for which the agent is to be stopped
	overBy  time.Time
	capture capture
	lines   bool // the sessions know that they get lines
	decided bool // whether the program is one that is known, so that its lines are no output
}

const (
	lookEvery = 500 * time.Millisecond // for what people did to a session
	lookRound = 3 * time.Second        // for a session that somebody begins
	lastWords = 30 * time.Second       // for the turn in which a goal was reached
	unmasks   = 2 * time.Second        // for a program to show which it is
	retrySoon = time.Second            // what failed, and later
	retryLate = time.Minute
)

func (r *runner) bindSessions(o *Sessions) {
	if o == nil {
		return
	}
	store := &session.Store{Mail: r.Box.Store()}
	r.binding = &binding{
		Sessions: *o, store: store, began: r.Now(),
		input: map[wire.ID]*mailbox.Item{}, held: map[wire.ID]bool{},
	}
	r.binding.capture.recording = "asciinema play " + string(r.Box.Agent()) + "/run/screen.cast"
	r.binding.capture.makeRoom(r.Now())
}

// unbindSessions lets go of the sessions: over where the agent has left by itself.
// Where another runner has the agent by now they are that one's.
func (r *runner) unbindSessions(failed error) {
	s := r.binding
	if s == nil {
		return
	}
	s.worker.wait()
	if r.Held != nil && !r.Held() {
		return
	}
	name, e := r.Box.Agent(), r.exit
	how := fmt.Sprintf("%s ended with %d", name, e.Code)
	switch {
	case failed != nil:
		how = fmt.Sprintf("the runner of %s ended: %v", name, failed)
	case e.Asked:
		how = fmt.Sprintf("%s was stopped", name)
	case e.Code == 0:
		how = fmt.Sprintf("%s has left", name)
	}
	well := failed == nil && !e.Asked && !e.Loop && e.Code == 0 && e.Signal == ""
	if err := s.store.Detach(context.WithoutCancel(r.ctx), name, well, how); err != nil {
		r.log.Error("letting go of sessions", "err", err)
	}
}

// changed reports whether a look may show something new.
func (s *binding) changed() bool {
	at := s.store.Modified()
	return at.IsZero() || !at.Equal(s.modified)
}

// look reads the agent's sessions: those that are alive, and those that were.
func (s *binding) look(agent wire.Name) (all []*session.Session, err error) {
	at := s.store.Modified()
	if all, err = s.store.OfAgent(agent, s.read); err == nil {
		s.modified = at
	}
	s.read = all
	return all, err
}

// every is how often is looked for what became of the sessions. Before anything
// of a person's is typed, and when an abort comes, that is looked at anyway; so
// where there is none an idle runner need not wake for it.
func (s *binding) every() time.Duration {
	if len(s.alive()) == 0 {
		return lookRound
	}
	return lookEvery
}

// sit does what is due for the sessions.
func (r *runner) stepSessions(now time.Time) (next time.Time) {
	s := r.binding
	if s == nil {
		return next
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	free := s.looking == 0 && !now.Before(s.retry)
	switch {
	case s.looking > 0:
	case !free:
		sooner(s.retry)
	case !s.taken:
		r.takeUp()
	case s.goal, !s.idle.IsZero() && !now.Before(s.idle) && !r.engaged():
		r.applyRules()
	case now.Before(s.asked.Add(s.every())):
		sooner(s.asked.Add(s.every()))
	default:
		if s.asked = now; s.changed() {
			r.lookAgain(nil)
		}
		sooner(now.Add(s.every()))
	}
	if !s.idle.IsZero() && now.Before(s.idle) {
		sooner(s.idle)
	}
	if s.over != "" && r.stopping == nil {
		if r.prog != nil && r.state.Turn().Word() == reducer.WordBusy && now.Before(s.overBy) {
			sooner(s.overBy)
		} else {
			r.dismiss(s.over)
		}
	}
	if lines := r.inLines(now); lines != s.lines && s.taken && free && s.looking == 0 {
		r.lookAgain(func(ctx context.Context) error {
			err := s.store.SetLineCapture(ctx, r.Box.Agent(), lines)
			if err == nil {
				r.post(func() { s.lines = lines })
			}
			return err
		})
	}
	if failed := s.aborts; free && len(failed) > 0 {
		s.aborts = nil
		for _, in := range failed {
			r.abort(in)
		}
	}
	sooner(r.tellLines(now))
	return next
}

// dismiss stops the agent because its session is over, and says so.
func (r *runner) dismiss(why string) {
	if r.stopping == nil {
		r.tell(why)
	}
	r.stop(why, 2*time.Second, nil)
}

// engaged reports whether the agent is in a turn, or about to be, or starts, or
// a person types in its terminal: then nobody has been idle.
func (r *runner) engaged() bool {
	if w := r.state.Turn().Word(); w == reducer.WordBusy || w == reducer.WordBlocked || w == reducer.WordStarting {
		return true
	}
	return r.mail.typing != nil || len(r.mail.queue) > 0 || r.Now().Before(r.lastKey.Add(r.binding.Rules.WhenIdle))
}

// lookAgain has the clerk do something to the sessions, if there is something to
// be done, and look how they are then.
func (r *runner) lookAgain(do func(ctx context.Context) error) {
	s := r.binding
	s.looking++
	s.worker.do(func() {
		var err error
		if do != nil {
			err = do(r.ctx)
		}
		all, bad := s.look(r.Box.Agent())
		err = errors.Join(err, bad)
		blind := bad != nil && all == nil
		r.post(func() {
			s.looking--
			if s.failed *= 2; err == nil {
				s.failed = 0
			} else {
				r.log.Error("sessions", "err", err)
				s.failed = min(max(s.failed, retrySoon), retryLate)
				s.retry = r.Now().Add(s.failed)
			}
			if blind { // they are taken to be as they were
				all = s.all
			}
			r.looked(all)
		})
	})
}

// takeUp takes up the sessions, or begins one.
func (r *runner) takeUp() {
	s := r.binding
	s.lines = r.inLines(r.Now())
	o := session.AttachOptions{Begin: s.Begin, Lines: s.lines, Rules: s.Rules}
	r.lookAgain(func(ctx context.Context) error {
		_, err := s.store.Attach(ctx, r.Box.Agent(), o)
		r.post(func() { s.taken = err == nil })
		return err
	})
}

// applyRules applies the rules to every session. A goal is not forgotten where
// that fails; of one that is told meanwhile another round takes care.
func (r *runner) applyRules() {
	s := r.binding
	goal := s.goal
	s.goal = false
	ids := s.alive()
	busy := r.engaged()
	r.lookAgain(func(ctx context.Context) error {
		var errs []error
		for _, id := range ids {
			_, err := s.store.Change(ctx, id, func(o *session.Session) error { return o.ApplyRules(s.Rules, busy, time.Now()) })
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		if err != nil && goal {
			r.post(func() { s.goal = true })
		}
		return err
	})
}

func (s *binding) alive() []wire.UUID { return aliveOf(s.all) }

func aliveOf(all []*session.Session) (ids []wire.UUID) {
	for _, o := range all {
		if o.State.Alive() {
			ids = append(ids, o.SessionID)
		}
	}
	return ids
}

// looked takes in how the sessions are now.
func (r *runner) looked(all []*session.Session) {
	s := r.binding
	was := map[wire.UUID]bool{}
	for _, o := range s.all {
		was[o.SessionID] = o.State.Alive()
	}
	s.all, s.idle = all, time.Time{}
	alive := s.alive()
	if s.known && !slices.Contains(slices.Collect(maps.Values(was)), true) && len(alive) > 0 && r.prog != nil {
		s.capture.skip(r.prog.screen) // what was written before it began is none of its output
	}
	s.known = true
	for _, o := range all {
		if o.State == wire.SessionActive && s.Rules.WhenIdle > 0 {
			at := later(o.LastActivity(), r.lastKey).Add(s.Rules.WhenIdle)
			if s.idle.IsZero() || at.Before(s.idle) {
				s.idle = at
			}
		}
		if !was[o.SessionID] {
			continue
		}
		switch name := wire.ID(o.SessionID).Short(6); {
		case o.State == wire.SessionAborted:
			r.dismiss("session " + name + " was aborted")
		case o.State == wire.SessionCompleted && o.EndedBy() != "" && len(alive) == 0:
			s.over, s.overBy = fmt.Sprintf("session %s is complete (%s)", name, o.EndedBy()), r.Now().Add(lastWords)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.input)) { // as they were said
		r.settle(id, s.input[id])
	}
}

// heardOf takes in an event of the agent's log.
func (r *runner) noteSessionEvent(e *wire.Event) {
	s := r.binding
	if s == nil {
		return
	}
	r.inputGone(e)
	switch e.Kind {
	case "goal_complete":
		s.goal = s.Rules.OnGoal
	case wire.TurnCompleted, "turn_complete":
		r.tellAnswer(e)
	}
}
