package ptyrun

import (
	"cmp"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// What an agent is given, and what must hold before:
//
//	give                    gate before the text, returnGate before the return key
//	beside                  gate before the text, in which a draft and a person's keys do not count
//	takeBack, stepDraft     the draft shows our text, or a terminal's reply, and nothing else; no dialog
//	interruptTurn           mayInterrupt
//	press                   what was asked is still what the agent asks, and nobody types
//	Type                    no text is being typed; whoever types may answer the dialog, if there is one
//	passKeys                a person's keys: always, but not between our text and its return key
//	draw                    the terminal's replies to the program: always

// gate says why the agent gets no text at its prompt now. If the reason passes with time alone, step is called again then.
func (r *runner) gate(now time.Time) control.Gate { return r.gateOf(r.prog, now) }

// mailGate is gate for the message that is next, which may not need the prompt.
func (r *runner) mailGate(now time.Time) control.Gate {
	return r.gateOf(r.wayOf(r.mail.queue, now), now)
}

// gateOf says why a text cannot be given by a way now.
func (r *runner) gateOf(w way, now time.Time) control.Gate {
	switch {
	case r.prog == nil:
		return control.GateOff
	case r.stopping != nil:
		return control.GateStopping
	case r.root.isMoved:
		return control.GateMoved
	case r.root.refusal != "":
		return control.GateStranger
	case r.question != nil:
		return control.GateDialog
	}
	why := w.gate(now)
	switch {
	case why != control.GateOpen && why != control.GateSettling:
		return why
	case r.state.Session().Word() == reducer.WordLimited: // the protocol says so
		return control.GateLimit
	case r.state.Session().Word() != reducer.WordIdle: // hooks say so
		return control.GateBusy
	}
	return why
}

// gate says why nothing may be typed now.
func (p *terminal) gate(now time.Time) control.Gate {
	why := p.screenGate(now, false)
	if (why == control.GateOpen || why == control.GateSettling) && p.r.mustWait(p.r.lastKey.Add(p.r.timing.personQuiet), now) {
		return control.GateTyping
	}
	return why
}

// screenGate says why the screen takes no text now. One that is given beside the prompt does not meet the draft.
func (p *terminal) screenGate(now time.Time, isBeside bool) control.Gate {
	r, rd, since := p.r, &p.reading, p.promptSince
	isPrompt := rd.Prompt
	if isBeside && rd.Activity == reducer.Idle && rd.NotPromptReason == control.GateDraft {
		isPrompt, since = true, p.readingSince
	}
	switch {
	case p.reading.Dialog != nil:
		return control.GateDialog
	case !p.frameSince.IsZero():
		return control.GateDrawing
	case p.reading.Activity == reducer.Limited:
		return control.GateLimit
	case !isPrompt:
		return cmp.Or(p.reading.NotPromptReason, control.GateNoPrompt)
	case p.isTextUnread():
		return control.GateUnread // the program would read a new text behind the old one
	}
	hold := r.timing.idle
	switch {
	case !p.isReady:
		hold = r.timing.firstIdle
	case p.reading.Source == reducer.FromDeclared:
		hold = r.timing.settle
	}
	if r.mustWait(since.Add(hold), now) {
		return control.GateSettling
	}
	return control.GateOpen
}

// returnGate says why a text that the agent was given may not be sent off; "": it may.
func (r *runner) returnGate() string {
	p := r.prog
	switch {
	case p == nil:
		return "its program has ended"
	case r.stopping != nil:
		return string(control.GateStopping)
	case r.question != nil || p.state().isAsking:
		return "a dialog came up"
	case r.state.Session().Word() == reducer.WordBlocked:
		return "it is waiting for an answer"
	}
	return ""
}

// typable returns those of queued messages that may still be typed, and why the others may not.
func (r *runner) typable(items []*maildir.Item) (ids []wire.ID, why string) {
	for _, it := range items {
		withheld := r.whyWithheld(it)
		switch {
		case withheld != "":
			why = withheld
		case !r.queue.MayHandOver(it.ID, r.now()):
			why = "it has expired, or another message replaces it"
		default:
			ids = append(ids, it.ID)
		}
	}
	return ids, why
}
