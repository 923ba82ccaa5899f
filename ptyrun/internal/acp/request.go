package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// question is what the agent asks, or what is asked about it.
type question struct {
	Question
	request policy.Request           // that rules see
	files   []string                 // that it is about, which they see as well
	options []acp.PermissionOptionId // the agent's IDs of the options
	answer  chan int                 // buffered; gets the index of the chosen option, or -1
}

// maxQuestion is how many bytes of JSON a question may have.
const maxQuestion = 1 << 20

func newQuestion(kind, prompt string) *question {
	q := &question{answer: make(chan int, 1)}
	q.ID, q.Dialog, q.Prompt = string(wire.NewID()), kind, prompt
	return q
}

func (q *question) addOption(o acp.PermissionOption) {
	label := strings.Join(strings.Fields(letter.Reveal(o.Name)), " ")
	q.options = append(q.options, o.OptionId)
	q.Options = append(q.Options, ask.Option{ID: strconv.Itoa(len(q.options)), Label: label, Kind: string(o.Kind)})
}

type permissionRequest struct {
	ToolCall callUpdate
	Options  []acp.PermissionOption
}

// askPermission asks what the agent asks, and returns what waits for the outcome. The SDK's own type would make floats of
// the numbers in a tool's input.
func (a *Agent) askPermission(ctx context.Context, p permissionRequest) func() acp.RequestPermissionOutcome {
	a.heard()
	q := newQuestion("permission", "")
	q.Call = wire.Clip(string(p.ToolCall.ToolCallId), maxRaw)
	q.describe(a.mergeCall(p.ToolCall))
	for _, o := range p.Options {
		q.addOption(o)
	}
	a.ask(q)
	return func() acp.RequestPermissionOutcome {
		if i := a.await(ctx, q); i >= 0 {
			return acp.NewRequestPermissionOutcomeSelected(q.options[i])
		}
		return acp.NewRequestPermissionOutcomeCancelled()
	}
}

// describe says what a call is about: the command that runs and the files that change, and below that the title, which is
// the model's own.
//
// A call that runs a command may have the name of a tool that does not: the model writes the title, and "read x; rm y"
// starts with such a name. A call of which not all is known has no tool, so that no rule answers, and nobody says yes.
func (q *question) describe(c *toolCall) {
	command := commandOf(c.input)
	isCommand := command != "" || c.kind == "" || c.kind == acp.ToolKindExecute
	title := c.title
	if isCommand {
		title = strings.TrimPrefix(title, "Run: ")
		command = cmp.Or(command, title)
	}
	q.Tool, q.Prompt, q.files = c.tool, command, c.files()
	q.request = policy.Request{Tool: c.tool, Alias: c.alias, Command: isCommand, Input: cmp.Or(command, title)}
	for _, path := range q.files {
		q.Prompt += "\n" + policy.Quote(path)
	}
	if q.Prompt = strings.TrimPrefix(q.Prompt, "\n"); q.Prompt == "" {
		q.Prompt = title
	} else if command != title {
		q.Prompt = withRemark(q.Prompt, title)
	}
	if c.isLarge || c.hasMorePaths && len(q.files) > 0 {
		q.Tool, q.request, q.Cut = "", policy.Request{}, true
	}
}

// withRemark adds a title as a remark, unless it says the same, perhaps behind one word: "Bash: git push".
func withRemark(text, title string) string {
	oneLine := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	title = oneLine(title)
	before, isSame := strings.CutSuffix(strings.Trim(title, "`"), oneLine(text))
	if title == "" || isSame && !strings.Contains(strings.TrimSpace(before), " ") {
		return text
	}
	return text + "\n# " + title
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

// ask asks a question. In a turn that is cancelled, without options, or if it is too large, it gets no answer.
func (a *Agent) ask(q *question) {
	raw, _ := json.Marshal(q.Question.Question) // texts: cannot fail
	switch {
	case len(raw) > maxQuestion:
		a.logError(0, fmt.Sprintf("it asked something of %d bytes, and got no answer", len(raw)))
		q.answer <- -1
	case len(q.options) == 0 || a.turn != nil && a.turn.isCancelled:
		q.answer <- -1
	default:
		a.endText()
		switch {
		case a.session == "":
			q.Then = reducer.Starting
		case a.turn == nil:
			q.Then = reducer.Idle
		default:
			q.Then = reducer.Thinking
		}
		q.Rule = a.ruleFor(q)
		a.open = append(a.open, q)
		if a.activity = reducer.Confirming; q.Dialog == "question" {
			a.activity = reducer.AwaitingInput
		}
		asked := q.Question
		a.tell(Event{Asked: &asked})
	}
}

// await returns the index of the option that answers a question, or -1: it is withdrawn, by the agent if ctx ends.
func (a *Agent) await(ctx context.Context, q *question) (chosen int) {
	select {
	case chosen = <-q.answer:
		return chosen
	case <-ctx.Done():
		a.do(func() { a.closeQuestion(q, -1) })
		return <-q.answer
	}
}

// Answer answers an open question with the ID of an option.
func (a *Agent) Answer(id, option string) (err error) {
	a.do(func() {
		i := slices.IndexFunc(a.open, func(q *question) bool { return q.ID == id })
		if i < 0 {
			err = ErrGone
			return
		}
		q := a.open[i]
		chosen := slices.IndexFunc(q.Options, func(o ask.Option) bool { return o.ID == option })
		if chosen < 0 {
			err = fmt.Errorf("the question has no option %q", option)
			return
		}
		a.closeQuestion(q, chosen)
	})
	return err
}

// closeQuestion goes on without an open question that was answered, or that is withdrawn: chosen is -1.
func (a *Agent) closeQuestion(q *question, chosen int) {
	i := slices.Index(a.open, q)
	if i < 0 {
		return
	}
	a.open = slices.Delete(a.open, i, i+1)
	q.answer <- chosen
	if chosen < 0 {
		asked := q.Question
		a.tell(Event{Closed: &asked})
	}
	if len(a.open) == 0 {
		a.activity = q.Then // the owner logs that change
	}
}

// ruleFor returns what the owner's rules say about a question. An unknown tool matches no rule, not even one for all tools.
// Of several files the strictest decision counts, and their title may only deny.
func (a *Agent) ruleFor(q *question) policy.Decision {
	request := q.request
	request.Dirs = []string{a.Dir, a.realDir}
	if q.Dialog != "permission" || request.Tool == "" {
		return policy.Ask
	}
	rule := a.Rules.Decide(request)
	if len(q.files) > 0 && !request.Command && rule == policy.Ask {
		rule = policy.Allow
	}
	request.Command = false
	for _, request.Input = range q.files {
		if d := a.Rules.Decide(request); d == policy.Deny || rule == policy.Allow {
			rule = d
		}
	}
	return rule
}

// withdraw withdraws all questions, the newest first: nobody is shown one that is withdrawn next.
func (a *Agent) withdraw() {
	for len(a.open) > 0 {
		a.closeQuestion(a.open[len(a.open)-1], -1)
	}
}
