package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentteammail/atm/wire"
)

// Permission is a request for a tool, whose program lets its hook answer.
type Permission struct {
	Event  wire.Event // opens the question
	ID     string     // the program's own of the question; "": it has none
	Tool   string
	Prompt string // what the tool is about to do, for whoever answers: at least Input

	// What a rule sees: the whole command, path or address; for a tool that atm does not know all its arguments.
	Input     string
	IsCommand bool
	IsRisky   bool // it asks for more than that says: no rule may allow it
}

// Verdict is the answer to a Permission.
type Verdict struct {
	Option string // the id of the answer, if the program has its own
	IsDeny bool
	By     string // who has answered
	Reason string // of a denial; "": none
}

// inputs are the arguments of Claude Code's tools that say all that a rule has to see.
var inputs = map[string]string{
	"Bash": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path", "MultiEdit": "file_path",
	"NotebookEdit": "notebook_path", "WebFetch": "url", "WebSearch": "query",
}

// forPerson are the tools whose dialogs ask for more than yes or no.
var forPerson = map[string]bool{"AskUserQuestion": true, "ExitPlanMode": true}

// askClaudePermission has a request of Claude Code wait for an answer from elsewhere, if somebody can give one. Its dialog
// is open meanwhile.
func (c *call) askClaudePermission() {
	tool, arguments := c.in.Text("tool_name"), c.in.Get("tool_input")
	short := cmp.Or(describe(arguments), string(arguments))
	c.askPermission(tool, short)
	if c.tool != Claude || c.o.Ask == nil || c.o.IsSecond || forPerson[tool] || c.hasRunner() {
		return
	}
	last := len(c.events) - 1
	p := &Permission{Event: c.events[last], Tool: tool, Input: string(arguments), IsCommand: tool == "Bash"}
	c.events = c.events[:last]
	var in map[string]any
	json.Unmarshal(arguments, &in)
	if name := inputs[tool]; name != "" {
		p.Input, _ = in[name].(string)
	}
	isUnboxed, isGiven := in["dangerouslyDisableSandbox"]
	p.IsRisky = isGiven && isUnboxed != false || p.Input == ""
	if p.Prompt = cmp.Or(p.Input, short); isGiven && isUnboxed != false {
		p.Prompt += " (without its sandbox)"
	}
	c.permission = p
}

// waitForVerdict waits for the answer to a request, and writes it. Without one the person answers the dialog.
func (c *call) waitForVerdict(ctx context.Context) error {
	return c.o.Ask(ctx, c.permission, func(v Verdict) error {
		if c.tool == OpenCode {
			return c.write(busAnswer{v.Option, v.reason()})
		}
		var document struct {
			Output struct {
				Event    string `json:"hookEventName"`
				Decision struct {
					Behavior string `json:"behavior"`
					Message  string `json:"message,omitempty"`
				} `json:"decision"`
			} `json:"hookSpecificOutput"`
		}
		document.Output.Event, document.Output.Decision.Behavior = c.kind, "allow"
		if v.IsDeny {
			document.Output.Decision.Behavior, document.Output.Decision.Message = "deny", v.reason()
		}
		return c.write(document)
	})
}

// reason tells the model who has denied what it asked for, and why; "": nobody has.
func (v Verdict) reason() string {
	switch {
	case !v.IsDeny:
		return ""
	case v.Reason == "":
		return fmt.Sprintf("%s %s says no", prefix, v.By)
	}
	return fmt.Sprintf("%s %s says no: %s", prefix, v.By, v.Reason)
}
