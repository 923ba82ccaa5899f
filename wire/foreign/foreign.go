// Package foreign translates the events and messages of other systems: of the daemon of agent-team-mail, of Trusted
// Autonomy's session channel, of the Agent Client Protocol, as it is now and as vtcode has it, of Codex's app-server, and
// of the PTY manager missiond. Inside atm there is one vocabulary, that of package wire; this is the door.
//
// You may rely on this:
//
//   - Adopt translates an object once, when it comes in. The event has atm's own kind and fields, and the object whole
//     in Wire, so that nothing that it said is lost: unknown members, numbers to the last digit.
//   - AsWire writes an event as the owner of a vocabulary would, to the letter. What came in that vocabulary is written
//     from Wire. (testdata/wire of the repository has what the owners write.)
//   - What is translated never says what only atm says: whose message an event is about, or who has answered.
//   - The owners' types are Go types under the owners' names: AcpSession, DaemonStreamEvent, HumanInput, ManagerEvent. By
//     value and by pointer encoding/json reads and writes them as the owners do: it refuses what they refuse, and leaves
//     out what they do not know. (Package session has those that are stored.) What may be absent is a pointer.
//   - A decoding error is a *wire.DecodeError, with a line and a column, or wire.ErrNotObject.
//   - There is no I/O, no clock and no state. Everything may be called concurrently.
//
// Begin with Adopt and AsWire.
package foreign

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Vocabulary is another system whose events can be written.
type Vocabulary string

// The vocabularies.
const (
	Daemon  Vocabulary = "daemon"  // tag "kind", which our own kinds have too
	Session Vocabulary = "session" // tag "event_type"
	ACP     Vocabulary = "acp"     // tags "update_type" and "sessionUpdate"
)

// ErrNotEvent is returned for JSON that is not an event of any vocabulary.
var ErrNotEvent = errors.New(
	`not an event: without a "kind", "event_type", "update_type", "sessionUpdate" or "method" of a-z, 0-9 and _`)

// Adopt makes an event from one object of any vocabulary, or from a line of another event log of atm's, of which it
// keeps Wire, Extra and, in Agent, the owner. The log that it goes to fills in the rest.
//
// An object of a known kind must be as its owner writes it; a turn event of the daemon may lack agent, thread_id,
// turn_id and transport. Of the current ACP, which grows, only the types are checked. Unknown kinds and members are
// kept.
//
// The error is ErrNotEvent or a *wire.DecodeError.
func Adopt(line []byte) (wire.Event, error) {
	o, err := wire.ReadObject(line)
	switch {
	case err == wire.ErrNotObject:
		return wire.Event{}, ErrNotEvent
	case err != nil:
		return wire.Event{}, err
	case isLogLine(o):
		return adoptLogLine(line)
	}
	f := detect(o)
	if f.typ == nil {
		return wire.Event{}, ErrNotEvent
	}
	members := f.typ.fieldsOf(o.Text(f.typ.tag))
	if f.typ == currentUpdate {
		members = currentCall.fields()
	}
	if _, err := selectFields(o, members); err != nil {
		return wire.Event{}, wire.Locate(line, err)
	}
	e := Translate(wire.Event{Kind: f.kind, EventID: o.Text("event_id"), Wire: wire.Compact(line)})
	if id := o.Text(wire.FieldSession); id != "" && f.typ == sessionEvent {
		e = e.With(wire.FieldSession, id) // the one word of atm's that an emitter may add
	}
	return e, nil
}

// AdoptDropped is Adopt for a dropped file, which may be anything and must not disappear: it is an event only if its kind
// is known, it is as its owner writes it, and it has nothing that makes it a message. A file cannot report what only atm
// appends.
func AdoptDropped(data []byte) (e wire.Event, isEvent bool) {
	o, err := wire.ReadObject(data)
	if err == nil && (isLogLine(o) || detectTagged(o).isKnown(o) && !saysMore(o) && !o.Has("body", "to", "from", "subject")) {
		e, err = Adopt(data)
		return e, err == nil
	}
	return e, false
}

// saysMore reports whether an object with a "kind" has members that this kind does not have, and nothing that says whose
// event it is. Others use the same words as kinds: {"kind":"restarting","service":"web"}.
func saysMore(o wire.Object) bool {
	f := detectTagged(o)
	if f.typ.tag != "kind" || o.Has("agent", "agent_id", "slot_id", "thread_id", "turn_id", "session", "session_id", "sessionId") {
		return false
	}
	more := o.Without("kind")
	for _, known := range f.typ.fieldsOf(f.kind) {
		more = more.Without(known.name)
	}
	return len(more) > 0
}

// AgentOf returns the agent that the event itself names, which may differ from the log's owner, else the log's owner.
func AgentOf(e *wire.Event) string {
	return cmp.Or(e.Text("agent", "agent_id", "slot_id"), string(e.Agent))
}

func isLogLine(o wire.Object) bool {
	isMissing := func(name string) bool { return !o.Has(name) }
	return !slices.ContainsFunc([]string{"seq", "at", "team", "agent", "source", "kind"}, isMissing)
}

func adoptLogLine(line []byte) (wire.Event, error) {
	e, err := wire.DecodeEvent(line)
	switch {
	case err != nil:
	case e.Wire != nil && e.Wire[0] != '{':
		err = &wire.MemberError{Name: "wire", Msg: "must be an object"}
	case !isKind(e.Kind):
		err = &wire.MemberError{Name: "kind", Msg: "must be a word of a-z, 0-9 and _"}
	}
	if err != nil {
		return wire.Event{}, wire.Locate(line, err)
	}
	if mailboxEvent.hasKind(e.Kind) || isAnswer(e.Kind) {
		// It is kept as it came, but is no evidence about a message of this mailbox, or about who has answered here.
		e.Wire, e.Extra = line, nil
	}
	e.Wire = wire.Compact(e.Wire)
	e.Seq, e.At, e.Team, e.Source = 0, time.Time{}, "", ""
	return e, nil
}
