package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// This file says what a message waits for, from evidence only, and a command that helps.

// A Trace is how far a message got at one recipient, and what its next stage waits for.
type Trace struct {
	post.DeliveryTrace
	Gate failure.Hint `json:"gate,omitempty"` // and a command that helps
}

// TraceOf returns the progress of a message at one recipient.
func TraceOf(answers *post.Answers, r *teamdir.Root, m *wire.Message, a wire.Address) Trace {
	t := Trace{DeliveryTrace: answers.Trace(m, a)}
	if t.Item == nil && t.State == "" {
		if l := laterOf(r, m); l != nil {
			t.State, t.Gate, t.Due = l.State, laterGate(r, m, l), ""
			return t
		}
	}
	if a.Host == "" {
		t.Gate = t.localGate(r, m, a)
	} else if team, err := r.Team(a.Team); err == nil {
		t.Gate = t.remoteGate(team, m, a)
	}
	return t
}

// laterGate says why a message that was to be sent later is not at a recipient.
func laterGate(r *teamdir.Root, m *wire.Message, l *post.Later) failure.Hint {
	team, err := r.Team(m.From.Team)
	switch {
	case err != nil:
		return ""
	case l.State == maildir.Withdrawn:
		return "it was withdrawn before it was sent"
	case l.State == post.Undelivered:
		return failure.Say("it was not delivered (%s): `atm retry %s`", letter.Escape(post.LaterReason(team, *l)), m.ID.Short(6))
	case l.At.After(time.Now()):
		return failure.Say("it goes out %s: `atm withdraw %s` takes it back", letter.When(time.Now(), l.At), m.ID.Short(6))
	}
	return failure.Say("it is due since %s, and not delivered: `atm doctor`", letter.Stamp(l.At))
}

func (t *Trace) localGate(r *teamdir.Root, m *wire.Message, a wire.Address) failure.Hint {
	unknown, _ := errors.AsType[*teamdir.UnknownError](t.Err)
	switch {
	case t.State == "bad":
		return failure.Say("it cannot be read there: %v; `atm doctor`", t.Err)
	case unknown != nil && unknown.Retired:
		return failure.Say("%s is retired; its mail is kept: `atm team restore %s --team %s`", a, a.Agent, a.Team)
	case unknown != nil || errors.Is(t.Err, teamdir.ErrNoTeam):
		return failure.Say("%s has no mailbox here: `atm team`", a)
	case t.Delivery == nil:
		return failure.Say("the mailbox of %s cannot be read: `atm doctor`", a)
	// It need not be read to be answered: an answer may be a dropped file.
	case t.Err != nil, t.Reached("acked"), t.Reached("replied"):
		return ""
	}
	team, _ := r.Team(a.Team)
	if t.State == maildir.Unread {
		return unreadGate(team, a.Agent, t.Item, t.Delivery)
	}
	why := failure.Hint("")
	if d := t.Delivery; d.Turn != nil && !d.Turn.HasEnded() {
		why = turnGate(team, a.Agent)
	}
	if why == "" && t.State == maildir.Owed {
		why = ackGate(m, a)
	}
	return why
}

func (t *Trace) remoteGate(team *teamdir.Team, m *wire.Message, a wire.Address) failure.Hint {
	switch isInOutbox := t.Err == nil; {
	case isInOutbox && t.State == maildir.Withdrawn:
	case isInOutbox && presence.IsBridged(team, a.Host):
		return "the bridge runs, but has not sent it yet" + lastSaid(team, a.Host)
	case isInOutbox:
		return "the bridge is off: it goes out when `atm bridge` runs" + lastSaid(team, a.Host)
	case t.State == maildir.Owed:
		return ackGate(m, a)
	case t.State != "", m.From.Host != "": // its own host knows more
	case t.Returned != nil:
		return failure.Say("it was returned: `atm show %s`", t.Returned.ID.Short(6))
	case errors.Is(t.Err, maildir.ErrNotFound):
		return failure.Say("it was sent; host %s has reported nothing yet", a.Host)
	default:
		return failure.Say("atm cannot tell whether it was sent: %v", t.Err)
	}
	return ""
}

// lastSaid is why a bridge holds mail up, behind what is known of it; "": it has not said.
func lastSaid(team *teamdir.Team, host wire.Name) failure.Hint {
	if why := presence.HeldReason(team, host); why != "" {
		return failure.Say("; it last said: %s", why)
	}
	return ""
}

func ackGate(m *wire.Message, a wire.Address) failure.Hint {
	return failure.Say("%s has not acknowledged it: `atm wait --acked %s`", a.Agent, m.ID.Short(6))
}

// unreadGate says what an unread message waits for, and a command that helps.
func unreadGate(t *teamdir.Team, name wire.Name, it *maildir.Item, d *history.Delivery) failure.Hint {
	lease := (&letter.Renderer{Now: time.Now(), Team: t.Name}).Lease(post.LeaseFlags(it))
	if it.Lease != nil {
		return failure.Say("%s: `atm wait --acked %s`", lease, it.ID.Short(6))
	}
	m, err := presence.Summary(context.Background(), t, name)
	if err != nil {
		return failure.Say("%s", lease)
	}
	m.WaysIn = programs.WaysNow(t, name)
	why := mailGate(&m, it, d, RunCommand(t, name))
	if isShared, _ := claim.Shared(t.Box(name)); isShared {
		why = failure.Say("whoever takes it first gets it: `atm take %s`", name)
	}
	why = "unread; " + cmp.Or(holdText(t.HoldReason(it.Message, name), name), why)
	if lease != "" {
		why = failure.Say("%s; %s", lease, why)
	}
	return why
}

// turnGate says what a member's open turn waits for, and a command that helps; "": unknown.
func turnGate(t *teamdir.Team, name wire.Name) failure.Hint {
	m, err := presence.Summary(context.Background(), t, name)
	if err != nil {
		return ""
	}
	return firstShut(&m, append(questionGates(&m),
		gate{m.State == reducer.WordOff, "{name} {has been} off{for}: `{run}`"},
		gate{m.State == reducer.WordBusy, "{name} {has been} busy{for}: `atm wait --idle {name}`"},
	), RunCommand(t, name))
}

// gate is a possible reason why a message waits. firstShut fills in {name}, {has been} and {for} ("has been" and
// " for 3m", or "is" and "" without a time), {state}, {about}, and {run}, the command that runs the member again.
type gate struct {
	isShut bool
	why    string
}

func firstShut(m *presence.Member, gates []gate, again string) failure.Hint {
	i, hasBeen, since := slices.IndexFunc(gates, func(g gate) bool { return g.isShut }), "is", ""
	if m.Since != nil {
		hasBeen, since = "has been", " for "+letter.Span(time.Since(*m.Since))
	}
	if i < 0 {
		return ""
	}
	state := strings.Replace(string(m.State), "error", "in error", 1)
	about := failure.Say("%s", m.StateDetail())
	return failure.Hint(strings.NewReplacer("{name}", string(m.Name), "{has been}", hasBeen, "{for}", since, "{state}", state,
		"{about}", string(about), "{run}", string(failure.Say("%s", again))).Replace(gates[i].why))
}

// questionGates are shut while the member itself waits for an answer.
func questionGates(m *presence.Member) []gate {
	return []gate{
		{m.WaitingOn != nil && reducer.IsForTerminal(m.WaitingOn.Dialog), "{name} {has been} waiting for an answer{for} ({about}), which only a person at its terminal may give: `atm attach {name}`"},
		{m.AtPrompt != "" && m.State == reducer.WordBlocked, "{name} {has been} waiting for an answer{for} ({about}): `atm pending`"},
		{m.State == reducer.WordBlocked && m.Running, "{name} {has been} waiting for an answer{for} ({about}): `atm pending`, then `atm approve {name}`, or `atm attach {name}`"},
		{m.State == reducer.WordBlocked, "{name} {has been} waiting for an answer{for} ({about}): `atm status {name}`"},
		{m.Runner.Gate == control.GateDialog, runnerGates[control.GateDialog]},
	}
}

// mailGate is unreadGate by what is known of the member. again is the command that runs it again.
func mailGate(m *presence.Member, it *maildir.Item, d *history.Delivery, again string) failure.Hint {
	m = m.ToMail()
	now := time.Now()
	failed := string(failure.Say("%s (%s)", letter.Age(now, d.Failed.At), letter.Name(d.FailedWhy, 80)))
	return firstShut(m, slices.Concat([]gate{
		{m.State == reducer.WordPerson, "{name} is a person: it waits until they read it"},
		{m.Inject == "off", "atm types nothing into {name} (inject is off): it must run atm read"},
		{m.IsSilent(), "the runner of {name} does not answer and types nothing in: `atm doctor`"},
		{it.Expired(now), "it has expired, so it is never typed in: {name} gets it with atm read"},
	}, questionGates(m), []gate{
		{m.State == reducer.WordLimited && m.Running, "{name} {has been} at its usage limit{for} ({about}) and gets it when that ends: `atm wait --idle {name}`"},
		{runnerGates[m.Runner.Gate] != "", runnerGates[m.Runner.Gate]},
		{m.State == reducer.WordBusy && m.Running || m.Runner.Gate == control.GateBusy, "{name} {has been} busy{for} and gets it when idle: `atm wait --idle {name}`"},
		{d.IsOnlyAnnounced && m.Running, "{name} was told to run atm read, and has not yet: `atm screen {name}`"},
		{m.State == reducer.WordOff, "{name} {has been} off{for} and gets it when it runs again: `{run}`"},
		{m.State == reducer.WordError && !m.Running, "{name} {has been} in error{for} ({about}) and gets it when it runs again: `{run}`"},
		{d.Failed.Exists() && it.TimesHandedOut >= control.MaxTries && m.Running, "typing it in failed " + failed + ": `atm retry " + it.ID.Short(6) + "` types it in again, or {name} gets it with atm read"},
		{d.Failed.Exists() && it.TimesHandedOut >= control.MaxTries, "typing it in failed " + failed + ": {name} gets it with atm read, or `atm withdraw " + it.ID.Short(6) + "`"},
		{d.Failed.Exists(), "typing it in failed " + failed + "; {name} can still get it with atm read: `atm screen {name}`"},
		{d.Announced.Exists() && waitsInside(m), "it was handed to the program of {name} and counts as read once that shows it to its model: `atm status {name}`"},
		{d.Announced.Exists(), "it was handed to {name} and counts as read when its hooks next run: `atm status {name}`"},
		{m.Running, "{name} {has been} {state}{for} and has not received it yet: `atm screen {name}`"},
		{m.State == reducer.WordBusy && m.HasHooks(), "{name} {has been} busy{for} and gets it at its next tool call or turn: `atm wait --idle {name}`"},
		{m.HasHooks() && waitsInside(m), "the program of {name} takes it as soon as it can: `atm status {name}` says how"},
		{m.HasHooks(), "{name} gets it when its next turn begins: `atm wait --busy {name}`"},
		{true, "no runner brings mail to {name}: it must run atm read"},
	}), again)
}

// waitsInside reports whether there is a way into the member's program while it is idle.
func waitsInside(m *presence.Member) bool {
	return slices.ContainsFunc(m.WaysIn, func(w programs.WayNow) bool { return w.At == agents.AtIdle && w.By != "" })
}

// UnknownProgram says what to do about a member's program that nobody has described.
const UnknownProgram = "atm does not know the program of {name}, so it types nothing in: describe it in a driver file (`atm driver -h`), " +
	"or say that it is a shell (driver = \"plain\", or `atm run {name} --driver plain`)"

// runnerGates says for firstShut what the gates of a runner mean.
var runnerGates = map[control.Gate]string{
	control.GateDialog:   "{name} is waiting for an answer (a dialog): `atm pending`, then `atm approve {name}`, or `atm attach {name}`",
	control.GateDraft:    "the prompt of {name} has a half-written line, which atm does not type over: `atm attach {name}`, and send or clear it",
	control.GateTyping:   "a person is typing into {name}; the mail follows when they pause: `atm wait --busy {name}`",
	control.GateMoved:    "the root of {name} was moved while it ran, so atm types nothing in: `atm stop {name}`, then start it again",
	control.GateStranger: "the root of {name} is not accepted, so atm types nothing in: `atm init` says why, and how to accept it",
	control.GateUnknown:  UnknownProgram,
	control.GateLimit:    "{name} is at its usage limit and gets it when that ends: `atm wait --idle {name}`",
	control.GateUnread: "{name} " + strings.TrimPrefix(string(control.GateUnread), "it ") +
		", so atm types nothing for some minutes until it does: `atm attach {name}`, and press a key",
}

// holdText says why an unread message is withheld from an agent, and what to do; "": it is not.
func holdText(h teamdir.Hold, agent wire.Name) failure.Hint {
	switch {
	case h.Paused != "":
		return failure.Say("%s, so its input waits: `atm session resume %s`", h.Why, wire.ID(h.Paused).Short(6))
	case h.Why != "":
		return failure.Say("%s (%s); %s gets it only with atm read", h.Why, h.Because, agent)
	}
	return ""
}
