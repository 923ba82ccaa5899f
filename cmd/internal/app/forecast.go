package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Forecast returns the member that is a message's recipient, as far as it is known, and when it is likely to see it.
func Forecast(r *teamdir.Root, to post.Recipient, sent *wire.Message) (m presence.Member, when string) {
	m, _ = presence.SummaryAt(context.Background(), r, to.Address)
	return m, forecastFor(r, &m, to, sent)
}

// lookOnce returns a function that looks at a member at its first call, unless that is known. What it cannot read has no
// State.
func lookOnce(r *teamdir.Root, known map[wire.Address]presence.Member) func(wire.Address) presence.Member {
	return func(a wire.Address) presence.Member {
		m, isKnown := known[a]
		if !isKnown {
			m, _ = presence.SummaryAt(context.Background(), r, a)
			known[a] = m
		}
		return m
	}
}

func forecastFor(r *teamdir.Root, m *presence.Member, to post.Recipient, sent *wire.Message) string {
	if when := handed(m, to.Push); when != "" {
		return when
	}
	if t, err := r.Team(to.Address.Team); to.Address.Host != "" && err == nil {
		if presence.IsBridged(t, to.Address.Host) {
			return "the bridge sends it"
		}
		return "bridge is off: goes out when it runs"
	}
	if m.Running && !sent.Urgent() && isHandedOver(r, to.Address, sent) { // what the member does by now may come of it
		before := *m
		before.State, before.AtPrompt, before.Runner.Gate = reducer.WordIdle, "", control.GateOpen
		m = &before
	}
	return forecast(m, sent)
}

// isHandedOver reports whether the runner of a member has begun to give it the message.
func isHandedOver(r *teamdir.Root, to wire.Address, sent *wire.Message) bool {
	t, err := r.Team(to.Team)
	if err != nil {
		return false
	}
	turns, err := t.HistorySince(to.Agent, sent.SentAt)
	return err == nil && turns.Delivery(sent.ID).IsHanded
}

// forecast says in a few words when the member is likely to see a message: `idle: typed in now`.
func forecast(m *presence.Member, sent *wire.Message) string {
	m = m.ToMail()
	now := time.Now()
	state, lastRead, typed := string(m.State), "not read yet", "typed in"
	if m.State == reducer.WordBusy && m.Since != nil {
		state += " " + letter.Span(now.Sub(*m.Since))
	}
	if m.ReadAt != nil {
		lastRead = "last read " + letter.Ago(now, *m.ReadAt)
	}
	switch m.Inject {
	case "body":
		if m.Runner.Ways.IsPush() {
			typed = "handed over"
		}
	case "pointer":
		typed = "told to run atm read"
	case "run":
		typed = "typed in and run"
	}
	isByLine := m.Runner.ByLine && m.Inject == "run" // then a line is all that a program gets at once
	switch {
	case m.State == "": // it could not be read, or was retired meanwhile
		return "unknown"
	case m.State == reducer.WordPerson:
		return "person"
	case m.IsSilent() && m.State == reducer.WordUnknown:
		return "its runner does not answer"
	case m.IsSilent():
		return state + ", but its runner does not answer"
	case m.Running && m.Inject == "off":
		return state + "; not typed in"
	case m.State == reducer.WordBlocked:
		return "blocked: " + m.StateDetail()
	case m.Runner.Gate == control.GateMoved, m.Runner.Gate == control.GateStranger, m.Runner.Gate == control.GateUnknown:
		return state + ", but " + m.GateReason() + ": not typed in"
	case m.Running && m.State == reducer.WordIdle && m.GateReason() != "":
		return "idle, but " + m.GateReason() + ": " + typed + " later"
	case m.Running && m.State == reducer.WordIdle && isByLine && len(sent.Body) > control.MaxLine():
		return fmt.Sprintf("idle, but %d bytes do not fit into a line of its terminal: not typed in", len(sent.Body))
	case m.Running && m.State == reducer.WordIdle && isByLine && strings.Contains(strings.TrimSpace(sent.Body), "\n"):
		return "idle: typed in and run now, line by line"
	case m.Running && m.State == reducer.WordIdle:
		return "idle: " + typed + " now"
	case m.Running && m.State == reducer.WordBusy && sent.Urgent():
		return state + ": interrupts it"
	case m.Running && m.State == reducer.WordLimited:
		if m.Until == nil {
			return "at its usage limit, which names no time: " + typed + " after its next turn"
		}
		return "at its usage limit until " + letter.Stamp(*m.Until) + ": " + typed + " when that ends"
	case m.Running && m.State != reducer.WordUnknown:
		return state + ": " + typed + " when idle"
	case m.Running:
		return "running"
	case m.State == reducer.WordUnknown:
		return lastRead
	case m.State != reducer.WordOff && m.HasHooks() && m.PresenceAt != nil:
		return "at its next turn; last seen " + letter.Ago(now, *m.PresenceAt)
	}
	return state + "; " + lastRead
}

// handed says when the member sees a message that was given to its program; "": it was not.
func handed(m *presence.Member, h push.Outcome) string {
	if h.IsIn {
		m = &h.To
	}
	state := string(m.State)
	if m.State == reducer.WordBusy && m.Since != nil {
		state += " " + letter.Span(time.Since(*m.Since))
	}
	switch {
	case h.By == "" || h.By == agents.Hook:
		return ""
	case h.IsUnsure:
		return state + ": handed over, not confirmed"
	case m.State == reducer.WordBlocked && h.IsIn:
		return state + ": handed over, and comes once that is answered"
	case m.State == reducer.WordBusy && h.IsIn:
		return state + ": handed over, and comes behind the tool that runs"
	case h.IsIn:
		return state + ": handed over now"
	case m.State == reducer.WordIdle:
		return state + ": it takes it now"
	case m.State == reducer.WordBlocked:
		return state + ": it takes it once that is answered"
	}
	return state + ": it takes it at once, or behind what it does"
}
