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

var holdsUntil = map[string]string{
	holdDraft: "that is sent or cleared", holdTyping: "they pause", holdDialog: "that is answered", holdNoPrompt: "it is",
}

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
	last := m.lastSign(now)
	switch {
	case m.State == reducer.WordPerson:
		return "person"
	case m.Running && m.Inject == "off":
		return strings.TrimSuffix(state+"; nothing is typed in; "+last, "; ")
	case m.State == reducer.WordBlocked:
		return "blocked: " + m.about()
	case m.State == reducer.WordOff:
		return strings.TrimSuffix("off; "+last, "; ")
	case m.State == reducer.WordUnknown && m.Running:
		return "running"
	case m.State == reducer.WordUnknown && last != "":
		return last
	case m.State == reducer.WordUnknown:
		return "not read yet"
	case m.Running:
		return m.forecastRunner(state, urgent)
	case m.hasHooks() && m.State == reducer.WordBusy && m.Presence == reducer.Online:
		return state + ": handed over in this turn"
	case m.hasHooks() && m.PresenceAt != nil:
		return "at its next turn; last seen " + letter.Age(now, *m.PresenceAt)
	}
	return strings.TrimSuffix(state+"; "+last, "; ")
}

// forecastRunner is Forecast where a runner brings the mail.
func (m *Member) forecastRunner(state string, urgent bool) string {
	isIdle := m.State == reducer.WordIdle
	switch {
	case isIdle && m.Inject == "pointer":
		return "idle: told of it now"
	case isIdle && m.hold() != "":
		return "idle, but " + m.hold() + ": typed in when " + holdsUntil[m.hold()]
	case isIdle:
		return "idle: typed in now"
	case m.State == reducer.WordBusy && urgent:
		return state + ": interrupts it"
	case m.State == reducer.WordError:
		return "error: " + m.about() + "; typed in when idle"
	case m.Inject == "pointer":
		return state + ": told of it when idle"
	}
	return state + ": typed in when idle"
}

// lastSign is when the member was last seen to read, else to do anything.
func (m *Member) lastSign(now time.Time) string {
	switch {
	case m.ReadAt != nil:
		return "last read " + letter.Age(now, *m.ReadAt)
	case m.PresenceAt != nil && m.Presence != reducer.Offline:
		return "last seen " + letter.Age(now, *m.PresenceAt)
	}
	return ""
}
