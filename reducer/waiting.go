package reducer

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// parallelCalls is how soon after a request the start of another call is taken for one that was begun
// together with the call that is asked about.
const parallelCalls = 2 * time.Second

// The kinds of Waiting, and a dialog that asks whether a directory is to be trusted.
const (
	Permission  = "permission"
	Question    = "prompt"
	ClientTool  = "tool" // ACP: its client is to run a tool for it
	trustDialog = "trust"
)

// Waiting is what an agent waits for: an answer to a permission request or to a question. Since tells
// one dialog from the next: it stays while more becomes known of the same one.
type Waiting struct {
	ID      string          `json:"id,omitempty"`
	Call    string          `json:"tool_call_id,omitempty"`
	Kind    string          `json:"kind"` // permission, prompt
	Prompt  string          `json:"prompt,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Input   string          `json:"input,omitempty"`  // what the tool is about to do, where the prompt is another thing; shortened
	Dialog  string          `json:"dialog,omitempty"` // what kind of dialog a screen shows: permission, trust, question
	Options json.RawMessage `json:"options,omitempty"`
	Since   time.Time       `json:"since"`
	ByWire  bool            `json:"by_wire,omitempty"` // it was asked on a wire, and is answered there
	Cut     bool            `json:"cut,omitempty"`     // Prompt or Tool is not all there is, or they were said apart: no rule may allow by them
}

// Requests are what the agent asks in all sessions of its program, first in the one that is shown.
func (s *State) Requests() []Waiting {
	shown := s.Turn()
	all := slices.Clone(shown.Requests)
	for i := range s.Turns {
		if t := &s.Turns[i]; t != shown {
			all = append(all, t.Requests...)
		}
	}
	return all
}

// Waiting is what the session asks and is shown; nil when it asks nothing.
func (t *Turn) Waiting() *Waiting {
	if len(t.Requests) == 0 {
		return nil
	}
	w := t.Requests[0]
	return &w
}

// waitingOf is what an event says that is asked.
func waitingOf(e *event, kind string) Waiting {
	w := Waiting{
		ID: e.idOf("id"), Call: e.idOf("tool_call_id"), Kind: kind, Prompt: e.Text("prompt", "message"),
		Input: e.Text("input"), Dialog: e.Text("dialog"),
	}
	if kind != Question {
		w.Tool = e.Text("tool", "tool_name", "title")
	}
	if w.ByWire = e.isOnWire && kind != Question; w.ByWire {
		w.ID = cmp.Or(w.ID, e.idOf("request_id"), w.Call)
		w.Input = cmp.Or(w.Input, string(e.Raw("arguments")))
	}
	if w.Dialog == trustDialog {
		w.Kind = Question // it asks for no tool
	}
	if raw := e.Raw("options"); raw != nil {
		w.Options, _ = json.Marshal(raw) // as JSON gives it back
	}
	return w
}

// ask says that the program asks something: in the turn that the event names, else in whatever it does,
// which may be no turn.
func (t *Turn) ask(e *event, said Waiting) bool {
	switch {
	case t.hasEnded(e.turn):
		isKnown := slices.Contains(t.StartedCalls, said.Call) || slices.Contains(t.EndedCalls, said.Call)
		if isKnown || said.Kind != Permission || !said.isNamed() || !t.reopenTurn(e) {
			return false // late
		}
	case t.isOver() && e.turn == "" && e.session != "":
		return false // late
	case e.turn != "":
		t.enterTurn(e)
	}
	return t.waitFor(e, said)
}

// waitFor notes what is asked. The same question again, perhaps in more words, is still asked since it
// was first. A program may ask for several calls at once: the first is shown and others stand behind it.
// A screen shows one dialog: it replaces what was asked.
func (t *Turn) waitFor(e *event, said Waiting) (isNews bool) {
	said.Since = e.at
	said.cut()
	first := t.Waiting()
	asksBeside := first != nil && first.Kind != Question && said.Kind != Question && e.source != "pty"
	switch i := slices.IndexFunc(t.Requests, func(w Waiting) bool { return w.isSame(&said) }); {
	case i > 0 || i == 0 && first.Kind != said.Kind:
		return false
	case i == 0:
		t.Requests[0] = first.merge(said)
		return !reflect.DeepEqual(t.Requests[0], *first)
	case asksBeside && len(t.Requests) < maxRequests:
		t.Requests = append(t.Requests, said)
	case !asksBeside:
		t.setActivity(said.activity())
		t.Requests = []Waiting{said}
	}
	return true
}

// activity is what a program does that asks this, and what about it.
func (w *Waiting) activity() (Activity, string) {
	switch {
	case w.Dialog == trustDialog:
		return Confirming, trustDialog
	case w.Kind == Question:
		return AwaitingInput, "question"
	}
	return Confirming, w.Kind
}

// cut makes a question one that a State keeps.
func (w *Waiting) cut() {
	prompt, tool := wire.Clip(w.Prompt, maxPrompt), wire.Clip(w.Tool, maxID)
	w.Cut = w.Cut || prompt != w.Prompt || tool != w.Tool
	w.Prompt, w.Tool = prompt, tool
	w.Input, w.Dialog = wire.Clip(w.Input, maxText), wire.Clip(w.Dialog, maxID) // for people; no rule goes by them
	if len(w.Options) > maxOptions {
		w.Options = nil
	}
}

// isSame reports whether n is the same question in other words. Hooks, their notifications and the
// screen tell of one dialog, each with a part of it.
func (w *Waiting) isSame(n *Waiting) bool {
	areDifferent := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case areDifferent(w.ID, n.ID), areDifferent(w.Call, n.Call), areDifferent(w.Tool, n.Tool):
		return false
	case w.Kind != n.Kind:
		return !n.isNamed()
	case w.Call != "" && w.Call == n.Call:
		return true
	case w.isNamed() != n.isNamed(), w.isNamed() && w.ID+n.ID != "":
		return true
	}
	return !areDifferent(w.Prompt, n.Prompt) // else two calls
}

// isNamed reports whether it says more than that something is asked.
func (w *Waiting) isNamed() bool { return w.ID != "" || w.Call != "" || w.Tool != "" }

// promptRank is how surely the prompt is what is asked: one that comes with the dialog's id was seen,
// one with the call's tool or id is about that call.
func (w *Waiting) promptRank() int {
	switch {
	case w.Prompt == "":
		return 0
	case w.ID != "":
		return 3
	case w.isNamed():
		return 2
	}
	return 1
}

// merge adds what was said of a question now to what is kept. Of two prompts the surer one counts, of
// two that were seen the newer.
func (w *Waiting) merge(said Waiting) Waiting {
	out := said
	out.Since = w.Since
	out.ID, out.Call, out.Tool = cmp.Or(said.ID, w.ID), cmp.Or(said.Call, w.Call), cmp.Or(said.Tool, w.Tool)
	out.Input, out.Dialog = cmp.Or(said.Input, w.Input), cmp.Or(said.Dialog, w.Dialog)
	out.ByWire = said.ByWire || w.ByWire
	if out.Options == nil {
		out.Options = w.Options
	}
	if rank := said.promptRank(); rank < 3 && rank <= w.promptRank() {
		out.Prompt = w.Prompt
	}
	hasTheirPrompt := out.Prompt == said.Prompt
	if !hasTheirPrompt || out.Tool != said.Tool { // nobody said the two together, unless it was said so before
		out.Cut = said.Cut && hasTheirPrompt || w.Cut || out.Prompt != w.Prompt || out.Tool != w.Tool
	}
	return out
}

// answerCall takes a call's start or end for the answer to a permission request for that call. The end of
// another call is no answer. Nor is the start of another one soon after the request; a later one is, since
// the asked call was refused.
func (t *Turn) answerCall(e *event, tool, call string, isStart bool) (stillAsks, isNews bool) {
	w := t.Waiting()
	if w == nil || w.Kind != Permission {
		return false, false
	}
	haveCalls, haveTools := w.Call != "" && call != "", w.Tool != "" && tool != ""
	if !haveCalls && !haveTools {
		return false, false // nothing tells the two calls apart
	}
	asked := t.findCall(tool, call)
	isLater := e.at.Sub(w.Since).Abs() >= parallelCalls
	if isStart && isLater && asked < 0 {
		return false, false
	}
	return t.answer(asked)
}

// findCall is the place of the request for a call, or -1. Calls are told apart by their ids where both
// sides have one, else by their tools.
func (t *Turn) findCall(tool, call string) int {
	return slices.IndexFunc(t.Requests, func(w Waiting) bool {
		if w.Call != "" && call != "" {
			return w.Call == call
		}
		return w.Tool != "" && w.Tool == tool
	})
}

// answerID takes an id for that of a question which has its answer: that one and no other. Where there
// are no ids, whatever is done next is the answer.
func (t *Turn) answerID(id string) (stillAsks, isNews bool) {
	if w := t.Waiting(); w == nil || w.ID == "" || id == "" {
		return false, false
	}
	return t.answer(slices.IndexFunc(t.Requests, func(w Waiting) bool { return w.ID == id }))
}

// answer removes the request at a place, -1 for none of them. The last one stays: what the program does
// now takes its place. stillAsks: something is asked still. isNews: another thing than before.
func (t *Turn) answer(i int) (stillAsks, isNews bool) {
	if i >= 0 && len(t.Requests) == 1 {
		return false, false
	}
	if i >= 0 {
		t.Requests = slices.Delete(t.Requests, i, i+1)
	}
	return true, i == 0
}
