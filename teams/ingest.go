package teams

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// everyAgent is whom a count of events names that a stream of many agents has dropped.
const everyAgent = "proxy:all"

// ReadEvent reads an event that comes from outside, in any known vocabulary. It belongs into my log or, routed, into
// that of the member that it names; one about every agent stays mine.
func (t *Team) ReadEvent(line []byte, me *mailbox.Box, route bool) (e wire.Event, to *mailbox.Box, err error) {
	if e, err = wire.Adopt(bytes.TrimRight(line, "\r\n")); err != nil {
		return e, nil, err
	}
	e.Source = "cli"
	names := e.Names()
	isOfAll := e.Kind == wire.DroppedCounters && names == everyAgent
	switch {
	case !route || isOfAll && me != nil:
		return e, me, nil
	case isOfAll:
		return e, nil, fmt.Errorf("%s is every agent of a stream, and --as does not say who keeps the count", names)
	case names == "":
		return e, nil, errors.New("the event names no agent")
	}
	a, err := wire.ParseAddress(names, t.Name)
	if err == nil {
		to, err = t.root.Mailbox(a)
	}
	return e, to, err
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
