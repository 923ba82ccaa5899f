package teams

import (
	"bytes"
	"context"
	"errors"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Ingest appends an event that comes from outside, in any known vocabulary, to the log
// of a member, or, for nil, to that of the member that it names. sync: it is durable
// then. The event's Seq is 0 where the log has an event of that id already.
func (t *Team) Ingest(ctx context.Context, line []byte, to *mailbox.Box, source string, sync bool) (e wire.Event, err error) {
	if e, err = wire.Adopt(bytes.TrimRight(line, "\r\n")); err != nil {
		return e, err
	}
	e.Source = source
	if to == nil {
		if e.Names() == "" {
			return e, errors.New("the event names no agent")
		}
		a, err := wire.ParseAddress(e.Names(), t.Name)
		if err != nil {
			return e, err
		}
		if to, err = t.root.Mailbox(a); err != nil {
			return e, err
		}
	}
	events := []wire.Event{e}
	if sync {
		err = to.Log().AppendSync(ctx, events...)
	} else {
		err = to.Log().Append(ctx, events...)
	}
	return events[0], err
}
