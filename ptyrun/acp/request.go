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

// request is something that a person, or a rule, is to answer.
type request struct {
	kind               string // permission, or question
	call               acp.ToolCallId
	tool, alias, input string // as rules know them
	isCommand          bool   // input is a command, though a tool of one of these names takes none
	prompt             string
	options            []option
	shown              time.Time
	answer             chan int // the place of the option, buffered; closed: nobody answers
	isAnswered         bool     // and no more on the screen
	isTold             bool     // the runner has said so
}

type option struct{ label, kind string }

// maxOptions is how many options have a key.
const maxOptions = len(driver.FrontKeys)

// settle is how long what came before a request may take to be seen: that its turn goes on, and a key that answers the
// request before it. The runner answers none that has not stood for longer.
const settle = 100 * time.Millisecond

// RequestPermission asks whoever may answer, and waits. Of more options than keys the last are left out.
func (f *front) RequestPermission(ctx context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	r := &request{kind: "permission", call: p.ToolCall.ToolCallId, answer: make(chan int, 1)}
	for _, o := range p.Options[:min(len(p.Options), maxOptions)] {
		r.options = append(r.options, option{o.Name, string(o.Kind)})
	}
	time.Sleep(settle)
	f.post(func() {
		c := p.ToolCall
		r.takeOver(f.learn(c.ToolCallId, value(c.Kind), value(c.Title), c.RawInput))
		f.ask(r)
	})
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	select {
	case i, ok := <-r.answer:
		if ok {
			outcome = acp.NewRequestPermissionOutcomeSelected(p.Options[i].OptionId)
			isTold := f.awaitAnswered()
			f.post(func() {
				r.isTold = isTold
				f.withdraw(r)
			})
		}
	case <-ctx.Done():
		f.post(func() { f.withdraw(r) })
	}
	return acp.RequestPermissionResponse{Outcome: outcome}, nil
}

// awaitAnswered waits until the runner has said what was answered, and who did: what the agent does then must not
// overtake that. The runner sees that the request is gone from the screen.
func (f *front) awaitAnswered() bool {
	isRequest := func(e *wire.Event) bool { return e.Kind == "confirm_required" && e.Source == source }
	return f.awaitEvent(answerWait, isRequest, func(e *wire.Event) bool {
		return e.Kind == "state_change" && e.Source == "pty" && e.Field("previous") == string(reducer.Confirming)
	})
}

// takeOver takes over what is known of a call. What runs a command, or may, can have the name of a tool that does
// not: titles are the model's words, and "read x; rm y" begins like one.
func (r *request) takeOver(c *toolCall) {
	command := commandOf(c.input)
	r.tool, r.alias, r.prompt, r.input = c.tool, c.alias, c.title, cmp.Or(command, c.title)
	mayRun := command != "" || c.kind == "" || c.kind == acp.ToolKindExecute
	r.isCommand = mayRun && (policy.TakesNoCommand(c.tool) || policy.TakesNoCommand(c.alias))
}

// commandOf is the command that a tool is given, as text or as words; "" for none.
func commandOf(input any) string {
	if raw, ok := input.(json.RawMessage); ok {
		json.Unmarshal(raw, &input)
	}
	fields, _ := input.(map[string]any)
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

// ask shows a request, behind those that are asked already. In a turn that is being cancelled, or with
// nothing to choose from, nobody is asked.
func (f *front) ask(r *request) {
	if f.turn != nil && f.turn.isCut || len(r.options) == 0 {
		close(r.answer)
		return
	}
	f.requests = append(f.requests, r)
	if len(f.requests) == 1 {
		f.show()
	}
}

func (f *front) show() {
	f.part()
	r := f.requests[0]
	r.shown = time.Now()
	if r.kind == "permission" {
		f.say(wire.Event{Kind: "confirm_required"}.With("tool", r.tool).With("input", r.input).
			With("prompt", r.prompt).With("tool_call_id", r.call))
		f.change(reducer.Confirming, r.kind)
	}
}

// asked is the request on the screen; nil: there is none.
func (f *front) asked() *request {
	if len(f.requests) == 0 || f.requests[0].isAnswered {
		return nil
	}
	return f.requests[0]
}

// answer takes a request from the screen. Whoever waits for the answer withdraws it.
func (f *front) answer(r *request, i int) {
	if i >= 0 && i < len(r.options) && time.Since(r.shown) >= settle { // else it was for another
		r.isAnswered = true
		r.answer <- i
		f.screen.say(note, r.options[i].label+": "+r.prompt)
	}
}

// withdraw drops a request. Between two there is a frame without any.
func (f *front) withdraw(r *request) {
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
	if r.isTold {
		f.activity = reducer.Thinking
	}
	if f.turn != nil {
		f.change(reducer.Thinking, "")
	} else if r.kind == "permission" {
		f.change(reducer.Idle, "")
	}
	if len(rest) > 0 {
		f.draw()
		f.requests = rest
		f.show()
	}
}

func (f *front) withdrawAll() {
	for _, r := range slices.Backward(slices.Clone(f.requests)) {
		close(r.answer)
		f.withdraw(r)
	}
}
