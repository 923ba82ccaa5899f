package reducer

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// parallelCalls is how soon after a request a call may start that the agent began together with the requested one.
const parallelCalls = 2 * time.Second

// The kinds of Waiting.
const (
	Permission = "permission"
	Question   = "prompt"
	ClientTool = "tool" // ACP: the client is to run a tool for it
)

// The kinds of a dialog on a screen that is about the program itself, and not about one of its tools.
const (
	trustDialog   = "trust"   // whether to trust a directory
	unknownDialog = "unknown" // anything: also a menu that a person opened
)

// IsForTerminal reports whether only a person at the agent's terminal may answer a dialog of that kind.
func IsForTerminal(dialog string) bool { return dialog == trustDialog || dialog == unknownDialog }

// Waiting is a permission request or a question that waits for an answer. Since tells one dialog from the next: it
// stays while more becomes known of the same dialog.
type Waiting struct {
	ID           string          `json:"id,omitempty"`
	ToolCallID   string          `json:"tool_call_id,omitempty"`
	Kind         string          `json:"kind"` // permission, prompt, tool
	Prompt       string          `json:"prompt,omitempty"`
	Tool         string          `json:"tool,omitempty"`
	Input        string          `json:"input,omitempty"`  // what the tool is about to do, if it was told beside Prompt
	Dialog       string          `json:"dialog,omitempty"` // the kind of dialog on a screen: permission, trust, question, unknown
	Options      json.RawMessage `json:"options,omitempty"`
	Since        time.Time       `json:"since"`
	Subagent     string          `json:"subagent,omitempty"`            // which sub-agent of it asks; "": it does itself
	IsOnWire     bool            `json:"by_wire,omitempty"`             // it was asked on a wire, and is answered there
	IsOnChannel  bool            `json:"on_channel,omitempty"`          // it was asked on the session channel: a person's message answers it
	InSession    string          `json:"interactive_session,omitempty"` // and only one to this session; "": to any
	IsIncomplete bool            `json:"cut,omitempty"`                 // a text was cut, or they are from two reports
	Source       string          `json:"source,omitempty"`              // of the event that asked it; of several the surest
}

// IsBeside reports whether a sub-agent asks and somebody waits to give it the answer. That stays beside what the agent does
// itself, whose turns begin and end meanwhile.
func (w *Waiting) IsBeside() bool { return w.Subagent != "" && w.ID != "" }

// isHeldAgainst reports whether the request stands whatever events from that source say: a file is no evidence against
// what anybody else reports, a script or a bridge none against what the runner sees.
func (w *Waiting) isHeldAgainst(source string) bool {
	switch source {
	case wire.SourceDrop:
		return w.Source != wire.SourceDrop
	case wire.SourceCLI, wire.SourceBridge:
		return w.Source == wire.SourcePTY || w.Source == wire.SourceACP
	}
	return false
}

// isHeldAgainst reports whether any request of the turn is held against the source of an event.
func (ses *Session) isHeldAgainst(e *event) bool {
	return slices.ContainsFunc(ses.Requests, func(w Waiting) bool { return w.isHeldAgainst(e.source) })
}

// Requests returns what the agent asks: in the session that is shown, then on its channel.
func (s *State) Requests() []Waiting { return append(slices.Clone(s.Shown.Requests), s.Asked...) }

// Waiting returns the request that is shown, nil if the session asks nothing.
func (ses *Session) Waiting() *Waiting {
	if len(ses.Requests) == 0 {
		return nil
	}
	w := ses.Requests[0]
	return &w
}

// waitingOf reads a request from an event.
func waitingOf(e *event, kind string) Waiting {
	w := Waiting{
		ID: e.idOf("id"), ToolCallID: e.idOf("tool_call_id"), Kind: kind, Prompt: e.Text("prompt", "message"),
		Input: e.Text("input"), Dialog: e.Text("dialog"), Subagent: e.idOf("subagent"),
	}
	if kind != Question {
		w.Tool = e.Text("tool", "tool_name", "title")
	}
	if w.IsOnWire = e.isOnWire && kind != Question; w.IsOnWire {
		w.ID = cmp.Or(e.idOf("request_id"), w.ID, w.ToolCallID) // id may be that of the JSON-RPC call
		w.Input = cmp.Or(w.Input, string(e.Raw("arguments")))
	}
	if IsForTerminal(w.Dialog) {
		w.Kind = Question // it is about no tool
	}
	if raw := e.Raw("options"); raw != nil {
		w.Options, _ = json.Marshal(raw) // as JSON gives it back
	}
	return w
}

// ask applies a request: in the turn that the event names, else in whatever the program does, perhaps outside any turn.
func (ses *Session) ask(e *event, w Waiting) bool {
	switch {
	case w.IsBeside() && !ses.isOver():
	case ses.hasEnded(e.turn):
		isKnown := slices.Contains(ses.Calls, w.ToolCallID) || slices.Contains(ses.EndedCalls, w.ToolCallID)
		if isKnown || w.Kind != Permission || !w.isNamed() || !ses.reopenTurn(e) {
			return false // late
		}
	case ses.isOver() && e.turn == "" && e.session != "":
		return false // late
	case e.turn != "":
		ses.enterTurn(e)
	}
	return ses.waitFor(e, w)
}

// waitFor adds a request. The same question in other words keeps its time. A program may ask about several calls at
// once: the first is shown, the others queue behind it. A screen shows one dialog, which replaces what was asked. A plain
// question replaces what the agent itself has asked.
func (ses *Session) waitFor(e *event, w Waiting) (isNews bool) {
	w.Since, w.Source = e.at, e.source
	w.cut()
	first := ses.Waiting()
	isQueued := first != nil && (first.IsBeside() || w.IsBeside() || first.Kind != Question && w.Kind != Question) && e.source != wire.SourcePTY
	switch i := slices.IndexFunc(ses.Requests, func(old Waiting) bool { return old.isSame(&w) }); {
	case i >= 0 && w.isHeldAgainst(ses.Requests[i].Source): // nothing of the weaker report is kept
		ses.Requests[i] = w
		ses.showRequest()
	case i > 0 || i == 0 && first.Kind != w.Kind:
		return false
	case i == 0:
		ses.Requests[0] = first.merge(w)
		return !reflect.DeepEqual(ses.Requests[0], *first)
	case isQueued && len(ses.Requests) < maxRequests:
		ses.Requests = append(ses.Requests, w)
	case !isQueued:
		beside := ses.beside()
		if e.source == wire.SourcePTY {
			beside = nil
		}
		ses.setActivity(Unknown, "")
		ses.Requests = append([]Waiting{w}, beside...)
		ses.showRequest()
	}
	return true
}

// beside returns the requests of sub-agents.
func (ses *Session) beside() (all []Waiting) {
	for _, w := range ses.Requests {
		if w.IsBeside() {
			all = append(all, w)
		}
	}
	return all
}

// AtPrompt returns the state without what is asked beside what the program itself does: on its session channel, and by
// sub-agents.
func (s State) AtPrompt() *State {
	s.Asked = nil
	for _, w := range s.Shown.beside() {
		s.Shown.answerBeside(w.ID)
	}
	return &s
}

// showRequest has the activity be that of the request that is shown, if there is one.
func (ses *Session) showRequest() {
	if w := ses.Waiting(); w != nil {
		ses.Activity, ses.Detail = w.activity()
	}
}

// answerBeside answers the request of a sub-agent that has this id. What the agent itself does is as it was: its turn may have
// ended meanwhile, and another one begun.
func (ses *Session) answerBeside(id string) (isAnswered bool) {
	i := slices.IndexFunc(ses.Requests, func(w Waiting) bool { return w.IsBeside() && w.ID == id })
	if i < 0 {
		return false
	}
	switch ses.Requests = slices.Delete(slices.Clone(ses.Requests), i, i+1); {
	case len(ses.Requests) > 0:
		ses.showRequest()
	case ses.Turn.IsOpen():
		ses.setActivity(Thinking, "")
	default:
		ses.setActivity(Idle, "")
	}
	return true
}

// activity returns the activity and the detail of a program that asks this.
func (w *Waiting) activity() (Activity, string) {
	switch {
	case IsForTerminal(w.Dialog):
		return Confirming, w.Dialog
	case w.Kind == Question:
		return AwaitingInput, "question"
	}
	return Confirming, w.Kind
}

// cut shortens the texts to what a State keeps.
func (w *Waiting) cut() {
	prompt, input, tool := wire.Clip(w.Prompt, maxPrompt), wire.Clip(w.Input, maxText), wire.Clip(w.Tool, maxID)
	w.IsIncomplete = w.IsIncomplete || prompt != w.Prompt || input != w.Input || tool != w.Tool
	w.Prompt, w.Input, w.Tool, w.Dialog = prompt, input, tool, wire.Clip(w.Dialog, maxID)
	if len(w.Options) > maxOptions {
		w.Options = nil
	}
}

// isSame reports whether n is the same question: hooks, their notifications and the screen each report a part of it.
func (w *Waiting) isSame(n *Waiting) bool {
	areDifferent := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case areDifferent(w.ID, n.ID), areDifferent(w.ToolCallID, n.ToolCallID), areDifferent(w.Tool, n.Tool), areDifferent(w.Subagent, n.Subagent):
		return false
	case w.Kind != n.Kind:
		return !n.isNamed() && !w.IsBeside()
	case w.ToolCallID != "" && w.ToolCallID == n.ToolCallID:
		return true
	case w.isNamed() != n.isNamed(), w.isNamed() && w.ID+n.ID != "":
		return true
	}
	return !areDifferent(w.Prompt, n.Prompt) // else two calls
}

// isNamed reports whether it says more than that something is asked.
func (w *Waiting) isNamed() bool { return w.ID != "" || w.ToolCallID != "" || w.Tool != "" }

// surety is how much a report knows: with an id the dialog was seen, with a tool or call it is about that call.
func (w *Waiting) surety() int {
	switch {
	case w.ID != "":
		return 2
	case w.isNamed():
		return 1
	}
	return 0
}

// merge returns the question after a newer report n of it. The texts are those of the surer report that has some, and of
// two that were seen those of the newer. From the other one comes only what tells which dialog it is and which call it is
// about. If that is the tool, it is incomplete, unless a dialog shows the call that the other one has told.
func (w *Waiting) merge(n Waiting) Waiting {
	out, other := *w, n
	if sure := n.surety(); w.Prompt+w.Input == "" || n.Prompt != "" && (sure > w.surety() || sure == 2) {
		out, other = n, *w
	}
	if out.Tool == "" && other.Tool != "" {
		call := cmp.Or(other.Input, other.Prompt)
		if rest, isShown := besideCall(out.Prompt, call); isShown && !other.IsIncomplete {
			out.Input, out.Prompt = call, rest
		} else {
			out.IsIncomplete = true
		}
	}
	out.ID, out.ToolCallID, out.Tool = cmp.Or(out.ID, other.ID), cmp.Or(out.ToolCallID, other.ToolCallID), cmp.Or(out.Tool, other.Tool)
	out.Subagent = cmp.Or(out.Subagent, other.Subagent)
	out.IsOnWire, out.Since = w.IsOnWire || n.IsOnWire, w.Since
	if out.Options == nil {
		out.Options = other.Options
	}
	if out.Source == n.Source && w.isHeldAgainst(n.Source) {
		out.Source = w.Source
	}
	return out
}

// besideCall returns what a dialog says after a call, without its own question at the end: what stands before the call is
// the dialog's title, of one line at most, so that the call is all that it asks about. A screen breaks lines anywhere.
func besideCall(dialog, call string) (rest string, isShown bool) {
	lines, want := strings.Split(strings.TrimSpace(dialog), "\n"), withoutSpace(call)
	for from := range min(2, len(lines)) {
		for to := from + 1; to <= len(lines) && want != ""; to++ {
			if withoutSpace(strings.Join(lines[from:to], "")) != want {
				continue
			}
			after := lines[to:]
			if n := len(after); n > 0 && strings.HasSuffix(strings.TrimSpace(after[n-1]), "?") {
				after = after[:n-1]
			}
			return strings.TrimSpace(strings.Join(after, "\n")), true
		}
	}
	return "", false
}

func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }

// requestFor returns the index of the permission request that is about a call, -1 for none. isKnown is false without a
// request, or if nothing tells the two calls apart.
func (ses *Session) requestFor(tool, call string) (i int, isKnown bool) {
	w := ses.own()
	if w == nil || w.Kind != Permission {
		return -1, false
	}
	i = slices.IndexFunc(ses.Requests, func(r Waiting) bool { // by id if both have one, else by tool
		if r.IsBeside() {
			return false
		}
		if r.ToolCallID != "" && call != "" {
			return r.ToolCallID == call
		}
		return r.Tool != "" && r.Tool == tool
	})
	return i, w.ToolCallID != "" && call != "" || w.Tool != "" && tool != ""
}

// own returns the first request of the agent itself, nil if it asks nothing.
func (ses *Session) own() *Waiting {
	i := slices.IndexFunc(ses.Requests, func(w Waiting) bool { return !w.IsBeside() })
	if i < 0 {
		return nil
	}
	return &ses.Requests[i]
}

// answerByStart takes a call's start as the answer to the request for it. The start of another call soon after the
// request answers nothing; a later one does, since then the request was refused.
func (ses *Session) answerByStart(e *event, tool, call string) (stillAsks bool) {
	i, isKnown := ses.requestFor(tool, call)
	wasRefused := isKnown && i < 0 && e.at.Sub(ses.own().Since).Abs() >= parallelCalls
	return isKnown && !wasRefused && ses.answer(i)
}

// answerByEnd takes a call's end as the answer to the request for it, and to no other.
func (ses *Session) answerByEnd(tool, call string) (stillAsks bool) {
	i, isKnown := ses.requestFor(tool, call)
	return isKnown && ses.answer(i)
}

// answerID answers the request with an id, and no other. Without ids, whatever comes next is the answer.
func (ses *Session) answerID(id string) (stillAsks bool) {
	if w := ses.Waiting(); w == nil || w.ID == "" || id == "" {
		return false
	}
	return ses.answer(slices.IndexFunc(ses.Requests, func(w Waiting) bool { return w.ID == id }))
}

// answer removes the request at an index, -1 for none. The last request stays until the caller sets the next activity.
// It reports whether other requests are open.
func (ses *Session) answer(i int) (stillAsks bool) {
	if i >= 0 && len(ses.Requests) == 1 {
		return false
	}
	if i >= 0 {
		ses.Requests = slices.Delete(ses.Requests, i, i+1)
	}
	return true
}
