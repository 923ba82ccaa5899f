package teams

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// This file says why mail waits and when it is likely to be seen, from evidence only.

// IsSilent reports whether the member's runner does not answer.
func (m *Member) IsSilent() bool { return m.Running && m.Detail == reducer.NotAnswering }

// toMail returns the member as its runner and its hooks see it when they hand over mail: a question on the session channel
// holds up none.
func (m *Member) toMail() *Member {
	if m.atPrompt == "" {
		return m
	}
	out := *m
	out.State, out.WaitingOn = m.atPrompt, nil
	return &out
}

// slowStart is how long a program may take to show its prompt before that is reported.
const slowStart = 10 * time.Second

// holdReason returns what keeps the runner from typing in unread mail, unless State says it.
func (m *Member) holdReason() string {
	m = m.toMail()
	why, isSlow := m.gateReason(), m.Runner.ChildPID != 0 && time.Since(m.Runner.Started) > slowStart
	switch {
	case m.Inject == "off":
		return "atm types nothing in (inject is off)"
	case m.State == reducer.WordIdle && why == "" && m.Runner.Untyped != "":
		return "typing it in failed: " + m.Runner.Untyped
	case m.State == reducer.WordIdle, (m.State == reducer.WordStarting || m.State == reducer.WordUnknown) && isSlow:
		return why
	}
	return ""
}

// runnerGates says what the gates of a runner mean, in a few words and for firstShut.
var runnerGates = map[control.Gate]struct{ short, why string }{
	control.GateDialog:   {"a dialog is open", "{name} is waiting for an answer (a dialog): atm pending, then atm approve {name}, or atm attach {name}"},
	control.GateDraft:    {"its prompt has a half-written line", "the prompt of {name} has a half-written line, which atm does not type over: atm attach {name}, and send or clear it"},
	control.GateTyping:   {"a person is typing", "a person is typing into {name}; the mail follows when they pause: atm wait --busy {name}"},
	control.GateMoved:    {string(control.GateMoved), "the root of {name} was moved while it ran, so atm types nothing in: atm stop {name}, then start it again"},
	control.GateStranger: {string(control.GateStranger), "the root of {name} is not accepted, so atm types nothing in: atm init says why, and how to accept it"},
	control.GateLimit:    {"it is at its usage limit", "{name} is at its usage limit and gets it when that ends: atm wait --idle {name}"},
	control.GateUnread: {string(control.GateUnread), "{name} " + strings.TrimPrefix(string(control.GateUnread), "it ") +
		", so atm types nothing for some minutes until it does: atm attach {name}, and press a key"},
}

// gateReason returns why the runner types nothing into an idle agent; "" if it does, or will in a moment.
func (m *Member) gateReason() string {
	switch m.Runner.Gate {
	case control.GateOpen, control.GateSettling, control.GateDrawing, control.GateBusy:
		return ""
	}
	return cmp.Or(runnerGates[m.Runner.Gate].short, "it is not at its prompt")
}

// RunsNoMail reports whether the member is a shell, or a program that may be one, which is only told to read its mail.
func (m *Member) RunsNoMail() bool { return m.Inject == "pointer" && m.Runner.Driver == "plain" }

// HasHooks reports whether hooks hand over mail to the agent. The hooks of OpenCode and Codex's notify only report what
// it does.
func (m *Member) HasHooks() bool { return m.Transport == "hook" }

// StateDetail describes the state's detail to people, for the middle of a line.
func (m *Member) StateDetail() string {
	if w := m.WaitingOn; w != nil && w.Dialog != "trust" && cmp.Or(w.Tool, w.Input, w.Prompt) != "" {
		q := policy.Question{Kind: w.Kind, Prompt: w.Prompt, Tool: w.Tool, Input: w.Input}
		return q.Brief(80)
	}
	said := strings.TrimSuffix(strings.TrimSuffix(m.Detail, m.note), "; ")
	return strings.Trim(letter.Name(said, 80)+"; "+m.note, "; ")
}

// Forecast returns the member that is a message's recipient, as far as it is known, and when it is likely to see it.
func (r *Root) Forecast(to Recipient, sent *wire.Message) (m Member, when string) {
	a := to.Address
	m, _ = r.Summary(a) // with an error it has no State
	if when := m.handed(to.Pushed); when != "" {
		return m, when
	}
	if t, noTeam := r.Team(a.Team); a.Host != "" && noTeam == nil {
		if t.IsBridged() {
			return m, "the bridge sends it"
		}
		return m, "bridge is off: goes out when it runs"
	}
	return m, m.Forecast(sent)
}

// Forecast says in a few words when the member is likely to see a message: `idle: typed in now`.
func (m *Member) Forecast(sent *wire.Message) string {
	m = m.toMail()
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
	case m.Runner.Gate == control.GateMoved, m.Runner.Gate == control.GateStranger:
		return state + ", but " + m.gateReason() + ": not typed in"
	case m.Running && m.State == reducer.WordIdle && m.gateReason() != "":
		return "idle, but " + m.gateReason() + ": " + typed + " later"
	case m.Running && m.State == reducer.WordIdle && isByLine && len(sent.Body) > control.MaxLine():
		return fmt.Sprintf("idle, but %d bytes do not fit into a line of its terminal: not typed in", len(sent.Body))
	case m.Running && m.State == reducer.WordIdle && isByLine && strings.Contains(strings.TrimSpace(sent.Body), "\n"):
		return "idle: typed in and run now, line by line"
	case m.Running && m.State == reducer.WordIdle:
		return "idle: " + typed + " now"
	case m.Running && m.State == reducer.WordBusy && sent.Urgent():
		return state + ": interrupts it"
	case m.Running && m.State == reducer.WordLimited:
		return "at its usage limit: " + typed + " when that ends"
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

// unreadGate says what an unread message waits for, and a command that helps.
func (t *Team) unreadGate(name wire.Name, it *mailbox.Item, d *history.Delivery) string {
	lease := (&letter.Renderer{Now: time.Now(), Team: t.Name}).Lease(LeaseFlags(it))
	if it.Lease != nil {
		return fmt.Sprintf("%s: atm wait --acked %s", lease, it.ID.Short(6))
	}
	m, err := t.Summary(name)
	if err != nil {
		return lease
	}
	m.Doors = t.waysNow(name)
	why := m.unreadGate(it, d, t.RunCommand(name))
	if isShared, _ := t.Box(name).Shared(); isShared {
		why = "whoever takes it first gets it: atm take " + string(name)
	}
	return strings.TrimPrefix(lease+"; unread; "+cmp.Or(t.HoldReason(it.Message, name), why), "; ")
}

// turnGate says what a member's open turn waits for, and a command that helps; "": unknown.
func (t *Team) turnGate(name wire.Name) string {
	m, err := t.Summary(name)
	if err != nil {
		return ""
	}
	return m.firstShut(append(m.questionGates(),
		gate{m.State == reducer.WordOff, "{name} {has been} off{for}: {run}"},
		gate{m.State == reducer.WordBusy, "{name} {has been} busy{for}: atm wait --idle {name}"},
	), t.RunCommand(name))
}

// gate is a possible reason why a message waits. firstShut fills in {name}, {has been} and {for} ("has been" and
// " for 3m", or "is" and "" without a time), {state}, {about}, and {run}, the command that runs the member again.
type gate struct {
	isShut bool
	why    string
}

func (m *Member) firstShut(gates []gate, again string) string {
	i, hasBeen, since := slices.IndexFunc(gates, func(g gate) bool { return g.isShut }), "is", ""
	if m.Since != nil {
		hasBeen, since = "has been", " for "+letter.Span(time.Since(*m.Since))
	}
	if i < 0 {
		return ""
	}
	state := strings.Replace(string(m.State), "error", "in error", 1)
	return strings.NewReplacer("{name}", string(m.Name), "{has been}", hasBeen, "{for}", since, "{state}", state,
		"{about}", m.StateDetail(), "{run}", again).Replace(gates[i].why)
}

// questionGates are shut while the member itself waits for an answer.
func (m *Member) questionGates() []gate {
	return []gate{
		{m.WaitingOn != nil && reducer.IsForTerminal(m.WaitingOn.Dialog), "{name} {has been} waiting for an answer{for} ({about}), which only a person at its terminal may give: atm attach {name}"},
		{m.atPrompt != "" && m.State == reducer.WordBlocked, "{name} {has been} waiting for an answer{for} ({about}): atm pending"},
		{m.State == reducer.WordBlocked && m.Running, "{name} {has been} waiting for an answer{for} ({about}): atm pending, then atm approve {name}, or atm attach {name}"},
		{m.State == reducer.WordBlocked, "{name} {has been} waiting for an answer{for} ({about}): atm status {name}"},
		{m.Runner.Gate == control.GateDialog, runnerGates[control.GateDialog].why},
	}
}

func (m *Member) unreadGate(it *mailbox.Item, d *history.Delivery, again string) string {
	m = m.toMail()
	now := time.Now()
	failed := letter.Age(now, d.Failed.At) + " (" + letter.Name(d.FailedWhy, 80) + ")"
	return m.firstShut(slices.Concat([]gate{
		{m.State == reducer.WordPerson, "{name} is a person: it waits until they read it"},
		{m.Inject == "off", "atm types nothing into {name} (inject is off): it must run atm read"},
		{m.IsSilent(), "the runner of {name} does not answer and types nothing in: atm doctor"},
		{it.SupersededBy != "", "it was superseded by " + it.SupersededBy.Short(6) + ", so it is never typed in: {name} gets it with atm read"},
		{it.Expired(now), "it has expired, so it is never typed in: {name} gets it with atm read"},
	}, m.questionGates(), []gate{
		{m.State == reducer.WordLimited && m.Running, "{name} {has been} at its usage limit{for} ({about}) and gets it when that ends: atm wait --idle {name}"},
		{runnerGates[m.Runner.Gate].why != "", runnerGates[m.Runner.Gate].why},
		{m.State == reducer.WordBusy && m.Running || m.Runner.Gate == control.GateBusy, "{name} {has been} busy{for} and gets it when idle: atm wait --idle {name}"},
		{d.IsOnlyAnnounced && m.Running, "{name} was told to run atm read, and has not yet: atm screen {name}"},
		{m.State == reducer.WordOff, "{name} {has been} off{for} and gets it when it runs again: {run}"},
		{m.State == reducer.WordError && !m.Running, "{name} {has been} in error{for} ({about}) and gets it when it runs again: {run}"},
		{d.Failed.Exists() && it.TimesHandedOut >= control.MaxTries, "typing it in failed " + failed + ": {name} gets it with atm read, or atm withdraw " + it.ID.Short(6)},
		{d.Failed.Exists(), "typing it in failed " + failed + "; {name} can still get it with atm read: atm screen {name}"},
		{d.Announced.Exists() && m.waitsInside(), "it was handed to the program of {name} and counts as read once that shows it to its model: atm status {name}"},
		{d.Announced.Exists(), "it was handed to {name} and counts as read when its hooks next run: atm status {name}"},
		{m.Running, "{name} {has been} {state}{for} and has not received it yet: atm screen {name}"},
		{m.State == reducer.WordBusy && m.HasHooks(), "{name} {has been} busy{for} and gets it at its next tool call or turn: atm wait --idle {name}"},
		{m.HasHooks() && m.waitsInside(), "the program of {name} takes it as soon as it can: atm status {name} says how"},
		{m.HasHooks(), "{name} gets it when its next turn begins: atm wait --busy {name}"},
		{true, "no runner brings mail to {name}: it must run atm read"},
	}), again)
}
