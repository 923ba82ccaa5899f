package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrNotEvent is what Adopt says of JSON that is no event of any vocabulary.
// The error that wraps it says why.
var ErrNotEvent = errors.New("no event")

// Adopt makes an event for a log of one object as it came from outside: of any
// vocabulary (Foreign says how they are told apart), or a line of another log
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
	if i := firstInvalid(line); i >= 0 {
		return Event{}, decodeError(line, i, true, "not UTF-8")
	}
	if !json.Valid(line) {
		return Event{}, notJSON(line)
	}
	at := space(line, 0)
	if line[at] != '{' {
		return Event{}, fmt.Errorf("%w: not a JSON object", ErrNotEvent)
	}
	r := &reading{data: line, fields: members(line, at), at: at}
	if isLogLine(r.fields) {
		return adoptLogLine(r)
	}
	v, kind, ok := Foreign(r.fields)
	if !ok {
		return Event{}, fmt.Errorf("%w: %s", ErrNotEvent, why(r.fields))
	}
	e := Event{Kind: kind}
	if err := r.adopt(v, &e); err != nil {
		return Event{}, err
	}
	var wire bytes.Buffer
	if err := json.Compact(&wire, line[at:valueEnd(line, at)]); err != nil {
		return Event{}, err
	}
	e.Wire = wire.Bytes()
	return e, nil
}

// adopt looks whether the object is as it has to be, and takes from it what an
// event carries.
func (r *reading) adopt(v Vocabulary, e *Event) (err error) {
	switch {
	case v == Session:
		err = conforms[SessionEvent](r, "event_type", e.Kind)
	case v == AppServer:
		err = r.appServer(e)
	case v == ACP && r.has("update_type"):
		err = conforms[SessionUpdate](r, "update_type", e.Kind)
	case v == ACP:
		err = r.currentACP(e)
	case IsDaemonKind(e.Kind):
		err = new(DaemonStreamEvent).take(r, true)
	default:
		if _, err = r.must("kind"); err == nil {
			err = r.types(kinds()[e.Kind])
		}
	}
	for _, id := range []struct {
		key string
		to  *string
	}{{"session", &e.Session}, {"session_id", &e.Session}, {"sessionId", &e.Session}, {"turn_id", &e.TurnID}, {"event_id", &e.EventID}} {
		if err == nil && *id.to == "" {
			err = r.text(id.key, id.to, true)
		}
	}
	return err
}

// conforms looks whether an object of a known kind can be read as a record; an
// unknown one is anything.
func conforms[T any](r *reading, tag, kind string) error {
	if _, err := r.must(tag); err != nil {
		return err
	}
	v := newOf[T]()
	if !slices.Contains(planOf(v.Type())[0].kinds, kind) {
		return nil
	}
	d := decoder{data: r.data}
	return d.record(r, v)
}

func (r *reading) has(key string) bool { return has(r.fields, key) }

// object is the reading of a member that is an object; nil when it is absent,
// null or something else.
func (r *reading) object(key string) (*reading, error) {
	f, ok, err := r.get(key)
	if err != nil || !ok || f.Raw[0] != '{' {
		return nil, err
	}
	return &reading{data: r.data, fields: members(r.data, f.at), at: f.at}, nil
}

// currentACP looks at an update of the protocol of today, bare or in its
// notification.
func (r *reading) currentACP(e *Event) error {
	for _, around := range []string{"params", "update"} {
		in, err := r.object(around)
		if err != nil {
			return err
		}
		if in == nil {
			continue
		}
		if err := r.types(map[string]kindOf{"method": aString, "sessionId": aString}); err != nil {
			return err
		}
		if err := r.text("sessionId", &e.Session, true); err != nil {
			return err
		}
		r = in
	}
	if err := r.text("sessionId", &e.Session, true); err != nil {
		return err
	}
	return r.types(map[string]kindOf{
		"sessionUpdate": aString, "toolCallId": aString, "title": aString, "status": aString, "kind": aString,
		"messageId": aString, "currentModeId": aString, "entries": anArray, "availableCommands": anArray, "locations": anArray,
		"toolCall": anObject, "options": anArray,
	})
}

// appServer looks at a message of Codex's app-server.
func (r *reading) appServer(e *Event) error {
	if _, err := r.must("method"); err != nil {
		return err
	}
	in, err := r.object("params")
	if err == nil && in == nil {
		err = r.fail(r.at, "params is missing")
	}
	if err != nil {
		return err
	}
	turn, err := in.object("turn")
	if err != nil {
		return err
	}
	switch e.Kind {
	case TurnStarted, TurnCompleted:
		for _, in := range []*reading{in, turn} {
			if in == nil {
				continue
			}
			if err := in.types(map[string]kindOf{"id": aString, "turnId": aString, "turn_id": aString, "threadId": aString, "thread_id": aString, "status": aString}); err != nil {
				return err
			}
			if f, ok, _ := in.get("status"); ok && string(f.Raw) != "null" {
				switch s := str(f.Raw); s {
				case "completed", "interrupted", "failed", "inProgress":
				default:
					return in.fail(f.at, "status: must be completed, interrupted, failed or inProgress")
				}
			}
		}
	}
	for _, id := range []struct {
		in  *reading
		key string
	}{{turn, "id"}, {in, "turnId"}, {in, "turn_id"}} {
		if id.in != nil && e.TurnID == "" {
			if err := id.in.text(id.key, &e.TurnID, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// types looks whether the fields that are there are what they must be.
func (r *reading) types(want map[string]kindOf) error {
	for i := range r.fields {
		kind, known := want[r.fields[i].Key]
		if !known {
			continue
		}
		f, _, err := r.get(r.fields[i].Key)
		if err != nil {
			return err
		}
		if !kind.fits(f.Raw) {
			return r.fail(f.at, "%s: must be %s", f.Key, kind)
		}
	}
	return nil
}

// isLogLine reports whether an object is a line of a log of ours.
func isLogLine(fields []Field) bool {
	for _, key := range []string{"seq", "at", "team", "agent", "source", "kind"} {
		if !has(fields, key) {
			return false
		}
	}
	return true
}

func adoptLogLine(r *reading) (Event, error) {
	for _, f := range r.fields {
		if slices.Contains(eventFields, f.Key) {
			if _, _, err := r.get(f.Key); err != nil {
				return Event{}, err
			}
		}
	}
	old, err := DecodeEvent(r.data)
	if err != nil {
		return Event{}, err
	}
	if !isKind(old.Kind) {
		return Event{}, r.fail(r.at, "kind: must be a word of a-z, 0-9 and _")
	}
	e := Event{Agent: old.Agent, Kind: old.Kind, Session: old.Session, TurnID: old.TurnID, EventID: old.EventID, Extra: old.Extra}
	if IsMailboxKind(old.Kind) {
		// Of another log: kept, and no evidence of anything in this one.
		old.Wire, e.Extra = r.data, nil
	}
	if len(old.Wire) > 0 {
		if space(old.Wire, 0) == 0 && old.Wire[0] != '{' {
			f, _, _ := r.get("wire")
			return Event{}, r.fail(f.at, "wire: must be an object")
		}
		var wire bytes.Buffer
		if err := json.Compact(&wire, old.Wire); err != nil {
			return Event{}, err
		}
		e.Wire = wire.Bytes()
	}
	return e, nil
}

// why says what an object lacks to be an event.
func why(fields []Field) string {
	if IsMessage(fields) {
		return "this is a message: atm send --batch"
	}
	for _, tag := range tags {
		if raw := find(fields, tag.key); raw != nil {
			return fmt.Sprintf("%s must be a word of a-z, 0-9 and _", tag.key)
		}
	}
	return `it has no "kind", "event_type", "update_type", "sessionUpdate" or "method"`
}

// Names is the agent that the event's own words name, which may be another
// than the one whose log it is in; "" when they name none.
func (e *Event) Names() string {
	if s := e.Body().Text("agent"); s != "" {
		return s
	}
	return string(e.Agent)
}
