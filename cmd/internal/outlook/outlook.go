// Package outlook says when a recipient will see a message, or what holds it up: from evidence only, by one table, with
// words for the line behind a send and for a trace.
//
//	outlook  the table
//	sent     a message that has just been sent
//	trace    how far one got, and what its next stage waits for
package outlook

import (
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// An Outlook is when a recipient will see a message.
type Outlook struct {
	When When
	Text string       // in a few words: "idle: typed in now"
	Why  failure.Hint // what it waits for, in a sentence, and a command that helps; "": nothing is known of that
}

// When says in a word when a recipient will see a message.
type When string

// These are all of them.
const (
	Now     When = "now"      // it is given to the program now, or is in it
	Idle    When = "idle"     // when the recipient is idle
	Turn    When = "turn"     // at its next turn, or behind the tool that runs
	Answer  When = "answered" // when what it asks is answered
	Prompt  When = "prompt"   // when its prompt is free: a person types, or has left a line there
	Limit   When = "limit"    // when its usage limit ends
	Run     When = "run"      // when it runs again
	Read    When = "read"     // when it reads its mail itself
	Bridge  When = "bridge"   // when the bridge has sent it
	Later   When = "later"    // when it is due
	Never   When = "never"    // somebody has to do something first
	Unknown When = "unknown"
)

// isInTurn reports whether the recipient gets its mail in order once what holds it up is over.
func (w When) isInTurn() bool {
	return slices.Contains([]When{Idle, Turn, Answer, Prompt, Limit}, w)
}

// mail is a message at one recipient.
type mail struct {
	message  *wire.Message
	to       *presence.Member  // as mail finds it: see Member.ToMail
	push     push.Outcome      // what the sender's process did
	item     *maildir.Item     // the recipient's copy; nil: it has just been sent
	delivery *history.Delivery // what was done since; likewise
	hold     teamdir.Hold      // why it is withheld
	again    string            // the command that runs the recipient again
}

// A row is a possible outlook. The words may contain {name}, {has been} and {for} ("has been" and " for 3m", or "is" and ""
// without a time), {state} ("in error"), {busy} (the state, and for how long it has been busy), {about} (the state's
// detail), {reason} (why nothing is typed in), {typed} (how the mail is given), {read} (when it last read), {seen} (when it
// was last seen), {held} (why it is withheld), {because} (why that), {paused} (the session), {run} (the command that runs it again), {id} (of the message) and {failed} (when and why typing it in
// failed).
type row struct {
	holds bool
	when  When
	text  string
	why   string
}

// gates are what the gates of a runner mean for mail.
var gates = map[control.Gate]row{
	control.GateDialog: {when: Answer, why: "{name} is waiting for an answer (a dialog): `atm pending`, then `atm approve {name}`, or `atm attach {name}`"},
	control.GateDraft:  {when: Prompt, why: "the prompt of {name} has a half-written line, which atm does not type over: `atm attach {name}`, and send or clear it"},
	control.GateTyping: {when: Prompt, why: "a person is typing into {name}; the mail follows when they pause: `atm wait --busy {name}`"},
	control.GateLimit:  {when: Limit, why: "{name} is at its usage limit and gets it when that ends: `atm wait --idle {name}`"},
	control.GateUnread: {when: Prompt, why: "{name} " + strings.TrimPrefix(string(control.GateUnread), "it ") +
		", so atm types nothing until it does: `atm attach {name}`, and press a key"},

	control.GateMoved:    {when: Never, why: "the root of {name} was moved while it ran, so atm types nothing in: `atm stop {name}`, then start it again"},
	control.GateStranger: {when: Never, why: "the root of {name} is not accepted, so atm types nothing in: `atm init` says why, and how to accept it"},
	control.GateUnknown:  {when: Never, why: unknownProgram},
}

const unknownProgram = "atm does not know the program of {name}, so it types nothing in: say with --driver, or driver in team.toml, " +
	"which one it is (`atm doctor --driver all`; plain: like a shell), or describe it (`atm doctor -h`)"

// UnknownProgram says what to do about a member's program that nobody has described.
func UnknownProgram(name wire.Name) failure.Hint {
	return failure.Hint(strings.ReplaceAll(unknownProgram, "{name}", string(name)))
}

// outlook is the first row that holds.
func (x mail) outlook() Outlook {
	return x.first(slices.Concat(x.pushed(), x.held(), x.asked(), x.gated(), x.failed(), x.free()))
}

// turn says what the recipient's turn waits for that the message has begun.
func (x mail) turn() failure.Hint {
	m := x.to
	return x.first(slices.Concat(x.asked(), []row{
		{m.Runner.Gate == control.GateDialog, Answer, "", gates[control.GateDialog].why},
		{m.State == reducer.WordOff, Run, "", "{name} {has been} off{for}: `{run}`"},
		{m.State == reducer.WordBusy, Idle, "", "{name} {has been} busy{for}: `atm wait --idle {name}`"},
	})).Why
}

func (x mail) first(rows []row) Outlook {
	for _, r := range rows {
		if r.holds {
			return x.filled(r)
		}
	}
	return Outlook{}
}

// pushed are for what the sender's process has given to the program that the recipient's person started.
func (x mail) pushed() []row {
	p, m := x.push, x.pushedTo()
	isPushed, isIn := isPushed(p), isPushed(p) && p.IsIn
	return []row{
		{isPushed && p.IsUnsure, Now, "{busy}: handed over, not confirmed", ""},
		{isIn && m.State == reducer.WordBlocked, Answer, "{busy}: handed over, and comes once that is answered", ""},
		{isIn && m.State == reducer.WordBusy, Turn, "{busy}: handed over, and comes behind what it does", ""},
		{isIn, Now, "{busy}: handed over now", ""},
		{isPushed && m.State == reducer.WordIdle, Now, "{busy}: it takes it now", ""},
		{isPushed && m.State == reducer.WordBlocked, Answer, "{busy}: it takes it once that is answered", ""},
		{isPushed, Turn, "{busy}: it takes it at once, or behind what it does", ""},
		{m.State == "", Unknown, "unknown", ""}, // it could not be read, or was retired meanwhile
	}
}

// isPushed reports whether there is a way into the program that the sender's process has used, or that takes the mail itself. What
// a hook hands over comes with the next turn.
func isPushed(p push.Outcome) bool { return p.By != "" && p.By != agents.ByHook }

// pushedTo is the recipient as it was when the mail was given to its program.
func (x mail) pushedTo() *presence.Member {
	if x.push.IsIn {
		return x.push.To.ToMail()
	}
	return x.to
}

// held are for what no state of the recipient changes.
func (x mail) held() []row {
	m, runner := x.to, "the runner of {name} does not answer and types nothing in: `atm doctor`"
	return []row{
		{x.hold.Paused != "", Read, "{held}: its input waits", "{held}, so its input waits: `atm session resume {paused}`"},
		{x.hold.Because != "", Read, "{held}", "{held} ({because}); {name} gets it only with atm read"},
		{x.hold.Why != "", Read, "kept: {held}", "it is kept: {held}; {name} gets it with atm read"},
		{m.State == reducer.WordPerson, Read, "person", "{name} is a person: it waits until they read it"},
		{m.IsSilent() && m.State == reducer.WordUnknown, Never, "its runner does not answer", runner},
		{m.IsSilent(), Never, "{busy}, but its runner does not answer", runner},
		{m.Inject == "off", Read, "{busy}; not typed in", "atm types nothing into {name} (inject is off): it must run atm read"},
		{x.message.Expired(time.Now()), Read, "it has expired: not typed in", "it has expired, so it is never typed in: {name} gets it with atm read"},
	}
}

// asked are for a recipient that waits for an answer itself.
func (x mail) asked() []row {
	m := x.to
	isBlocked, text := m.State == reducer.WordBlocked, "blocked: {about}"
	const asks = "{name} {has been} waiting for an answer{for} ({about})"
	return []row{
		{m.WaitingOn != nil && reducer.IsForTerminal(m.WaitingOn.Dialog), Answer, text, asks + ", which only a person at its terminal may give: `atm attach {name}`"},
		{isBlocked && len(m.Questions) > 0 && m.Questions[0].IsTyped(), Answer, text, asks + ": `atm type {name} \"…\" --enter`, or `atm attach {name}`"},
		{m.AtPrompt != "" && isBlocked, Answer, text, asks + ": `atm pending`"},
		{isBlocked && m.Running, Answer, text, asks + ": `atm pending`, then `atm approve {name}`, or `atm attach {name}`"},
		{isBlocked, Answer, text, asks + ": `atm status {name}`"},
	}
}

// gated are for a runner that types nothing in now, and for a program that is not idle.
func (x mail) gated() []row {
	m := x.to
	gate, isGate := gates[m.Runner.Gate]
	isLimited, isBusy := m.State == reducer.WordLimited, m.State == reducer.WordBusy && m.Running
	const limited = "{name} {has been} at its usage limit{for} ({about}) and gets it when that ends: `atm wait --idle {name}`"
	const busy = "{name} {has been} busy{for} and gets it when idle: `atm wait --idle {name}`"
	until := ""
	if m.Until != nil {
		until = " until " + letter.Stamp(*m.Until)
	}
	return []row{
		{isGate && gate.when == Never, Never, "{busy}, but {reason}: not typed in", gate.why},
		{isLimited && !m.Running, Limit, "at its usage limit" + until + ": it gets it with the next message or turn after that", "{name} {has been} at its usage limit{for} ({about}): it gets it with the next message or turn after that"},
		{isLimited && m.Until == nil, Limit, "at its usage limit, which names no time: {typed} after its next turn", limited},
		{isLimited, Limit, "at its usage limit" + until + ": {typed} when that ends", limited},
		{isBusy && x.message.Urgent() && x.item == nil, Now, "{busy}: interrupts it", busy},
		{isGate, gate.when, "{busy}, but {reason}: {typed} later", gate.why},
		{m.Running && m.State == reducer.WordIdle && m.GateReason() != "", Prompt, "idle, but {reason}: {typed} later", "{name} {has been} {state}{for} and has not received it yet: `atm screen {name}`"},
		{isBusy && m.Inject == "body" && m.Runner.Ways.IsPush(), Turn, "{busy}: handed over, and comes behind what it does", busy},
		{isBusy, Idle, "{busy}: {typed} when idle", busy},
	}
}

// failed are for what was tried, as far as the log tells, and for a recipient that has ended.
func (x mail) failed() []row {
	m, d := x.to, x.delivery
	rows := []row{
		{m.State == reducer.WordOff, Run, "off; {read}", "{name} {has been} off{for} and gets it when it runs again: `{run}`"},
		{m.State == reducer.WordError && !m.Running, Run, "error; {read}", "{name} {has been} in error{for} ({about}) and gets it when it runs again: `{run}`"},
	}
	if d == nil {
		return rows
	}
	hasFailed := d.Failed.Exists()
	isGivenUp := hasFailed && x.item.TimesHandedOut >= control.MaxTries
	return slices.Concat([]row{{d.IsOnlyAnnounced && m.Running, Read, "", "{name} was told to run atm read, and has not yet: `atm screen {name}`"}}, rows, []row{
		{isGivenUp && m.Running, Never, "", "typing it in failed {failed}: `atm doctor --fix {id}` types it in again, or {name} gets it with atm read"},
		{isGivenUp, Read, "", "typing it in failed {failed}: {name} gets it with atm read, or `atm withdraw {id}`"},
		{hasFailed, Idle, "", "typing it in failed {failed}; {name} can still get it with atm read: `atm screen {name}`"},
		{d.Announced.Exists() && x.isOpen(), Now, "", "it was handed to the program of {name} and counts as read once that shows it to its model: `atm status {name}`"},
		{d.Announced.Exists(), Turn, "", "it was handed to {name} and counts as read when its hooks next run: `atm status {name}`"},
	})
}

// free are for a recipient that nothing keeps from its mail.
func (x mail) free() []row {
	m := x.to
	const notYet = "{name} {has been} {state}{for} and has not received it yet: `atm screen {name}`"
	const byItself = "no runner brings mail to {name}: it must run atm read"
	isUnknown, atTurn := m.State == reducer.WordUnknown, "at its next turn; last seen {seen}"
	switch {
	case isUnknown:
		atTurn = "{read}"
	case m.PresenceAt == nil:
		atTurn = "{busy}; {read}"
	}
	return []row{
		{m.Running && m.State == reducer.WordIdle, Now, "idle: {typed} now", notYet},
		{m.Running && isUnknown, Unknown, "running", notYet},
		{m.Running, Idle, "{busy}: {typed} when idle", notYet},
		{m.HasHooks() && m.State == reducer.WordBusy, Turn, atTurn, "{name} {has been} busy{for} and gets it at its next tool call or turn: `atm wait --idle {name}`"},
		{m.HasHooks() && x.isOpen(), Turn, atTurn, "the program of {name} takes it as soon as it can: `atm status {name}` says how"},
		{m.HasHooks(), Turn, atTurn, "{name} gets it when its next turn begins: `atm wait --busy {name}`"},
		{isUnknown, Read, "{read}", byItself},
		{true, Read, "{busy}; {read}", byItself},
	}
}

// isOpen reports whether there is a way into the recipient's program while it is idle.
func (x mail) isOpen() bool {
	return slices.ContainsFunc(x.to.WaysIn, func(w programs.WayNow) bool { return w.At == agents.AtIdle && w.By != "" })
}

// filled is a row with what its words stand for.
func (x mail) filled(r row) Outlook {
	m, now := x.to, time.Now()
	if isPushed(x.push) {
		m = x.pushedTo()
	}
	hasBeen, since, busy, read, typed, seen, failed := "is", "", string(m.State), "not read yet", "typed in", "", ""
	if m.Since != nil {
		hasBeen, since = "has been", " for "+letter.Span(now.Sub(*m.Since))
		if m.State == reducer.WordBusy {
			busy += " " + letter.Span(now.Sub(*m.Since))
		}
	}
	if m.ReadAt != nil {
		read = "last read " + letter.Ago(now, *m.ReadAt)
	}
	if m.PresenceAt != nil {
		seen = letter.Ago(now, *m.PresenceAt)
	}
	switch {
	case m.Inject == "body" && m.Runner.Ways.IsPush():
		typed = "handed over"
	case m.Inject == "pointer":
		typed = "told to run atm read"
	}
	if d := x.delivery; d != nil && d.Failed.Exists() {
		failed = letter.Age(now, d.Failed.At) + " (" + letter.Name(d.FailedWhy, 80) + ")"
	}
	words := []string{
		"{name}", string(m.Name), "{has been}", hasBeen, "{for}", since, "{busy}", busy,
		"{state}", strings.Replace(string(m.State), "error", "in error", 1),
		"{about}", m.StateDetail(), "{reason}", m.GateReason(), "{typed}", typed, "{read}", read, "{seen}", seen,
		"{held}", x.hold.Why, "{because}", x.hold.Because, "{paused}", wire.ID(x.hold.Paused).Short(6),
		"{run}", x.again, "{id}", x.message.ID.Short(6), "{failed}", failed,
	}
	text := strings.NewReplacer(words...).Replace(r.text)
	for i := 1; i < len(words); i += 2 {
		words[i] = string(failure.Say("%s", words[i]))
	}
	return Outlook{When: r.when, Text: text, Why: failure.Hint(strings.NewReplacer(words...).Replace(r.why))}
}
