package wire

import (
	"errors"
	"slices"
	"strings"
)

// ErrNotEvent says that JSON is no event of any vocabulary.
var ErrNotEvent = errors.New(
	`no event: a message, or no "kind", "event_type", "update_type", "sessionUpdate" or "method" of a-z, 0-9 and _`)

// Adopt makes an event from one object of any vocabulary as it came from outside. It is kept whole under Wire; the log
// fills in the rest.
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
	}
	typeName, kind := detect(o)
	if typeName == "" {
		return Event{}, ErrNotEvent
	}
	if typeName == currentUpdate {
		typeName = currentCall
	}
	s := schemas()[typeName]
	known := schema{fields: slices.Concat(s.fields, s.kinds[o.Text(s.tag)], namesIn(typeName))}
	if s.tag != "" {
		known.fields = append(known.fields, field{name: s.tag, is: schemas()["any"]})
	}
	if _, wrong := known.object(0, o); wrong != nil {
		return Event{}, wrong.in(line)
	}
	e := Event{Kind: kind, Wire: compact(line)}
	b := e.Body()
	e.Session, e.TurnID, e.EventID = b.Text("session"), b.Text("turn_id"), o.Text("event_id")
	return e, nil
}

// AdoptDropped is Adopt for an object that may as well be a message: what has a body or a recipient is one, whatever
// else it carries.
func AdoptDropped(data []byte) (Event, error) {
	if o, err := ReadObject(data); err == nil && hasLetterField(o) {
		return Event{}, ErrNotEvent
	}
	return Adopt(data)
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
