package session

import (
	"encoding/json"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Input is what a person said to a session, and the message that brought it.
type Input struct {
	wire.HumanInput
	ID   wire.ID         // of the message
	From wire.Address    // who said it; drop@team for a dropped file
	At   time.Time       // when
	Wire json.RawMessage // as it came; nil where it came as plain text

	Session wire.UUID // that it is meant for; "": any
}

// For reports whether the input is meant for a session.
func (in Input) For(id wire.UUID) bool { return in.Session == "" || in.Session == id }

// InputOf is the human input that a message brings; false for a message of another type, and for one from another
// host, whose people are not those of the sessions here. Where the payload cannot be read, the body is the text.
func InputOf(m *wire.Message) (Input, bool) {
	if m.Kind() != wire.TypeHumanInput || m.From.Host != "" {
		return Input{}, false
	}
	in := Input{ID: m.ID, From: m.From, At: m.SentAt, Session: wire.UUID(m.MetaString(FieldSession))}
	if err := wire.Unmarshal(m.Payload, &in.HumanInput); err == nil {
		in.Wire = m.Payload
	} else {
		in.HumanInput = wire.HumanInput{Kind: "message", Text: m.Body}
	}
	return in, true
}

// Message is the message that brings an input to a session's agent; the sender fills in the rest. An
// input that cannot be written is a *wire.SessionError.
func Message(id wire.UUID, in wire.HumanInput) (*wire.Message, error) {
	raw, err := wire.Marshal(in)
	if err != nil {
		return nil, &wire.SessionError{Reason: "no human input: " + err.Error()}
	}
	m := &wire.Message{ID: wire.NewID(), Type: wire.TypeHumanInput, Payload: raw, SentAt: now()}
	if id != "" {
		m.SetMeta(FieldSession, json.RawMessage(`"`+id+`"`))
	}
	return m, nil
}

// Withheld says why a runner or a hook keeps an input from the agent for now, "" when it does not, and
// which paused session keeps it, if one does. muted means that nobody may talk to agents in sessions. An
// agent that reads its mail gets the input.
func Withheld(m *wire.Message, sessions []*Session, muted bool) (why string, paused wire.UUID) {
	in, ok := InputOf(m)
	if !ok || in.Kind == "abort" {
		return "", ""
	}
	if muted {
		return "nobody talks to agents in sessions here", ""
	}
	for _, s := range sessions {
		if in.For(s.SessionID) && s.State == wire.SessionActive {
			return "", ""
		}
		if in.For(s.SessionID) && s.State == wire.SessionPaused {
			paused = s.SessionID
			why = "session " + wire.ID(paused).Short(6) + " is paused"
		}
	}
	return why, paused
}
