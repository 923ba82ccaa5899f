package reducer

import (
	"slices"
	"time"
)

// beside is how soon after a question the start of another call is taken for
// one that was begun together with the call that is asked about.
const beside = 2 * time.Second

// question is what an event says that is asked.
func question(h *happening, kind string) Waiting {
	b := h.body()
	w := Waiting{ID: h.ident("id"), Call: h.ident("tool_call_id"), Kind: kind, Prompt: b.Text("prompt", "message")}
	if kind == Permission {
		w.Tool = b.Text("tool", "tool_name", "title")
	}
	w.Input, w.Dialog = b.Text("input"), b.Text("dialog")
	w.Options = compact(b.Raw("options"))
	if w.Dialog == trust {
		w.Kind = Question // it asks for no tool
	}
	return w
}

// trust is the dialog that asks whether a directory is to be trusted.
const trust = "trust"

// asks says that the program asks something: of the turn that the event names,
// else of whatever it does, which may be no turn.
func (t *Turn) asks(h *happening, w Waiting) bool {
	switch {
	case t.over(h.turn):
		if !w.named() || w.Kind != Permission || t.heardOf(w.Call, beginning) || t.heardOf(w.Call, ending) || !t.goesOn(h) {
			return false // late
		}
	case t.ended() && h.turn == "" && h.session != "":
		return false // late
	case h.turn == "" || t.Status == TurnBusy && t.is(h.turn):
	case t.paused() && h.turn == t.ID:
		t.Status = TurnBusy
	default: // of a turn whose start was not seen
		t.open(h)
		t.runsAt(h, false)
		t.doing(Unknown, "")
	}
	return t.wait(h, w)
}

// wait notes what is asked. What says the same again, and in more words
// perhaps, is still asked since it was first. Hooks and ACP ask for several
// calls at once: these stand in a row, the first is shown. Who else asks anew,
// a screen for one, asks instead.
func (t *Turn) wait(h *happening, w Waiting) bool {
	w.Since = h.at
	kept, whole := w.kept(), w
	old := t.Waiting
	switch {
	case old == nil:
	case old.same(&kept):
		if old.Kind != kept.Kind {
			return false
		}
		if kept = old.and(kept); kept.equal(old) {
			return false
		}
		t.Waiting, whole = &kept, kept.whole(w)
		h.ask = &whole
		return true
	case slices.ContainsFunc(t.Behind, func(b Waiting) bool { return b.same(&kept) }):
		return false
	case (h.Source == "hook" || h.Source == "acp") && old.Kind == Permission && kept.Kind == Permission:
		if len(t.Behind) < keptBehind {
			t.Behind = append(t.Behind, kept.brief())
		}
		h.ask = &whole
		return true
	}
	a, detail := AwaitingInput, "question"
	switch {
	case kept.Dialog == trust:
		a, detail = Confirming, trust
	case kept.Kind == Permission:
		a, detail = Confirming, "permission"
	}
	t.doing(a, detail)
	t.Waiting = &kept
	h.ask = &whole // rules must see all of it
	return true
}

// kept is a question as a State keeps it.
func (w Waiting) kept() Waiting {
	prompt, tool := clip(w.Prompt, maxPrompt), clip(w.Tool, maxTool)
	w.Cut = prompt != w.Prompt || tool != w.Tool
	w.Prompt, w.Tool = prompt, tool
	w.Input, w.Dialog = clip(w.Input, maxInput), clip(w.Dialog, maxDialog) // for people; no rule goes by them
	if len(w.Options) > maxOptions {
		w.Options = nil
	}
	return w
}

// brief is a question as it is kept behind another.
func (w Waiting) brief() Waiting {
	prompt := clip(w.Prompt, maxBrief)
	w.Cut = w.Cut || prompt != w.Prompt
	w.Prompt, w.Input, w.Options = prompt, "", nil
	return w
}

// same reports whether n is the same question in other words. Hooks, their
// notifications and the screen tell of one dialog, each with a part of it.
func (w *Waiting) same(n *Waiting) bool {
	switch {
	case differ(w.ID, n.ID), differ(w.Call, n.Call), differ(w.Tool, n.Tool):
		return false
	case w.Kind != n.Kind:
		return !n.named()
	case w.Call != "" && w.Call == n.Call:
		return true
	case w.ID == "" && n.ID == "" && w.named() && n.named() && differ(w.Prompt, n.Prompt):
		return false // two calls
	}
	return w.named() || n.named() || !differ(w.Prompt, n.Prompt)
}

// named reports whether it says more than that something is asked.
func (w *Waiting) named() bool { return w.ID != "" || w.Call != "" || w.Tool != "" }

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// rank is how surely a question's prompt is what is asked: one that comes with
// the dialog's id was seen, one with the call's tool or id is about that call.
func (w *Waiting) rank() int {
	switch {
	case w.Prompt == "":
		return 0
	case w.ID != "":
		return 3
	case w.named():
		return 2
	}
	return 1
}

// and adds what n knows that w did not, and takes the prompt that is surer.
func (w *Waiting) and(n Waiting) Waiting {
	first, second := *w, n
	if n.rank() > w.rank() || n.rank() == 3 {
		first, second = n, *w
	}
	out := first
	out.Kind, out.Since = w.Kind, w.Since
	out.ID, out.Call, out.Tool, out.Prompt = or(first.ID, second.ID), or(first.Call, second.Call), or(first.Tool, second.Tool), or(first.Prompt, second.Prompt)
	out.Input, out.Dialog = or(first.Input, second.Input), or(first.Dialog, second.Dialog)
	if first.Options == nil {
		out.Options = second.Options
	}
	if out.Tool != first.Tool || out.Prompt != first.Prompt {
		out.Cut = true // one said this, another that: together nobody said it
	}
	return out
}

// whole is what is kept, with what an event says of it in full.
func (w Waiting) whole(said Waiting) Waiting {
	if w.Prompt != "" && w.Prompt == clip(said.Prompt, maxPrompt) && w.Tool == clip(said.Tool, maxTool) {
		w.Prompt, w.Tool, w.Cut = said.Prompt, said.Tool, false
	}
	if said.Options != nil {
		w.Options = said.Options
	}
	return w
}

func (w *Waiting) equal(o *Waiting) bool {
	return w.ID == o.ID && w.Call == o.Call && w.Tool == o.Tool && w.Prompt == o.Prompt && w.Input == o.Input && w.Dialog == o.Dialog && w.Cut == o.Cut && string(w.Options) == string(o.Options)
}

// answered takes a call's start or end for the answer to a permission that was
// asked for it. What ends beside it is none; nor is what begins beside it, but
// what begins later is: the asked one was refused. It reports whether something
// is asked still, and whether that is another thing now.
func (t *Turn) answered(h *happening, tool, call string, starts bool) (asks, other bool) {
	w := t.Waiting
	if w == nil || w.Kind != Permission {
		return false, false
	}
	switch w.about(tool, call) {
	case itself:
		return t.next()
	case nobody:
		return false, false
	}
	if i := slices.IndexFunc(t.Behind, func(b Waiting) bool { return b.about(tool, call) == itself }); i >= 0 {
		t.Behind = without(t.Behind, i)
		return true, false
	}
	d := h.at.Sub(w.Since)
	return !starts || -beside < d && d < beside, false
}

// replied takes an id for that of a question which has its answer: that one and
// no other. Where there are no ids whatever is done next is the answer.
func (t *Turn) replied(id string) (asks, other bool) {
	switch w := t.Waiting; {
	case w == nil, w.ID == "", id == "":
		return false, false
	case w.ID == id:
		return t.next()
	}
	if i := slices.IndexFunc(t.Behind, func(b Waiting) bool { return b.ID == id }); i >= 0 {
		t.Behind = without(t.Behind, i)
	}
	return true, false
}

// next shows what was asked behind what has its answer now.
func (t *Turn) next() (asks, other bool) {
	if len(t.Behind) == 0 {
		return false, false
	}
	w := t.Behind[0]
	t.Waiting, t.Behind = &w, without(t.Behind, 0)
	return true, true
}

// without is a list of its own without one, nil when nothing is left.
func without(list []Waiting, i int) []Waiting {
	if len(list) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// The calls that a question may be about.
const (
	nobody  = iota // there is nothing to tell them apart by
	itself         // this one
	another        // not this one
)

func (w *Waiting) about(tool, call string) int {
	a, b := w.Call, call
	if a == "" || b == "" {
		a, b = w.Tool, tool
	}
	switch {
	case a == "" || b == "":
		return nobody
	case a == b:
		return itself
	}
	return another
}
