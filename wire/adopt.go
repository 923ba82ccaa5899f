package wire

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// ErrNotEvent says that JSON is no event of any vocabulary.
var ErrNotEvent = errors.New(
	`no event: a message, or no "kind", "event_type", "update_type", "sessionUpdate" or "method" of a-z, 0-9 and _`)

// Adopt makes an event from one object as it came from outside: of any vocabulary, kept whole under Wire,
// or a line of another log of ours, which is taken over with its wire and its own fields, and Agent as
// the owner of that log. The log fills in the rest.
//
// An object of a known kind must be as its owner writes it, with no known key twice. A turn event of the
// daemon may lack agent, thread_id, turn_id and transport. Of the current ACP, which grows, only the
// types are checked. Unknown kinds and fields are kept.
//
// The error is ErrNotEvent, or a *DecodeError with the place.
func Adopt(line []byte) (Event, error) {
	o, err := ReadObject(line)
	switch {
	case err == ErrNotObject:
		return Event{}, ErrNotEvent
	case err != nil:
		return Event{}, err
	case isLogLine(o):
		return adoptLogLine(line, o)
	}
	typeName, kind := detect(o)
	if typeName == "" {
		return Event{}, ErrNotEvent
	}
	if typeName == currentUpdate && kind != "" {
		typeName = currentCall
	}
	s := schemas()[typeName]
	known := schema{fields: slices.Concat(s.fields, s.kinds[o.Text(s.tag)], namesIn(typeName))}
	if s.tag != "" {
		known.fields = append(known.fields, field{name: s.tag, is: schemas()["string"]})
	}
	if _, wrong := known.object(0, o); wrong != nil {
		return Event{}, wrong.in(line)
	}
	if kind == "" {
		return Event{}, ErrNotEvent
	}
	e := Event{Kind: kind, Wire: compact(line)}
	b := e.Body()
	e.Session, e.TurnID, e.EventID = b.Text("session"), b.Text("turn_id"), o.Text("event_id")
	return e, nil
}

// AdoptDropped is Adopt for an object that may as well be a message: what has a body or a recipient is one, whatever
// else it carries, and what has no tag is text.
func AdoptDropped(data []byte) (Event, error) {
	if o, err := ReadObject(data); err == nil && !isLogLine(o) {
		if _, kind := detectTagged(o); kind == "" || hasLetterField(o) {
			return Event{}, ErrNotEvent
		}
	}
	return Adopt(data)
}

func isLogLine(o Object) bool {
	return o.Has("seq") && o.Has("at") && o.Has("team") && o.Has("agent") && o.Has("source") && o.Has("kind")
}

// namesIn are the members by which an event names its session, its turn and itself, and which must be text. In another
// vocabulary, one that it does not define may be anything, and counts only where it is text.
func namesIn(typeName string) []field {
	switch {
	case strings.HasPrefix(typeName, "log."):
		return schemas()["log.Names"].fields
	case typeName == olderUpdate:
		return schemas()["log.ACPNames"].fields
	}
	return nil
}

func adoptLogLine(line []byte, o Object) (Event, error) {
	if _, wrong := schemas()["log.Event"].object(0, o); wrong != nil {
		return Event{}, wrong.in(line)
	}
	e, err := DecodeEvent(line)
	if err != nil {
		return Event{}, err
	}
	if hasKind(mailboxEvent, e.Kind) {
		// It is kept as it came, and is no evidence about a message of this mailbox.
		e.Wire, e.Extra = line, nil
	}
	e.Wire = compact(e.Wire)
	e.Seq, e.At, e.Team, e.Source = 0, time.Time{}, "", ""
	return e, nil
}

// Names is the agent that the event itself names, which may be another than the one whose log it is in;
// else the owner of the log, if it is known.
func (e *Event) Names() string { return cmp.Or(e.Text("agent"), string(e.Agent)) }
