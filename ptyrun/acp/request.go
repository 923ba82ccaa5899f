//go:build linux || darwin

package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
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
	call               acp.ToolCallId
	tool, alias, input string // for rules
	isCommand          bool   // input is a command, although tools with these names take none
	prompt             string
	options            []acp.PermissionOption
	shownAt            time.Time
	answer             chan int // buffered; gets the index of the chosen option, or is closed without an answer
	isAnswered         bool     // and off the screen
}

// maxOptions is the number of options that have a key.
const maxOptions = len(driver.FrontKeys)

// settle lets the screen change and earlier keys arrive before a request is shown or answered, so that a key for one
// request never answers the next. The runner answers no request that was shown for less time.
const settle = 100 * time.Millisecond

// RequestPermission shows a request and waits for the answer. It drops options beyond maxOptions.
func (f *front) RequestPermission(ctx context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	r := &request{kind: "permission", call: p.ToolCall.ToolCallId, answer: make(chan int, 1)}
	r.options = p.Options[:min(len(p.Options), maxOptions)]
	time.Sleep(settle)
	f.post(func() {
		c := p.ToolCall
		input, _ := json.Marshal(c.RawInput)
		r.describe(f.mergeCall(c.ToolCallId, value(c.Kind), value(c.Title), input))
		f.ask(r)
	})
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	select {
	case i, ok := <-r.answer:
		if ok {
			outcome = acp.NewRequestPermissionOutcomeSelected(r.options[i].OptionId)
			f.awaitAnswerLogged()
		}
	case <-ctx.Done():
	}
	f.post(func() { f.remove(r) })
	return acp.RequestPermissionResponse{Outcome: outcome}, nil
}

// awaitAnswerLogged waits until the runner has logged who answered and how, which must precede the agent's next events.
// The runner does so when the request is gone from the screen.
func (f *front) awaitAnswerLogged() {
	isRequest := func(e *wire.Event) bool { return e.Kind == "confirm_required" && e.Source == source }
	f.awaitEvent(answerTimeout, isRequest, func(e *wire.Event) bool {
		return e.Kind == "state_change" && e.Source == "pty" && e.Field("previous") == string(reducer.Confirming)
	})
}

// describe copies what is known about a call. A call that runs a command may have the name of a tool that does not: the
// model writes the title, and "read x; rm y" starts with such a name.
func (r *request) describe(c *toolCall) {
	command := commandOf(c.input)
	r.tool, r.alias, r.prompt, r.input = c.tool, c.alias, c.title, cmp.Or(command, c.title)
	mayRun := command != "" || c.kind == "" || c.kind == acp.ToolKindExecute
	r.isCommand = mayRun && (policy.TakesNoCommand(c.tool) || policy.TakesNoCommand(c.alias))
}

// commandOf returns the command in a tool's input, which is a text or a list of words, or "".
func commandOf(input json.RawMessage) string {
	var fields map[string]any // names in a struct would match in any case
	json.Unmarshal(input, &fields)
	switch c := fields["command"].(type) {
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

// ask queues a request and shows it if it is the first. In a cancelled turn, or without options, it gets no answer.
func (f *front) ask(r *request) {
	if f.turn != nil && f.turn.isCancelled || len(r.options) == 0 {
		close(r.answer)
		return
	}
	f.requests = append(f.requests, r)
	if len(f.requests) == 1 {
		f.showRequest()
	}
}

func (f *front) showRequest() {
	f.endText()
	r := f.requests[0]
	r.shownAt = time.Now()
	if r.kind == "permission" {
		f.log(wire.Event{Kind: "confirm_required"}.With("tool", r.tool).With("input", r.input).
			With("prompt", r.prompt).With("tool_call_id", r.call))
		f.setActivity(reducer.Confirming, r.kind)
	}
}

// shownRequest returns the request on the screen, or nil.
func (f *front) shownRequest() *request {
	if len(f.requests) == 0 || f.requests[0].isAnswered {
		return nil
	}
	return f.requests[0]
}

// choose answers a request with an option, and takes it off the screen. The receiver of the answer removes it.
func (f *front) choose(r *request, i int) {
	if i >= 0 && i < len(r.options) && time.Since(r.shownAt) >= settle { // else the key was for another request
		r.isAnswered = true
		r.answer <- i
		f.screen.print(note, r.options[i].Name+": "+r.prompt)
	}
}

// remove removes a request that has not been removed yet. Before it shows the next one it draws a frame without any, for
// the runner to see.
func (f *front) remove(r *request) {
	i := slices.Index(f.requests, r)
	if i < 0 {
		return
	}
	f.requests = slices.Delete(f.requests, i, i+1)
	if i > 0 {
		return
	}
	rest := f.requests
	f.requests = nil
	if r.isAnswered && r.kind == "permission" { // the runner logs that
		f.activity = reducer.Thinking
	}
	if f.turn != nil {
		f.setActivity(reducer.Thinking, "")
	} else if r.kind == "permission" {
		f.setActivity(reducer.Idle, "")
	}
	if len(rest) > 0 {
		f.draw()
		f.requests = rest
		f.showRequest()
	}
}

func (f *front) cancelRequests() {
	for _, r := range slices.Backward(slices.Clone(f.requests)) {
		close(r.answer)
		f.remove(r)
	}
}
