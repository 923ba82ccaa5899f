package teams

import (
	"bytes"
	"context"
	"errors"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Ingest takes events in that come from outside, line by line, in any known
// vocabulary.
type Ingest struct {
	Team   *Team
	To     *mailbox.Box // whose log they go to
	Route  bool         // to the log of the member that each names instead
	Source string
	Sync   bool // each is durable when Take returns
}

// Ingested is one line and what became of it. Number counts lines from 1. Err
// is set by whoever could not read the line, else by Take; a *wire.DecodeError
// then has the line's number. Event.Seq is 0 where the log has an event of
// that id already.
type Ingested struct {
	Number int
	Text   []byte
	Event  wire.Event
	Err    error
}

// Take appends what the lines say, in their order for each log, with one lock
// for each. A line that is no good, or whose log cannot be written, has its
// error; the others go on.
func (in *Ingest) Take(ctx context.Context, lines []Ingested) {
	groups := map[wire.Address][]*Ingested{}
	for i := range lines {
		l := &lines[i]
		if l.Err != nil {
			continue
		}
		var a wire.Address
		if a, l.Err = in.adopt(l); l.Err == nil {
			groups[a] = append(groups[a], l)
		}
	}
	for a, group := range groups {
		events := make([]wire.Event, len(group))
		for i, l := range group {
			events[i] = l.Event
		}
		box, err := in.Team.Root().Mailbox(a)
		if err == nil && in.Sync {
			err = box.Log().AppendSync(ctx, events...)
		} else if err == nil {
			err = box.Log().Append(ctx, events...)
		}
		for i, l := range group {
			l.Event, l.Err = events[i], err
		}
	}
}

// adopt reads the event of a line, and says whose log it goes to.
func (in *Ingest) adopt(l *Ingested) (a wire.Address, err error) {
	l.Event, err = wire.Adopt(bytes.TrimRight(l.Text, "\r\n"))
	var at *wire.DecodeError
	if errors.As(err, &at) {
		at.Line = l.Number
	}
	l.Event.Source = in.Source
	if err != nil || !in.Route {
		if in.To != nil {
			a = in.To.Address()
		}
		return a, err
	}
	if l.Event.Names() == "" {
		return a, errors.New("the event names no agent")
	}
	return wire.ParseAddress(l.Event.Names(), in.Team.Name)
}
