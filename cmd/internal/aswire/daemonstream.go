package aswire

import (
	"cmp"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// A DaemonStream is an agent's events as the daemon of agent-team-mail, a program of others with that name, reads them. It
// translates them in order, so that the daemon, which folds them itself, comes to the same turn status as atm status: a
// turn without an id gets the id that status shows, and events are added where the reducer begins or ends a turn for
// another reason.
type DaemonStream struct {
	state   reducer.State
	started wire.Event         // the start of the last turn in the stream
	status  reducer.TurnStatus // of that turn, by the stream
}

// Translate returns what the daemon gets for the next event.
func (d *DaemonStream) Translate(e wire.Event) []wire.Event {
	d.state.Apply(&e)
	e.TurnID = cmp.Or(e.TurnID, cmp.Or(d.state.SessionOf(e.Session), d.state.Session()).Turn.ID)
	if e.Kind == wire.TurnCompleted && e.Source == wire.SourcePTY && e.TurnID == d.started.TurnID && d.status != reducer.TurnBusy {
		return nil // the stream has ended the turn with the program
	}
	d.follow(&e)
	events, shown := []wire.Event{e}, d.state.Session()
	turn := &shown.Turn
	add := func(kind, status string) {
		more := d.started.With(wire.FieldStatus, status)
		more.Seq, more.Kind = e.Seq, kind
		d.follow(&more)
		events = append(events, more)
	}
	isSeen := e.Source == wire.SourceHook || e.Source == wire.SourcePTY
	if isSeen && turn.IsOpen() && turn.ID != d.started.TurnID { // no event reports its start
		d.started, d.status = e, reducer.TurnIdle
		d.started.TurnID = turn.ID
	}
	isSame := turn.ID == d.started.TurnID
	if turn.IsOpen() && isSame && d.status != reducer.TurnBusy {
		add(wire.TurnStarted, "")
	}
	if !turn.IsOpen() && d.status == reducer.TurnBusy && (!isSame || turn.Status == reducer.TurnTerminal) {
		status := reducer.Interrupted
		isNamed := turn.Seq == d.started.Seq // it has got its name since then
		if l := shown.Last; l != nil && (l.ID == d.started.TurnID || isNamed && l.ID == turn.ID) {
			status = l.Status
		}
		add(wire.TurnCompleted, status)
	}
	if turn.Status == reducer.TurnIdle && d.started.TurnID != "" && d.status != reducer.TurnIdle {
		add(wire.TurnIdle, "")
	}
	return events
}

// follow updates the last turn in the stream.
func (d *DaemonStream) follow(e *wire.Event) {
	isSame := e.TurnID == d.started.TurnID
	_, isInStream := foreign.AsWire(e, foreign.Daemon)
	switch {
	case !isInStream:
	case e.Kind == wire.TurnStarted:
		d.started, d.status = *e, reducer.TurnBusy
	case e.Kind == wire.TurnCompleted && isSame:
		d.status = reducer.TurnTerminal
	case e.Kind == wire.TurnIdle && (isSame || d.status == reducer.TurnTerminal):
		d.status = reducer.TurnIdle
	}
}
