package inbox

import (
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// What an agent is given, and what must hold before:
//
//	a text                   Gate before it, Terminal.returnGate before the return key
//	beside its prompt        Gate, in which its screen and a person's keys do not count
//	what clears a draft      the draft shows our text, or a terminal's reply, and nothing else; no dialog
//	an interrupt             it is at work, and asks nothing that the key would answer
//	an answer                what was asked is still what the agent asks, and nobody types
//	what a request types     no text is being typed; whoever types may answer the dialog, if there is one
//	a person's keys          always, but not between our text and its return key
//	a terminal's replies     always

// Gate says why the agent gets no text at its prompt now. If the reason passes with time alone, the loop looks again then.
func (in *Inbox) Gate(now time.Time) control.Gate { return in.gateOf(in.Agent, now) }

// mailGate is Gate for mail, which may not need the prompt.
func (in *Inbox) mailGate(now time.Time) control.Gate {
	if in.hasCarrier() && in.carrying.by != "" {
		return in.gateOf(nil, now)
	}
	return in.Gate(now)
}

// gateOf says why a text cannot be given by a way now; nil: by one beside the prompt.
func (in *Inbox) gateOf(w run.Way, now time.Time) control.Gate {
	switch {
	case in.Agent == nil:
		return control.GateOff
	case in.IsStopping:
		return control.GateStopping
	case in.root.isMoved:
		return control.GateMoved
	case in.root.refusal != "":
		return control.GateStranger
	case in.Questions.Asked() != nil:
		return control.GateDialog
	}
	why := control.GateOpen
	if w != nil {
		why = w.Gate(now)
	}
	switch {
	case why != control.GateOpen && why != control.GateSettling:
		return why
	case in.State.Session().Word() == reducer.WordLimited: // the protocol says so
		return control.GateLimit
	case in.State.Session().Word() != reducer.WordIdle: // hooks say so
		return control.GateBusy
	}
	return why
}

// typable returns those of queued messages that may still be typed, and why the others may not.
func (in *Inbox) typable(items []*wire.Item) (ids []wire.ID, why string) {
	for _, it := range items {
		if in.queue.MayHandOver(it.ID, in.Now()) {
			ids = append(ids, it.ID)
		} else {
			why = "it has expired, or another message replaces it"
		}
	}
	return ids, why
}

// Withheld says why a text may not be sent off any more; "": it may.
func (in *Inbox) Withheld(t *run.Text) string {
	_, why := in.typable(t.Items)
	return why
}
