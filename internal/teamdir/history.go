package teamdir

import (
	"time"

	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// HistorySince folds a member's events since a time. The caller may apply those after it (History.Seq).
func (t *Team) HistorySince(name wire.Name, since time.Time) (*history.History, error) {
	events, err := t.Box(name).Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
	return history.Of(events), err
}

// Content reads what was said and done in one of a member's turns from its log.
func (t *Team) Content(name wire.Name, turn *history.Turn) (history.Content, error) {
	events, err := t.Box(name).Log().Tail(func(e *wire.Event) bool { return e.Seq <= turn.From })
	return turn.Content(events), err
}

// Turns lists a member's turns, oldest first: the newest limit, or with 0 all in the log.
func (t *Team) Turns(name wire.Name, limit int) ([]history.FullTurn, error) {
	n := 0
	events, err := t.Box(name).Log().Tail(func(e *wire.Event) bool {
		if e.Kind == wire.TurnStarted || e.Kind == wire.TurnCompleted {
			n++
		}
		return limit > 0 && n > 2*limit+8 // two events each, and some turns that began earlier
	})
	return history.Full(events, limit), err
}
