package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotEvent is Adopt's error for JSON that is no event of any vocabulary. The error
// that wraps it says why.
var ErrNotEvent = errors.New("no event")

// Adopt makes an event from one object as it came from outside: of any vocabulary, or
// a line of another log of ours. The object is kept whole under Wire, compact. Kind,
// Session, TurnID and EventID are set from it; the log fills in the rest. From a line
// of another log the event is taken over with its wire and its own fields, and Agent
// is the owner of that log.
//
// An object of a known kind must be as its owner writes it: required fields are there,
// with the right types and words, and no known key stands twice. A turn event of the
// daemon may lack agent, thread_id, turn_id and transport. Of the current ACP, which
// grows, only the types are checked. Unknown kinds and fields are kept.
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
	v, kind, ok := detect(o)
	if !ok {
		return Event{}, fmt.Errorf("%w: %s", ErrNotEvent, whyNoEvent(o))
	}
	fields := slices.Concat(adoptedFields(o, v, kind), namingFields)
	if _, err := object(fields...).canonicalObject(start(line), o); err != nil {
		return Event{}, placed(line, err)
	}
	e := Event{Kind: kind, Wire: compact(line)}
	b := e.Body()
	e.Session, e.TurnID, e.EventID = b.Text("session"), b.Text("turn_id"), o.Text("event_id")
	return e, nil
}

// start is where the value of a text begins.
func start(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t\r\n")) }

// namingFields say in any vocabulary which session, turn and event it is.
var namingFields = []field{
	{"session", optional, text}, {"session_id", optional, text}, {"sessionId", optional, text},
	{"turn_id", optional, text}, {"event_id", optional, text},
}

// adoptedFields are the fields that are checked in an object from outside.
func adoptedFields(o Object, v Vocabulary, kind string) []field {
	switch {
	case v == AppServer:
		return appServerFields(kind)
	case v == ACP && !o.Has("update_type"):
		return currentACPFields(o, "params", "update")
	}
	g := map[Vocabulary]*group{Session: &sessionKinds, ACP: &acpKinds, Daemon: &daemonKinds}[v]
	if of, k := kindOf(kind); k != nil && of.tag == g.tag {
		g = of
	}
	fields := []field{{g.tag, required, anything}}
	if k := g.find(kind); k != nil {
		fields = append(fields, k.fields...)
	}
	return fields
}

// currentACPFields are those of an update of the ACP of today, bare or within the
// objects of these names.
func currentACPFields(o Object, around ...string) []field {
	for i, name := range around {
		if inner := o.Object(name); inner != nil {
			is := schema{fields: currentACPFields(inner, around[i+1:]...)}
			return []field{{"method", optional, str}, {"sessionId", optional, text}, {name, optional, is}}
		}
	}
	return currentFields
}

// appServerFields are those of a message of Codex's app-server.
func appServerFields(kind string) []field {
	turn := []field{{"turnId", optional, text}, {"turn_id", optional, text}}
	if kind == TurnStarted || kind == TurnCompleted {
		turn = append(turn, field{"threadId", optional, str}, field{"thread_id", optional, str},
			field{"status", optional, oneOf("completed", "interrupted", "failed", "inProgress")})
	}
	inner := schema{fields: append(slices.Clone(turn), field{"id", optional, text})}
	return []field{{"method", required, str}, {"params", required, object(append(turn, field{"turn", optional, inner})...)}}
}

// isLogLine reports whether an object is a line of a log of ours.
func isLogLine(o Object) bool {
	return o.Has("seq") && o.Has("at") && o.Has("team") && o.Has("agent") && o.Has("source") && o.Has("kind")
}

func adoptLogLine(line []byte, o Object) (Event, error) {
	at := start(line)
	once := schema{}
	for _, name := range eventFields {
		once.fields = append(once.fields, field{name, optional, anything})
	}
	if _, err := once.canonicalObject(at, o); err != nil {
		return Event{}, placed(line, err)
	}
	e, err := DecodeEvent(line)
	if err != nil {
		return Event{}, err
	}
	if !isKind(e.Kind) {
		return Event{}, placed(line, faultAt(at, "kind: must be a word of a-z, 0-9 and _"))
	}
	if mailboxKinds.has(e.Kind) {
		// It is kept as it came, and is no evidence about a message of this mailbox.
		e.Wire, e.Extra = line, nil
	}
	if e.Wire = compact(e.Wire); len(e.Wire) > 0 && e.Wire[0] != '{' {
		return Event{}, placed(line, faultAt(at+o.place("wire"), "wire: must be an object"))
	}
	e.Seq, e.At, e.Team, e.Source = 0, time.Time{}, "", ""
	return e, nil
}

// whyNoEvent says what an object lacks to be an event.
func whyNoEvent(o Object) string {
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

// Names is the agent that the event itself names, which may be another than the one
// whose log it is in; else the owner of the log, if it is known.
func (e *Event) Names() string { return cmp.Or(e.Text("agent"), string(e.Agent)) }
