package agent

import (
	"cmp"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// daemonStream makes of an agent's events those by which the daemon's own fold comes to what atm status says: a turn
// without an id gets the one that status shows, and what else ends a turn that was told, or goes on with it, is told.
type daemonStream struct {
	state  reducer.State
	begun  wire.Event         // the start of the turn that was told last
	status reducer.TurnStatus // of that, as told
}

func (d *daemonStream) take(e wire.Event) []wire.Event {
	d.state.Apply(reducer.Input{Event: &e, Now: e.At})
	e.TurnID = cmp.Or(e.TurnID, d.turnOf(e.Session).ID)
	if e.Kind == wire.TurnCompleted && e.Source == "pty" && e.TurnID == d.begun.TurnID && d.status != reducer.TurnBusy {
		return nil // it was told when the program ended
	}
	d.note(&e)
	events, shown := []wire.Event{e}, d.state.Turn()
	add := func(kind, status string) {
		more := d.begun.With("status", status)
		more.Seq, more.Kind = e.Seq, kind
		d.note(&more)
		events = append(events, more)
	}
	if e.Source == "hook" && shown.IsOpen() && shown.ID != d.begun.TurnID { // no event has told of its start
		d.begun, d.status = e, reducer.TurnIdle
		d.begun.TurnID = shown.ID
	}
	isSame := shown.ID == d.begun.TurnID
	if shown.IsOpen() && isSame && d.status != reducer.TurnBusy {
		add(wire.TurnStarted, "")
	}
	if !shown.IsOpen() && d.status == reducer.TurnBusy && (!isSame || shown.Status == reducer.TurnTerminal) {
		status := reducer.Interrupted
		if shown.Last != nil && shown.Last.ID == d.begun.TurnID {
			status = shown.Last.Status
		}
		add(wire.TurnCompleted, status)
	}
	if shown.Status == reducer.TurnIdle && d.begun.TurnID != "" && d.status != reducer.TurnIdle {
		add(wire.TurnIdle, "")
	}
	return events
}

// note takes in what an event tells of the turn that was told last.
func (d *daemonStream) note(e *wire.Event) {
	switch isSame := e.TurnID == d.begun.TurnID; {
	case e.Kind == wire.TurnStarted:
		d.begun, d.status = *e, reducer.TurnBusy
	case e.Kind == wire.TurnCompleted && isSame:
		d.status = reducer.TurnTerminal
	case e.Kind == wire.TurnIdle && (isSame || d.status == reducer.TurnTerminal):
		d.status = reducer.TurnIdle
	}
}

// turnOf is the turn of a session, else the one that is shown.
func (d *daemonStream) turnOf(session string) *reducer.Turn {
	for i := range d.state.Turns {
		if d.state.Turns[i].Session == session {
			return &d.state.Turns[i]
		}
	}
	return d.state.Turn()
}
