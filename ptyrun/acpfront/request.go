//go:build linux || darwin

package acpfront

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// request is a request of the agent that a person or a rule answers.
type request struct {
	kind               string // permission or question
	turn               *turn  // in which it came
	call               acp.ToolCallId
	tool, alias, input string // for rules
	isCommand          bool   // input is a command, although tools with these names take none
	prompt             string
	options            []acp.PermissionOption
	shownAt            time.Time
	answer             chan int // buffered; gets the index of the chosen option, or -1
	isAnswered         bool     // and off the screen
}

// maxOptions is the number of options that have a key.
const maxOptions = len(driver.FrontKeys)

// settle is how long a request must be shown before a key answers it, and how long none is shown before the next: a key
// for one request never answers another. The runner answers no request that was shown for less time.
const settle = 100 * time.Millisecond

type permissionRequest struct {
	ToolCall callUpdate
	Options  []acp.PermissionOption
}

// requestPermission shows a request and waits for the answer. It drops options beyond maxOptions.
func (f *front) requestPermission(ctx context.Context, p permissionRequest) acp.RequestPermissionResponse {
	r := &request{kind: "permission", call: p.ToolCall.ToolCallId, options: p.Options[:min(len(p.Options), maxOptions)]}
	f.do(func() {
		r.turn = f.turn
		r.describe(f.mergeCall(p.ToolCall))
	})
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	i := f.ask(ctx, r)
	f.do(func() { r.noteAnswer(i, p.ToolCall.Locations) })
	if i >= 0 {
		outcome = acp.NewRequestPermissionOutcomeSelected(r.options[i].OptionId)
	}
	return acp.RequestPermissionResponse{Outcome: outcome}
}

// describe copies what is known about a call. A call that runs a command may have the name of a tool that does not: the
// model writes the title, and "read x; rm y" starts with such a name.
func (r *request) describe(c *toolCall) {
	command := commandOf(c.input)
	r.tool, r.alias, r.prompt, r.input = c.tool, c.alias, c.title, cmp.Or(command, c.title)
	r.isCommand = command != "" || c.kind == "" || c.kind == acp.ToolKindExecute
}

// commandOf returns the command in a tool's input, which is a text or a list of words, or "".
func commandOf(input json.RawMessage) string {
	var fields struct{ Command any }
	json.Unmarshal(input, &fields)
	switch c := fields.Command.(type) {
	case string:
		return c
	case []any:
		var words []string
		for _, w := range c {
			s, _ := w.(string)
			words = append(words, policy.Quote(s))
		}
		return strings.Join(words, " ")
	}
	return ""
}

// ask shows a request, after those before it, and returns the index of the chosen option, or -1. In a turn that has
// ended or is cancelled, or without options, it gets no answer.
func (f *front) ask(ctx context.Context, r *request) (chosen int) {
	f.asking.Lock()
	defer f.asking.Unlock()
	r.answer = make(chan int, 1)
	f.do(func() {
		if len(r.options) == 0 || r.turn != f.turn || r.turn != nil && r.turn.isCancelled {
			r.answer <- -1
			return
		}
		f.endText()
		f.request = r
		if r.kind == "permission" {
			f.log(wire.Event{Kind: "confirm_required"}.With("tool", r.tool).With("input", wire.Clip(r.input, maxRaw)).
				With("prompt", r.prompt).With("tool_call_id", r.call))
			f.setActivity(reducer.Confirming, r.kind)
			f.awaitLogged()
		}
		if f.awaited == 0 {
			r.shownAt = time.Now()
		}
	})
	select {
	case chosen = <-r.answer:
	case <-ctx.Done():
		chosen = -1
	}
	if chosen >= 0 && r.kind == "permission" {
		f.awaitAnswerLogged()
	}
	f.do(func() { f.closeRequest(r, chosen) })
	time.Sleep(settle)
	return chosen
}

// closeRequest goes on without a request that was answered, or that ended without an answer: chosen is -1.
func (f *front) closeRequest(r *request, chosen int) {
	if f.request != r {
		return
	}
	f.request = nil
	if chosen >= 0 && r.kind == "permission" { // the runner has logged that change with the answer
		f.activity = reducer.Thinking
	}
	if f.turn != nil {
		f.setActivity(reducer.Thinking, "")
	} else if r.kind == "permission" {
		f.setActivity(reducer.Idle, "")
	}
}

// awaitAnswerLogged waits until the runner has logged who answered and how, which must precede the agent's next events.
// The runner does so when the request is gone from the screen.
func (f *front) awaitAnswerLogged() {
	isRequest := func(e *wire.Event) bool { return e.Kind == "confirm_required" && e.Source == source }
	f.awaitEvent(isRequest, func(e *wire.Event) bool {
		return e.Kind == "state_change" && e.Source == "pty" && e.Field("previous") == string(reducer.Confirming)
	})
}

// shown returns the request on the screen, or nil.
func (f *front) shown() *request {
	if f.request == nil || f.request.isAnswered || f.awaited > 0 {
		return nil
	}
	return f.request
}

// choose answers a request with an option, and takes it off the screen.
func (f *front) choose(r *request, i int) {
	if i >= 0 && i < len(r.options) && time.Since(r.shownAt) >= settle { // else the key was for another request
		r.isAnswered = true
		r.answer <- i
		f.screen.print(note, r.options[i].Name+": "+r.prompt)
	}
}

// cancelRequest ends the open request without an answer.
func (f *front) cancelRequest() {
	if r := f.request; r != nil && !r.isAnswered {
		r.isAnswered = true
		r.answer <- -1
		f.closeRequest(r, -1)
	}
}
