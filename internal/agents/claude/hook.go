package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	drivers "github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// provesReceipt lists the events that come only after the program has received earlier answers.
var provesReceipt = map[string]bool{
	"UserPromptSubmit": true, "Stop": true, "PreToolUse": true, "PostToolUse": true, "PostToolUseFailure": true, "PostToolBatch": true,
	"PermissionRequest": true, "PermissionDenied": true, "Elicitation": true, "ElicitationResult": true,
}

// parse parses a hook call of Claude Code (2.1). All events of one prompt have its prompt_id, which becomes the turn's
// id. There is no hook for an interrupt: it shows when a new prompt, the session's end or an idle prompt finds the turn
// still open.
func parse(c *agents.Call) {
	c.Identify(c.In.Text("session_id"), c.In.Text("hook_event_name"), c.In.Text("prompt_id"))
	c.Record = c.In.Text("transcript_path")
	HandleEvent(c)
	switch {
	case c.Kind == "PermissionRequest":
		waitForAnswer(c)
	case c.Subagent != "":
	case c.Kind == "UserPromptSubmit":
		c.Forgets = c.Kind + " " // an interrupt before the first word of the answer removes a prompt, with what was added to it
		if len(c.Shown) > 0 {    // of mail that comes at once each has a prompt, which looks like that to the next
			c.ReplyAs = agents.NoReply
		}
	}
}

// HandleEvent handles the events of Claude Code, some of which other programs took over.
func HandleEvent(c *agents.Call) {
	in := c.In
	if id := in.Get("agent_id"); id != nil && string(id) != `""` {
		c.Subagent = strings.TrimSpace("subagent " + in.Text("agent_type"))
	}
	c.Mode = wire.Clip(in.Text("permission_mode"), agents.MaxID)
	switch c.Kind {
	case "PreToolUse":
		c.WillEdit = c.Edits(in.Text("tool_name"), in.Get("tool_input"))
	case "PostToolUse":
		c.HasEdited = c.Edits(in.Text("tool_name"), in.Get("tool_input"))
	}
	if c.Subagent != "" && c.Kind != "PermissionRequest" && c.Kind != "Notification" {
		handleSubagentEvent(c)
		return
	}
	if c.Subagent != "" {
		c.Turn = "" // it may work on behind the agent's turn
	}
	c.ProvesReceipt = c.Subagent == "" && provesReceipt[c.Kind]
	switch c.Kind {
	case "UserPromptSubmit":
		handlePrompt(c)
	case "Stop":
		handleStop(c)
	case "StopFailure":
		handleStopFailure(c)
	case "SessionStart":
		c.HandleSessionStart()
	case "SessionEnd":
		c.EndSession(in.Text("reason"))
	case "PreToolUse":
		c.StartTool(in.Text("tool_name"), in.Text("tool_use_id"))
	case "PostToolUse":
		c.EndTool(in.Text("tool_name"), in.Text("tool_use_id"), "")
	case "PostToolUseFailure":
		c.EndTool(in.Text("tool_name"), in.Text("tool_use_id"), in.Text("error"))
		if string(in.Get("is_interrupt")) == "true" {
			c.Events = append(c.Events, c.TurnCompleted("interrupted", c.Turn, ""))
		}
	case "PostToolBatch":
		c.ReplyAs = agents.AsContext
		c.Identify(c.Session, c.Kind, c.Turn, c.Hash(string(in.Get("tool_calls"))))
	case "PermissionRequest":
		arguments := in.Get("tool_input")
		c.AskPermission(in.Text("tool_name"), cmp.Or(agents.Describe(arguments), personText(arguments), string(arguments)), "subagent", subagent(c))
	case "PermissionDenied":
		c.EndTool(in.Text("tool_name"), in.Text("tool_use_id"), cmp.Or(in.Text("reason"), "denied"))
	case "Notification":
		handleNotification(c)
	case "Elicitation":
		c.AddEvent(wire.WaitingForInput, "", "prompt", in.Text("message"))
	case "ElicitationResult":
		c.ResumeThinking()
	case "PreCompact":
		if in.Text("trigger") == "manual" && c.Turn != "" {
			c.InterruptOpen(c.Turn) // somebody typed /compact at the prompt
		}
		c.ChangeState("thinking", "compacting")
	case "PostCompact":
		activity := "thinking"
		if in.Text("trigger") == "manual" {
			activity = "idle"
		}
		c.ChangeState(activity, "")
	case "TeammateIdle":
		if in.Text("teammate_name") == string(c.Box.Agent()) { // another teammate has its own hooks
			c.ProvesReceipt, c.ReplyAs, c.IsAmbiguous = true, agents.OnStderr, true
			c.EndEvents = append(c.EndEvents, c.TurnIdle(c.Turn))
		}
	}
}

func handlePrompt(c *agents.Call) {
	prompt := c.In.Text("prompt")
	c.ReplyAs, c.BeginsTurn, c.Shown = agents.AsContext, true, agents.Shown(prompt)
	c.StartTurn(personsPrompt(prompt))
}

// handleStop ends the turn. Mail may continue it, but not twice in a row.
func handleStop(c *agents.Call) {
	active := "again"
	if c.IsFirstStop() {
		active, c.ReplyAs = "first", agents.AsBlock
	}
	c.Identify(c.Session, c.Kind, c.Turn, active)
	end := c.TurnCompleted("completed", c.Turn, c.In.Text("last_assistant_message"))
	// A background task wakes the agent again.
	var tasks []struct{ Status string }
	json.Unmarshal(c.In.Get("background_tasks"), &tasks)
	running := 0
	for _, task := range tasks {
		if !slices.Contains([]string{"completed", "failed", "killed"}, task.Status) {
			running++
		}
	}
	if running > 0 {
		c.EndEvents = append(c.EndEvents, end.With("background", running))
	} else {
		c.EndEvents = append(c.EndEvents, end, c.TurnIdle(c.Turn))
	}
}

// handleStopFailure ends the turn that an error of the model's service has ended, such as a usage limit.
func handleStopFailure(c *agents.Call) {
	what, details := c.In.Text("error"), cmp.Or(c.In.Text("error_details"), c.In.Text("last_assistant_message"))
	c.AddEvent(wire.StreamError, "", "error_summary", strings.Trim(what+": "+details, ": "))
	c.EndTurn("failed", c.Turn, "")
	if end := drivers.LimitEnd(details, c.Now, c.Now); what == "rate_limit" && !end.IsZero() {
		c.Turn = "" // which is over
		c.ChangeState("limited", details, "until", end.UTC().Format(time.RFC3339))
	}
}

func handleNotification(c *agents.Call) {
	message := c.In.Text("message")
	kind := c.In.Text("notification_type")
	if c.Subagent != "" && !strings.HasSuffix(kind, "permission_prompt") {
		return
	}
	switch kind {
	case "permission_prompt", "worker_permission_prompt":
		c.AskPermission("", message, "subagent", subagent(c))
	case "elicitation_dialog", "elicitation_url_dialog", "agent_needs_input":
		c.AddEvent(wire.WaitingForInput, "", "prompt", message)
	case "elicitation_complete", "elicitation_response":
		c.ResumeThinking()
	case "idle_prompt":
		last := c.LastSession().Turn
		if !last.IsOpen() || c.Turn == "" || c.Turn == last.ID { // else another turn has begun since
			c.InterruptOpen("")
			c.Events = append(c.Events, c.TurnIdle(cmp.Or(c.Turn, last.ID)))
		}
	}
}

// handleSubagentEvent handles a call of or about a sub-agent that asks for nothing. It only shows that a tool which ran, or was
// denied, no longer waits for a permission, and that a sub-agent which has ended asks nothing.
func handleSubagentEvent(c *agents.Call) {
	last, tool := c.LastSession(), c.In.Text("tool_name")
	now, detail := "tool_running", c.Subagent
	if !last.Turn.IsOpen() {
		now, detail = "idle", ""
	}
	c.Turn = ""
	for _, w := range last.Requests {
		isOver := c.Kind == "SubagentStop"
		switch c.Kind {
		case "PostToolUse", "PostToolUseFailure", "PermissionDenied":
			isOver = w.Tool == "" || w.Tool == tool
		}
		if isOver && w.Subagent == subagent(c) {
			c.ChangeState(now, detail, "id", w.ID)
			if c.Kind != "SubagentStop" {
				return
			}
		}
	}
}

// subagent returns what tells the sub-agent that a call is of from the others; "": it is of the agent itself.
func subagent(c *agents.Call) string {
	if c.Subagent == "" {
		return ""
	}
	return cmp.Or(c.In.Text("agent_id"), c.Subagent)
}

// personsPrompt returns a prompt, "" if the program has begun the turn itself, as when work in the background has ended.
func personsPrompt(prompt string) string {
	if strings.HasPrefix(prompt, "<task-notification>") {
		return ""
	}
	return prompt
}

// inputs are the arguments of Claude Code's tools that say all that a rule has to see.
var inputs = map[string]string{
	"Bash": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path", "MultiEdit": "file_path",
	"NotebookEdit": "notebook_path", "WebFetch": "url", "WebSearch": "query",
}

// The tools that ask their person. A yes without an updated input does not count there.
const (
	asksQuestion = "AskUserQuestion"
	asksForPlan  = "ExitPlanMode"
)

// personInput is what such a tool asks.
type personInput struct {
	Plan      string
	Questions []struct {
		Question    string
		Options     []agents.Choice
		MultiSelect bool
	}
}

// choice returns the one question that one of its options answers, and its answers; nil: what the input asks is not that
// simple.
func choice(arguments json.RawMessage) (question string, answers []ask.Option) {
	var in personInput
	if json.Unmarshal(arguments, &in) != nil || len(in.Questions) != 1 || in.Questions[0].MultiSelect {
		return "", nil
	}
	return in.Questions[0].Question, agents.Choices(in.Questions[0].Options)
}

// personText is what such a tool asks, as people read it: the questions with their options, or the plan. "": it is no such
// tool.
func personText(arguments json.RawMessage) string {
	var in personInput
	json.Unmarshal(arguments, &in)
	lines := []string{in.Plan}
	for _, q := range in.Questions {
		lines = append(lines, q.Question)
		for i, o := range q.Options {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%d %s (%s)", i+1, o.Label, o.Description), " ()"))
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// waitForAnswer has a request wait for an answer from elsewhere, if somebody can give one. Its dialog is open meanwhile.
func waitForAnswer(c *agents.Call) {
	tool, arguments := c.In.Text("tool_name"), c.In.Get("tool_input")
	asksPerson := tool == asksQuestion || tool == asksForPlan
	question, answers := choice(arguments)
	if !c.MayAsk || asksPerson && (c.HasRunner() || personText(arguments) == "") || tool == asksQuestion && answers == nil {
		return // its dialog is on a screen that its runner reads, or no option answers it; a yes to no plan does not count
	}
	last := len(c.Events) - 1
	p := &agents.Permission{Event: c.Events[last], Tool: tool, Input: string(arguments), IsCommand: tool == "Bash"}
	c.Events = c.Events[:last]
	var in map[string]any
	json.Unmarshal(arguments, &in)
	if name := inputs[tool]; name != "" {
		p.Input, _ = in[name].(string)
	}
	isUnboxed, isGiven := in["dangerouslyDisableSandbox"]
	p.IsRisky = isGiven && isUnboxed != false || p.Input == ""
	if p.Prompt = cmp.Or(p.Input, agents.Describe(arguments), string(arguments)); isGiven && isUnboxed != false {
		p.Prompt += " (without its sandbox)"
	}
	switch always := suggested(c); {
	case tool == asksQuestion:
		p.Prompt, p.Options, p.IsChoice = question, answers, true
	case tool == asksForPlan:
		p.Prompt = personText(arguments)
		p.Options = []ask.Option{{ID: allow, Label: "Approve the plan", Kind: "allow_once"}, {ID: deny, Label: "Keep planning", Kind: "reject_once"}}
	case always != nil:
		p.Options = []ask.Option{
			{ID: allow, Label: "Allow once", Kind: "allow_once"},
			{ID: allowAlways, Label: "Always allow " + always.say(), Kind: "allow_always"},
			{ID: deny, Label: "Deny", Kind: "reject_once"},
		}
	}
	c.Permission = p
}

const (
	allow, allowAlways, deny = "allow", "always", "deny"

	maxSaid = 200 // bytes of what an answer for longer allows: it is shown whole
)

// A suggestion is what Claude Code would change if a person allows a request for longer.
type suggestion struct {
	Type, Behavior, Mode, Destination string
	Rules                             []struct{ ToolName, RuleContent string }
	Directories                       []string
}

type suggestions []suggestion

// suggested returns what Claude Code would change; nil: nothing, or what atm could not show.
func suggested(c *agents.Call) (all suggestions) {
	err := json.Unmarshal(c.In.Get("permission_suggestions"), &all)
	if said := all.say(); err != nil || said == "" || len(said) > maxSaid {
		return nil
	}
	return all
}

// say says what would change, in full; "": that is not known.
func (all suggestions) say() string {
	var said []string
	for _, s := range all {
		var what []string
		switch {
		case s.Type == "addRules" && s.Behavior == "allow":
			for _, r := range s.Rules {
				what = append(what, strings.TrimSuffix(r.ToolName+"("+r.RuleContent+")", "()"))
			}
		case s.Type == "addDirectories":
			what = s.Directories
		case s.Type == "setMode" && s.Mode != "":
			what = []string{"mode " + s.Mode}
		}
		if len(what) == 0 {
			return ""
		}
		said = append(said, strings.Join(what, ", ")+" in "+cmp.Or(places[s.Destination], s.Destination))
	}
	return strings.Join(said, "; ")
}

// places are where Claude Code keeps what a person allows.
var places = map[string]string{
	"session": "this session", "localSettings": "this project", "projectSettings": "this project, for all", "userSettings": "all projects",
}

// answer is what a program that took Claude Code's form does not do: a turn goes on with context alone.
func answer(c *agents.Call, text string) any {
	if c.ReplyAs == agents.AsBlock && c.TakesContextAtStop() {
		c.ReplyAs = agents.AsContext
	}
	return c.Document(text)
}

// Decide answers a request for a permission, also for programs that took over its form.
func Decide(c *agents.Call, v agents.Verdict) any {
	var document struct {
		Output struct {
			Event    string `json:"hookEventName"`
			Decision struct {
				Behavior string          `json:"behavior"`
				Message  string          `json:"message,omitempty"`
				Input    json.RawMessage `json:"updatedInput,omitempty"`
				Changes  json.RawMessage `json:"updatedPermissions,omitempty"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	document.Output.Event, document.Output.Decision.Behavior = c.Kind, "allow"
	switch tool, arguments := c.In.Text("tool_name"), c.In.Get("tool_input"); {
	case v.IsDeny:
		document.Output.Decision.Behavior, document.Output.Decision.Message = "deny", v.Why()
	case tool == asksQuestion:
		document.Output.Decision.Input = answered(arguments, c.Permission.Chosen(v))
	case tool == asksForPlan:
		document.Output.Decision.Input = arguments
	case v.Option == allowAlways && suggested(c) != nil:
		document.Output.Decision.Changes = c.In.Get("permission_suggestions")
	}
	return document
}

// answered returns the input of a question with its answer; nil: there is none.
func answered(arguments json.RawMessage, answer string) json.RawMessage {
	var in map[string]json.RawMessage
	json.Unmarshal(arguments, &in)
	if in == nil || answer == "" {
		return nil
	}
	question, _ := choice(arguments)
	in["answers"], _ = json.Marshal(map[string]string{question: answer})
	data, _ := json.Marshal(in) // JSON that was read
	return data
}
