package teams

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
)

// What keeps a runner from typing mail into an agent that is idle.
const (
	holdDraft    = "a line is begun at its prompt"
	holdTyping   = "a person types"
	holdDialog   = "a dialog is open"
	holdNoPrompt = "it is not at its prompt"
)

// hold is which of these it is; "" where nothing holds mail, or for a moment only. The
// words of gates are those of ptyrun and its drivers.
func (m *Member) hold() string {
	switch m.gate {
	case "", "idle for a moment only", "it is drawing", "busy":
		return ""
	case "a person types":
		return holdTyping
	case "dialog":
		return holdDialog
	}
	if strings.Contains(m.gate, "draft") {
		return holdDraft
	}
	return holdNoPrompt
}

// heldText is why unread mail waits, where the state does not say so.
func (m *Member) heldText() string {
	switch {
	case m.Kind == "person" || !m.Running:
		return ""
	case m.Inject == "off":
		return "nothing is typed in (inject is off)"
	case m.State == reducer.WordIdle:
		return m.hold()
	}
	return ""
}

// Forecast says in a few words when a message to the member is likely to be seen, on
// evidence: `idle: typed in now`.
func (m *Member) Forecast(now time.Time, urgent bool) string {
	state := string(m.State)
	if m.State == reducer.WordBusy && m.Since != nil {
		state += " " + letter.Span(now.Sub(*m.Since))
	}
	seen := "not read yet"
	if m.ReadAt != nil {
		seen = "last read " + letter.Age(now, *m.ReadAt)
	}
	how := "typed in"
	if m.Inject == "pointer" {
		how = "told of it"
	}
	switch {
	case m.State == reducer.WordPerson:
		return "person"
	case m.Running && m.Inject == "off":
		return state + "; nothing is typed in"
	case m.State == reducer.WordBlocked:
		return "blocked: " + m.about()
	case m.Running && m.State == reducer.WordIdle && m.hold() != "":
		return "idle, but " + m.hold() + ": " + how + " later"
	case m.Running && m.State == reducer.WordIdle:
		return "idle: " + how + " now"
	case m.Running && m.State == reducer.WordBusy && urgent:
		return state + ": interrupts it"
	case m.Running && m.State != reducer.WordUnknown:
		return state + ": " + how + " when idle"
	case m.Running:
		return "running"
	case m.State == reducer.WordUnknown:
		return seen
	case m.State != reducer.WordOff && m.hasHooks() && m.PresenceAt != nil:
		return "at its next turn; last seen " + letter.Age(now, *m.PresenceAt)
	}
	return state + "; " + seen
}
