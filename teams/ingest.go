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
	Team *Team
	To   *mailbox.Box // whose log they go to
	// Route: to the log of the agent that each names, as agent or agent@team,
	// which must be a member. To is then not used.
	Route  bool
	Source string
	Sync   bool // each is durable when Take returns

	boxes map[string]*mailbox.Box
}

// Ingested is one line and what became of it. Number counts lines from 1. Err
// is set by who could not read the line, else by Take; a *wire.DecodeError
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
	groups := map[*mailbox.Box][]int{}
	var order []*mailbox.Box
	for i := range lines {
		l := &lines[i]
		if l.Err != nil {
			continue
		}
		if l.Event, l.Err = wire.Adopt(bytes.TrimRight(l.Text, "\r\n")); l.Err != nil {
			var at *wire.DecodeError
			if errors.As(l.Err, &at) {
				at.Line = l.Number
			}
			continue
		}
		box, err := in.box(&l.Event)
		if l.Err = err; err != nil {
			continue
		}
		l.Event.Source = in.Source
		if groups[box] == nil {
			order = append(order, box)
		}
		groups[box] = append(groups[box], i)
	}
	for _, box := range order {
		events := make([]wire.Event, len(groups[box]))
		for j, i := range groups[box] {
			events[j] = lines[i].Event
		}
		appendTo := box.Log().Append
		if in.Sync {
			appendTo = box.Log().AppendSync
		}
		err := appendTo(ctx, events...)
		for j, i := range groups[box] {
			lines[i].Event, lines[i].Err = events[j], err
		}
	}
}

// box is the log that an event goes to.
func (in *Ingest) box(e *wire.Event) (*mailbox.Box, error) {
	if !in.Route {
		return in.To, nil
	}
	s := e.Names()
	if s == "" {
		return nil, errors.New("the event names no agent")
	}
	if b := in.boxes[s]; b != nil && b.Exists() {
		return b, nil
	}
	a, err := wire.ParseAddress(s, in.Team.Name)
	if err != nil {
		return nil, err
	}
	b, err := in.Team.Root().Mailbox(a)
	if err != nil {
		return nil, err
	}
	if in.boxes == nil {
		in.boxes = map[string]*mailbox.Box{}
	}
	in.boxes[s] = b
	return b, nil
}
