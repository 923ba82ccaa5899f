package session

import (
	"encoding/json"
	"time"

	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Input is what a person said to a session, and the message that carried it. Its JSON is that of the HumanInput alone.
type Input struct {
	foreign.HumanInput
	ID   wire.ID         // of the message
	From wire.Address    // drop@team for a dropped file
	At   time.Time       // when it was sent
	Wire json.RawMessage // as received; nil for plain text

	Session wire.UUID // the session that it is for; "": any
}

// For reports whether the input is for a session.
func (in Input) For(id wire.UUID) bool { return in.Session == "" || in.Session == id }

// Receive notes that human input was sent to the session. What it says is in its message, where a Log reads it.
func (s *Session) Receive(in foreign.HumanInput, at time.Time) {
	if s.touch(at); in.IsVerdict() && in.ArtifactURI == nil {
		s.AddDraft(in.DraftID, at)
	}
}

// hears reports whether the input is for the session: it names the session, or none and was delivered since this one began.
// The message's id is made at delivery; a dropped file's sent_at may be older.
func (s *Session) hears(in Input) bool {
	return in.Session == s.SessionID || in.Session == "" && !in.ID.Time().Before(s.CreatedAt.Truncate(time.Millisecond))
}

// InputOf returns the human input in a message to an agent, as the package's InputOf does, unless it is the agent's own,
// which may only abort its session, or CheckInput says that it does not count.
func (st *Store) InputOf(agent wire.Name, m *wire.Message) (Input, bool) {
	in, ok := InputOf(m)
	self := wire.Address{Agent: agent, Team: st.mail.Team}
	_, by := m.FromAgent()
	isOwn := (m.From == self || by == self) && in.Kind != foreign.HumanAbort
	isRefused := in.IsVerdict() && !m.IsByCommand()
	if st.CheckInput != nil {
		isRefused = ok && st.CheckInput(agent, m) != nil
	}
	if !ok || isOwn || isRefused {
		return Input{}, false
	}
	return in, true
}

// InputOf returns the human input in a message. It is false for other types of message, and for messages from another
// host, whose people do not belong to the sessions here. If the payload cannot be read, the body is the text.
func InputOf(m *wire.Message) (Input, bool) {
	if m.Kind() != wire.TypeHumanInput || m.From.Host != "" {
		return Input{}, false
	}
	in := Input{ID: m.ID, From: m.From, At: m.SentAt, Session: wire.UUID(m.MetaString(FieldSession))}
	if err := in.HumanInput.UnmarshalJSON(m.Payload); err == nil {
		in.Wire = m.Payload
	} else {
		in.HumanInput = foreign.HumanInput{Kind: foreign.HumanMessage, Text: m.Body}
	}
	return in, true
}

// Message returns a message with an input, without sender and recipient. Malformed input is a *Error.
func Message(id wire.UUID, in foreign.HumanInput) (*wire.Message, error) {
	raw, err := in.MarshalJSON()
	if err != nil {
		return nil, &Error{Reason: "not human input: " + err.Error()}
	}
	body, _, _ := foreign.HumanText(raw) // which was read a line before
	m := &wire.Message{ID: wire.NewID(), Type: wire.TypeHumanInput, Body: body, Payload: raw, SentAt: now()}
	if id != "" {
		m.SetMeta(FieldSession, wire.Quote(string(id)))
	}
	return m, nil
}

// WithholdReason says why a runner or a hook must not hand over an input now, "" if it may, and which paused session is
// the reason, if one is. muted means that nobody may talk to agents in sessions. An agent that reads its mail itself
// gets the input all the same.
func WithholdReason(m *wire.Message, sessions []*Session, muted bool) (why string, paused wire.UUID) {
	in, ok := InputOf(m)
	if !ok || in.Kind == foreign.HumanAbort {
		return "", ""
	}
	if muted {
		return "sessions take no messages here", ""
	}
	for _, s := range sessions {
		if in.For(s.SessionID) && s.State == Active {
			return "", ""
		}
		if in.For(s.SessionID) && s.State == Paused {
			paused = s.SessionID
			why = "session " + wire.ID(paused).Short(6) + " is paused"
		}
	}
	return why, paused
}
