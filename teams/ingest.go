package teams

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// LogError says that an event could not be appended for a reason that lies in the log, not in the event.
type LogError struct{ error }

func (e *LogError) Unwrap() error { return e.error }

// everyAgent is whom a count of events names that a stream of many agents has dropped.
const everyAgent = "proxy:all"

// Ingest appends an event that comes from outside, in any known vocabulary, to my log
// or, routed, to that of the member that it names; one about every agent stays mine. See AppendEvent.
func (t *Team) Ingest(ctx context.Context, line []byte, me *mailbox.Box, route, sync bool) (e wire.Event, err error) {
	if e, err = wire.Adopt(bytes.TrimRight(line, "\r\n")); err != nil {
		return e, err
	}
	e.Source = "cli"
	to, names := me, e.Names()
	isOfAll := e.Kind == wire.DroppedCounters && names == everyAgent
	switch {
	case !route || isOfAll && me != nil:
	case isOfAll:
		return e, fmt.Errorf("%s is every agent of a stream, and --as does not say who keeps the count", names)
	case names == "":
		return e, errors.New("the event names no agent")
	default:
		a, err := wire.ParseAddress(names, t.Name)
		if err != nil {
			return e, err
		}
		if to, err = t.root.Mailbox(a); err != nil {
			return e, err
		}
	}
	e, err = AppendEvent(ctx, to, e, sync)
	if err != nil && !errors.Is(err, eventlog.ErrNoEvent) {
		err = &LogError{err}
	}
	return e, err
}

// AppendEvent appends an event to a member's log, and returns it as it stands there: Seq is 0 where the log has an
// event of that id already. sync: it is durable then.
func AppendEvent(ctx context.Context, box *mailbox.Box, e wire.Event, sync bool) (wire.Event, error) {
	noted, appendTo := []wire.Event{e}, box.Log().Append
	if sync {
		appendTo = box.Log().AppendSync
	}
	err := appendTo(ctx, noted...) // which numbers it
	return noted[0], err
}
