package presence

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// This file says what keeps mail from a member, from evidence only.

// IsSilent reports whether the member's runner does not answer.
func (m *Member) IsSilent() bool { return m.Running && errors.Is(m.RunnerErr, control.ErrNotAnswering) }

// ToMail returns the member as its runner and its hooks see it when they hand over mail: a question on the session channel
// holds up none, nor one of a sub-agent of a program that its person has started.
func (m *Member) ToMail() *Member {
	if m.AtPrompt == "" {
		return m
	}
	out := *m
	out.State, out.WaitingOn = m.AtPrompt, nil
	return &out
}

// slowStart is how long a program may take to show its prompt before that is reported.
const slowStart = 10 * time.Second

// holdReason returns what keeps the runner from typing in unread mail, unless State says it.
func (m *Member) holdReason() string {
	m = m.ToMail()
	why, isSlow := m.GateReason(), m.Runner.ChildPID != 0 && time.Since(m.Runner.Started) > slowStart
	switch {
	case m.Inject == "off":
		return "atm types nothing in (inject is off)"
	case m.Runner.Gate == control.GateUnknown:
		return why
	case m.State == reducer.WordIdle && why == "" && m.Runner.Untyped != "":
		return "typing it in failed: " + m.Runner.Untyped
	case m.State == reducer.WordIdle, (m.State == reducer.WordStarting || m.State == reducer.WordUnknown) && isSlow:
		return why
	}
	return ""
}

// GateReason returns why the runner types nothing into an idle agent; "" if it does, or will in a moment.
func (m *Member) GateReason() string {
	switch g := m.Runner.Gate; g {
	case control.GateOpen, control.GateSettling, control.GateDrawing, control.GateBusy:
		return ""
	case control.GateDialog:
		return "a dialog is open"
	case control.GateDraft:
		return "its prompt has a half-written line"
	case control.GateTyping:
		return "a person is typing"
	case control.GateLimit:
		return "it is at its usage limit"
	case control.GateMoved, control.GateStranger, control.GateUnread, control.GateUnknown:
		return string(g)
	}
	return "it is not at its prompt"
}

// OnlyShowsMail reports whether the member is a shell or the like, which is told to read its mail and acts on none.
func (m *Member) OnlyShowsMail() bool { return m.Inject == "pointer" && m.Runner.Driver == "plain" }

// HasHooks reports whether hooks hand over mail to the agent. Some only report what it does.
func (m *Member) HasHooks() bool { return m.Transport == "hook" }

// StateDetail describes the state's detail to people, for the middle of a line.
func (m *Member) StateDetail() string {
	if w := m.WaitingOn; w != nil && w.Dialog != "trust" {
		if q := ask.Of(*w); q.Line() != "" {
			return q.Brief(80)
		}
	}
	said := strings.TrimSuffix(strings.TrimSuffix(m.Detail, m.note), "; ")
	return strings.Trim(letter.Name(InWords(m.State, said), 80)+"; "+m.note, "; ")
}

// words are what details of a state mean that a program says in words of its own. Why it ends a session is one
// of these; some say nothing that off does not.
var words = map[reducer.Word]map[string]string{
	reducer.WordOff: {
		"other": "", "exit": "", "prompt_input_exit": "", "logout": "logged out", "deleted": "its session was deleted",
		"bypass_permissions_disabled": "it may not bypass permissions any more",
	},
	reducer.WordBlocked: {"trust": "asks whether to trust its directory", "unknown": "asks what only its terminal shows"},
}

// InWords returns the detail of a state for people. A detail that it does not know is the program's or a person's own.
func InWords(state reducer.Word, detail string) string {
	if text, isKnown := words[state][detail]; isKnown {
		return text
	}
	if state == reducer.WordOff && strings.HasPrefix(detail, "SIG") {
		return "killed by " + detail
	}
	return detail
}

// declaredState returns a member's state with what its program says in a file of its own, if that is newer than what its hooks
// have told: they do not tell of an interrupt. nil: it is not.
func (m *Member) declaredState(s *reducer.State, now time.Time) *reducer.State {
	shown := s.Session()
	i := slices.IndexFunc(m.Programs, func(p programs.Program) bool { return p.Session != "" && p.Session == shown.ID })
	if i < 0 {
		return nil
	}
	session, err := m.says, error(nil)
	if session == nil {
		session, err = m.Programs[i].Says()
	}
	if err != nil || session.ID != shown.ID || session.Activity == reducer.Unknown {
		return nil
	}
	says := reducer.Session{Activity: session.Activity}
	isNewer := session.Since.After(shown.HeardAt) && now.Sub(shown.HeardAt) >= reducer.StaleAfter
	if says.Word() == s.Word() || !isNewer {
		return nil
	}
	e := wire.Event{Source: wire.SourcePTY, Kind: wire.StateChange, Session: session.ID, Team: s.Team, Agent: s.Agent, At: session.Since}
	e = e.With(wire.FieldNew, string(session.Activity)).With("evidence", string(reducer.FromFile)).With(wire.FieldDetail, wire.Clip(session.WaitingFor, 40))
	return applyTo(s, e)
}

// Sharing says which programs have a member's name at the same time; "": at most one has it.
func (m *Member) Sharing() string {
	var names []string
	for _, p := range m.Programs {
		names = append(names, p.String())
	}
	all := strings.Join(names, " and ")
	switch {
	case m.Running && all != "":
		return all + " beside the runner: gets no mail"
	case len(names) > 1:
		return all + " share the name and its mail"
	}
	return ""
}
