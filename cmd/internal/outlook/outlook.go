// Package outlook says when a recipient will see a message, or what holds it up: from evidence only, by one table, with
// words for the line behind a send and for a trace.
//
//	outlook  the table of a recipient on this machine; what is not due, and what a bridge carries
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
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// An Outlook is when a recipient will see a message.
type Outlook struct {
	When When
	Text string       // in a few words: "idle: typed in now"
	Help failure.Hint // what to type or do; "": there is nothing to do
}

// Why says what the message waits for, and what helps.
func (o Outlook) Why() failure.Hint {
	if o.Help == "" {
		return failure.Say("%s", o.Text)
	}
	return failure.Say("%s; %s", o.Text, o.Help)
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
	item     *wire.Item        // the recipient's copy; nil: it has just been sent
	delivery *history.Delivery // what was done since; likewise
	hold     teamdir.Hold      // why it is withheld
	isShared bool              // others may take from the mailbox
	isVain   bool              // it was handed to the program too often in vain
	again    string            // the command that runs the recipient again
}

// A row is a possible outlook. The words may contain {name}, {busy} (the state, and for how long it has been busy), {about}
// (the state's detail), {until} (when its limit ends), {reason} (why nothing is typed in), {given} (how the mail is given),
// {read} (when it last read), {seen} (when it was last seen), {held} (why it is withheld), {paused} (the session), {run} (the
// command that runs it again), {id} (of the message) and {failed} (when and why typing it in failed).
type row struct {
	holds bool
	when  When
	text  string
	help  string
}

// gates are what the gates of a runner mean for mail. presence.Member.GateReason has their words.
var gates = map[control.Gate]struct {
	when When
	help string
}{
	control.GateDialog: {Answer, "`atm pending`, then `atm approve {name}`, or `atm attach {name}`"},
	control.GateDraft:  {Prompt, "`atm attach {name}`, and send or clear it"},
	control.GateTyping: {Prompt, "`atm wait --busy {name}`"},
	control.GateLimit:  {Limit, "`atm wait --idle {name}`"},
	control.GateUnread: {Prompt, "`atm attach {name}`, and press a key"},

	control.GateMoved:    {Never, "`atm stop {name}`, then start it again"},
	control.GateStranger: {Never, "`atm init` says why, and how to accept it"},
	control.GateUnknown: {Never, "say with --driver, or driver in team.toml, which program it is (`atm doctor --driver all`; plain: like a shell), " +
		"or describe it (`atm doctor -h`)"},
}

// outlook is the first row that holds.
func (x mail) outlook() Outlook {
	m, p, d := x.to, x.push, x.delivery
	if d == nil {
		d = &history.Delivery{}
	}
	if isPushed(p) && p.IsIn {
		m = p.To.ToMail() // as it was when the mail was given to its program
	}
	isIdle, isBusy, isLimited := m.State == reducer.WordIdle, m.State == reducer.WordBusy, m.State == reducer.WordLimited
	gate, isGate := gates[m.Runner.Gate]
	if !isGate {
		gate.when, gate.help = Prompt, look
	}
	failed := Idle
	if d.Failed.Exists() && x.item.TimesHandedOut >= control.MaxTries {
		failed = Never
	}
	return x.first(m, []row{
		{m.State == "", Unknown, "unknown", ""}, // it could not be read, or was retired meanwhile
		{isPushed(p) && p.IsUnsure, Now, "{busy}: handed over, not confirmed", ""},

		// No state of the recipient changes these.
		{x.hold.Paused != "", Read, "kept: {held}", "`atm session resume {paused}`"},
		{x.hold.Why != "", Read, "kept: {held}", read},
		{x.isShared, Read, "whoever takes it first gets it", "`atm take {name}`"},
		{m.State == reducer.WordPerson, Read, "person", "it waits until they read it"},
		{m.IsSilent(), Never, "{busy}, but its runner does not answer", "`atm doctor`"},
		{m.Inject == "off", Read, "{busy}, but inject is off: not typed in", read},
		{x.message.Expired(time.Now()), Read, "it has expired: not typed in", read},

		asks(m),
		{p.By == agents.ByPane, Idle, "{busy}: typed in once its box is free", "`atm status {name}`"},
		{isPushed(p) && (isIdle || p.IsIn && !isBusy), Now, "{busy}: {given} now", ""},
		{isPushed(p), Turn, "{busy}: {given} behind what it does", ""},

		{gate.when == Never, Never, "{busy}, but {reason}: not typed in", gate.help},
		{isLimited && m.Running && m.Until == nil, Limit, "at its usage limit, which names no time: {given} after its next turn", "once it has ended: `atm type {name} \"Go on.\" --enter`"},
		{isLimited, Limit, "at its usage limit{until}: {given} after that", wait},
		{isBusy && m.Running && x.message.Urgent() && x.item == nil, Now, "{busy}: interrupts it", wait},
		{isGate || m.Running && isIdle && m.GateReason() != "", gate.when, "{busy}, but {reason}: {given} later", gate.help},
		{m.State == reducer.WordOff || m.State == reducer.WordError && !m.Running, Run, "{busy}; {read}", "`{run}`"},

		// What was tried, as far as the log tells.
		{d.IsOnlyAnnounced && m.Running, Read, "told to run atm read, and has not yet", look},
		{d.Failed.Exists() && m.Running, failed, "typing it in failed {failed}", "`atm doctor --fix {id}` types it in again; or " + read},
		{x.isVain && d.Announced.Exists(), Read, "handed over twice, and nothing shows that it arrived", read},
		{d.Announced.Exists(), Turn, "handed over: read once its program shows it to its model", "`atm status {name}`"},

		{m.OnlyShowsMail(), Read, "{busy}: {given}, and nothing acts on it", "a person there may, or a loop around `atm take --wait`"},
		{m.Running && isIdle, Now, "{busy}: {given} now", look},
		{m.Running, Idle, "{busy}: {given} when idle", wait},
		{m.HasHooks(), Turn, "at its next turn; {seen}", "`atm status {name}`"},
		{true, Read, "{read}", "no runner brings mail to {name}: it must run atm read"},
	})
}

// Several rows help so.
const (
	read = "{name} gets it with atm read"
	wait = "`atm wait --idle {name}`"
	look = "`atm screen {name}`"
)

// asks is the row of a recipient that waits for an answer itself.
func asks(m *presence.Member) row {
	help := "`atm pending`, then `atm approve {name}`"
	if m.WaitingOn != nil && reducer.IsForTerminal(m.WaitingOn.Dialog) {
		help = "only a person at its terminal may answer: `atm attach {name}`"
	} else if len(m.Questions) > 0 && m.Questions[0].IsTyped() {
		help = "`atm type {name} \"…\" --enter`, or `atm attach {name}`"
	}
	return row{m.State == reducer.WordBlocked, Answer, "blocked: {about}", help}
}

// turn says what the recipient's turn waits for that the message has begun.
func (x mail) turn() failure.Hint {
	m := x.to
	return x.first(m, []row{
		asks(m),
		{m.Runner.Gate == control.GateDialog, Answer, "{reason}", gates[control.GateDialog].help},
		{m.State == reducer.WordOff, Run, "off", "`{run}`"},
		{m.State == reducer.WordBusy, Idle, "{busy}", wait},
	}).Why()
}

// isPushed reports whether there is a way into the program that the sender's process has used, or that takes the mail itself. What
// a hook hands over comes with the next turn.
func isPushed(p push.Outcome) bool { return p.By != "" && p.By != agents.ByHook }

// first is the first row that holds, with what its words stand for.
func (x mail) first(m *presence.Member, rows []row) Outlook {
	i := slices.IndexFunc(rows, func(r row) bool { return r.holds })
	if i < 0 {
		return Outlook{}
	}
	now := time.Now()
	busy, read, given, seen, until, held, failed := string(m.State), "not read yet", "typed in", "never seen", "", x.hold.Why, ""
	if m.Since != nil && m.State == reducer.WordBusy {
		busy += " " + letter.Span(now.Sub(*m.Since))
	}
	if x.item != nil {
		read = "no mail read yet"
	}
	if m.ReadAt != nil {
		read = "last read " + letter.Ago(now, *m.ReadAt)
	}
	if m.PresenceAt != nil {
		seen = "last seen " + letter.Ago(now, *m.PresenceAt)
	}
	if m.Until != nil {
		until = " until " + letter.Stamp(*m.Until)
	}
	switch {
	case isPushed(x.push) && !x.push.IsIn:
		given = "taken"
	case isPushed(x.push), m.Inject == "body" && m.Runner.Ways.IsPush():
		given = "handed over"
	case m.Inject == "pointer":
		given = "told to run atm read"
	case !m.Running:
		given = "seen"
	}
	if x.hold.Because != "" {
		held += " (" + x.hold.Because + ")"
	}
	if d := x.delivery; d != nil && d.Failed.Exists() {
		failed = letter.Age(now, d.Failed.At) + " (" + letter.Name(d.FailedWhy, 80) + ")"
	}
	words := []string{
		"{name}", string(m.Name), "{busy}", busy, "{about}", m.StateDetail(), "{until}", until, "{reason}", m.GateReason(),
		"{given}", given, "{read}", read, "{seen}", seen, "{held}", held, "{paused}", wire.ID(x.hold.Paused).Short(6),
		"{run}", x.again, "{id}", x.message.ID.Short(6), "{failed}", failed,
	}
	text := strings.NewReplacer(words...).Replace(rows[i].text)
	for i := 1; i < len(words); i += 2 {
		words[i] = string(failure.Say("%s", words[i]))
	}
	return Outlook{When: rows[i].when, Text: text, Help: failure.Hint(strings.NewReplacer(words...).Replace(rows[i].help))}
}

// later is the outlook of a message that is not due.
func later(t *teamdir.Team, m *wire.Message) Outlook {
	help := failure.Say("`atm withdraw %s` takes it back", m.ID.Short(6))
	if why := post.WhyNever(t, m); why != "" {
		return Outlook{Never, "it waits for " + why, help}
	}
	return Outlook{Later, "later: " + post.WhenDue(t, m), help}
}

// bridged is the outlook of a message in the outbox for another machine.
func bridged(t *teamdir.Team, host wire.Name) Outlook {
	out := Outlook{Bridge, "bridge is off: goes out when it runs", "`atm bridge`"}
	if presence.IsBridged(t, host) {
		out = Outlook{When: Bridge, Text: "the bridge sends it"}
	}
	if why := presence.HeldReason(t, host); why != "" {
		out.Text += "; it last said: " + why
	}
	return out
}
