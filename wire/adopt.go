package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrNotEvent is what Adopt says of JSON that is no event of any vocabulary.
// The error that wraps it says why.
var ErrNotEvent = errors.New("no event")

// Adopt makes an event for a log of one object as it came from outside: of any
// vocabulary (foreign says how they are told apart), or a line of another log
// of ours. The object is kept whole under Wire, compact; Kind says what it is,
// Session, TurnID and EventID what it carries plainly. Of a line of ours the
// event is taken over, its wire and its own fields; Agent is the old log's
// owner. All else is for the log to fill in.
//
// An object of a known kind must be as its owner writes it: what has to be
// there is, types and words are right, no known key stands twice. Of the
// daemon's turns agent, thread_id, turn_id and transport may be missing; the
// current ACP, which grows, is looked at for wrong types only. Unknown kinds
// and fields are kept.
//
// The error wraps ErrNotEvent, or is a *DecodeError with the place.
func Adopt(line []byte) (Event, error) {
	o, err := ReadObject(line)
	if err == ErrNotObject {
		return Event{}, fmt.Errorf("%w: not a JSON object", ErrNotEvent)
	}
	if err != nil {
		return Event{}, err
	}
	if isLogLine(o) {
		return adoptLogLine(line, o)
	}
	v, kind, ok := foreign(o)
	if !ok {
		return Event{}, fmt.Errorf("%w: %s", ErrNotEvent, why(o))
	}
	e := Event{Kind: kind}
	if err := adopt(o, start(line), v, &e); err != nil {
		return Event{}, placed(line, err)
	}
	e.Wire = compact(line)
	return e, nil
}

// start is where the value begins.
func start(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t\r\n")) }

// adopt looks whether an object that begins at an offset is as it has to be,
// and takes from it what an event carries.
func adopt(o Object, at int, v Vocabulary, e *Event) (err error) {
	switch {
	case v == AppServer:
		err = adoptAppServer(o, at, e)
	case v == ACP && !o.Has("update_type"):
		err = adoptCurrent(o, at, e)
	default:
		g := map[Vocabulary]*group{Session: &sessionKinds, ACP: &acpKinds, Daemon: &daemonKinds}[v]
		if of, k := kindOf(e.Kind); k != nil && of.tag == g.tag {
			g = of
		}
		err = o.check(at, field{g.tag, must, anything})
		if k := g.find(e.Kind); err == nil && k != nil {
			err = o.check(at, k.fields...)
		}
	}
	if err == nil {
		err = o.take(&e.Session, at, "session", "session_id", "sessionId")
	}
	if err == nil {
		err = o.take(&e.TurnID, at, "turn_id")
	}
	if err == nil {
		err = o.take(&e.EventID, at, "event_id")
	}
	return err
}

// adoptCurrent looks at an update of the ACP of today, bare or in its
// notification, for wrong types.
func adoptCurrent(o Object, at int, e *Event) error {
	for _, around := range []string{"params", "update"} {
		if err := o.check(at, field{around, ours, anything}); err != nil {
			return err
		}
		in := o.Object(around)
		if in == nil {
			continue
		}
		if err := o.check(at, field{"method", may, str}); err != nil {
			return err
		}
		if err := o.take(&e.Session, at, "sessionId"); err != nil {
			return err
		}
		o, at = in, at+o.place(around)
	}
	if err := o.take(&e.Session, at, "sessionId"); err != nil {
		return err
	}
	return o.check(at, currentFields...)
}

// take takes the first member that says something, and must be a string, unless
// there is something already.
func (o Object) take(to *string, at int, names ...string) error {
	for _, name := range names {
		if *to != "" {
			return nil
		}
		if err := o.check(at, field{name, may, text}); err != nil {
			return err
		}
		*to = o.Text(name)
	}
	return nil
}

// adoptAppServer looks at a message of Codex's app-server.
func adoptAppServer(o Object, at int, e *Event) error {
	params := o.Object("params")
	if err := o.check(at, field{"method", must, str}, field{"params", must, shape{words: "an object", kind: '{'}}); err != nil {
		return err
	}
	at += o.place("params")
	if err := params.check(at, field{"turn", ours, anything}); err != nil {
		return err
	}
	turn := params.Object("turn")
	if e.Kind == TurnStarted || e.Kind == TurnCompleted {
		is := []field{{"id", may, str}, {"turnId", may, str}, {"turn_id", may, str}, {"threadId", may, str}, {"thread_id", may, str},
			{"status", may, oneOf("completed", "interrupted", "failed", "inProgress")}}
		if err := params.check(at, is...); err != nil {
			return err
		}
		if err := turn.check(at+params.place("turn"), is...); err != nil {
			return err
		}
	}
	if err := turn.take(&e.TurnID, at+params.place("turn"), "id"); err != nil {
		return err
	}
	return params.take(&e.TurnID, at, "turnId", "turn_id")
}

// isLogLine reports whether an object is a line of a log of ours.
func isLogLine(o Object) bool {
	return !slices.ContainsFunc([]string{"seq", "at", "team", "agent", "source", "kind"}, func(name string) bool { return !o.Has(name) })
}

func adoptLogLine(line []byte, o Object) (Event, error) {
	at := start(line)
	var once []field
	for _, name := range eventFields {
		once = append(once, field{name, ours, anything})
	}
	if err := o.check(at, once...); err != nil {
		return Event{}, placed(line, err)
	}
	old, err := DecodeEvent(line)
	if err != nil {
		return Event{}, err
	}
	if !isKind(old.Kind) {
		return Event{}, placed(line, faultAt(at, "kind: must be a word of a-z, 0-9 and _"))
	}
	e := Event{Agent: old.Agent, Kind: old.Kind, Session: old.Session, TurnID: old.TurnID, EventID: old.EventID, Extra: old.Extra, Wire: compact(old.Wire)}
	if mailboxKinds.has(old.Kind) {
		// Of another log: kept, and no evidence of anything in this one.
		e.Wire, e.Extra = compact(line), nil
	}
	if len(e.Wire) > 0 && e.Wire[0] != '{' {
		return Event{}, placed(line, faultAt(at+o.place("wire"), "wire: must be an object"))
	}
	return e, nil
}

// why says what an object lacks to be an event.
func why(o Object) string {
	if isMessage(o) {
		return "this is a message: atm send --batch"
	}
	for _, tag := range tags {
		if o.Get(tag.key) != nil {
			return fmt.Sprintf("%s must be a word of a-z, 0-9 and _", tag.key)
		}
	}
	return `it has no "kind", "event_type", "update_type", "sessionUpdate" or "method"`
}

// Names is the agent that the event's own words name, which may be another
// than the one whose log it is in; "" when they name none.
func (e *Event) Names() string { return cmp.Or(e.Text("agent"), string(e.Agent)) }
