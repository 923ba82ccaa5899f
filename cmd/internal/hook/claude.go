package hook

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// provesReceipt lists the events that come only after the program has received earlier answers.
var provesReceipt = map[string]bool{
	"UserPromptSubmit": true, "Stop": true, "PreToolUse": true, "PostToolUse": true, "PostToolUseFailure": true, "PostToolBatch": true,
	"PermissionRequest": true, "PermissionDenied": true, "Elicitation": true, "ElicitationResult": true,
}

// beginsTurn lists the events at which expired mail goes out too.
var beginsTurn = map[string]bool{"UserPromptSubmit": true, "SessionStart": true, "BeforeAgent": true}

// claude parses a hook call of Claude Code (2.1). All events of one prompt have its prompt_id, which becomes the turn's
// id. There is no hook for an interrupt: it shows when a new prompt, the session's end or an idle prompt finds the turn
// still open.
func (c *call) claude() {
	c.identify(c.in.Text("session_id"), c.in.Text("hook_event_name"), c.in.Text("prompt_id"))
	c.handleEvent()
}

// handleEvent handles the events that Claude Code and Codex share.
func (c *call) handleEvent() {
	in := c.in
	if id := in.Get("agent_id"); id != nil && string(id) != `""` {
		c.subagent = strings.TrimSpace("subagent " + in.Text("agent_type"))
	}
	if c.subagent != "" && c.kind != "PermissionRequest" && c.kind != "Notification" {
		c.handleSubagentEvent()
		return
	}
	if c.isInBackground() {
		c.turn = ""
	}
	c.ProvesReceipt = c.subagent == "" && provesReceipt[c.kind]
	switch c.kind {
	case "UserPromptSubmit":
		c.handlePrompt()
	case "Stop":
		c.handleStop()
	case "StopFailure":
		c.handleStopFailure()
	case "SessionStart":
		if c.isWake = c.o.IsWake; !c.isWake {
			c.handleSessionStart()
		}
	case "SessionEnd":
		c.endSession(in.Text("reason"))
	case "PreToolUse":
		c.startTool(in.Text("tool_name"), in.Text("tool_use_id"))
	case "PostToolUse":
		c.endTool(in.Text("tool_name"), in.Text("tool_use_id"), "")
	case "PostToolUseFailure":
		c.endTool(in.Text("tool_name"), in.Text("tool_use_id"), in.Text("error"))
		if string(in.Get("is_interrupt")) == "true" {
			c.events = append(c.events, c.turnCompleted("interrupted", c.turn, ""))
		}
	case "PostToolBatch":
		c.replyAs = asContext
		c.identify(c.Session, c.kind, c.turn, c.hash(string(in.Get("tool_calls"))))
	case "PermissionRequest":
		c.askClaudePermission()
	case "PermissionDenied":
		c.endTool(in.Text("tool_name"), in.Text("tool_use_id"), cmp.Or(in.Text("reason"), "denied"))
	case "Notification":
		c.handleNotification()
	case "Elicitation":
		c.addRepeatable("waiting_for_input", "prompt", in.Text("message"))
	case "ElicitationResult":
		c.resumeThinking()
	case "PreCompact":
		if in.Text("trigger") == "manual" && c.turn != "" {
			c.interruptOpen(c.turn) // somebody typed /compact at the prompt
		}
		c.changeState("thinking", "compacting")
	case "PostCompact":
		activity := "thinking"
		if in.Text("trigger") == "manual" {
			activity = "idle"
		}
		c.changeState(activity, "")
	case "FileChanged":
		c.isWake = true
	case "TeammateIdle":
		if in.Text("teammate_name") == string(c.o.Box.Agent()) { // another teammate has its own hooks
			c.ProvesReceipt, c.replyAs, c.IsAmbiguous = true, onStderr, true
			c.endEvents = append(c.endEvents, c.turnIdle(c.turn))
		}
	}
}

func (c *call) handlePrompt() {
	prompt := c.in.Text("prompt")
	c.replyAs, c.Shown = asContext, shown(prompt)
	if c.tool == Claude { // an interrupt before the first word of the answer removes a prompt, with what was added to it
		c.Forgets = c.kind + " "
		if len(c.Shown) > 0 { // of mail that comes at once each has a prompt, which looks like that to the next
			c.replyAs = none
		}
	}
	c.startTurn(personsPrompt(prompt))
}

// handleStop ends the turn. Mail may continue it, but not twice in a row.
func (c *call) handleStop() {
	active := "again"
	if c.isFirstStop() {
		active, c.replyAs = "first", asBlock
	}
	c.identify(c.Session, c.kind, c.turn, active)
	end := c.turnCompleted("completed", c.turn, c.in.Text("last_assistant_message"))
	// A background task wakes the agent again.
	var tasks []struct{ Status string }
	json.Unmarshal(c.in.Get("background_tasks"), &tasks)
	running := 0
	for _, task := range tasks {
		if !slices.Contains([]string{"completed", "failed", "killed"}, task.Status) {
			running++
		}
	}
	if running > 0 {
		c.endEvents = append(c.endEvents, end.With("background", running))
	} else {
		c.endEvents = append(c.endEvents, end, c.turnIdle(c.turn))
	}
}

// handleStopFailure ends the turn that an error of the model's service has ended, such as a usage limit.
func (c *call) handleStopFailure() {
	what, details := c.in.Text("error"), cmp.Or(c.in.Text("error_details"), c.in.Text("last_assistant_message"))
	c.addEvent(wire.StreamError, "", "error_summary", strings.Trim(what+": "+details, ": "))
	c.endTurn("failed", c.turn, "")
	if end := agents.LimitEnd(details, c.Now, c.Now); what == "rate_limit" && !end.IsZero() && !c.hasRunner() { // a runner reads it
		c.turn = "" // which is over
		c.changeState("limited", details, "until", end.UTC().Format(time.RFC3339))
	}
}

func (c *call) handleSessionStart() {
	source := c.in.Text("source")
	c.replyAs, c.wantsPrimer, c.IsNewProgram = asContext, true, source != "compact"
	if c.tool == Claude && c.o.Wakes != nil {
		c.watch = watched(filepath.Join(c.o.Box.Path(), "inbox"))
	}
	if c.IsNewProgram {
		c.turn = "" // the prompt may be /clear, to which the model says nothing
	}
	if source == "resume" { // a new program; after any other source the report may be a repeat, or late
		c.interruptOpen("")
	}
	c.startSession(source)
}

func (c *call) resumeThinking(more ...string) {
	if c.lastSession().Turn.IsOpen() {
		c.changeState("thinking", "", more...)
	}
}

func (c *call) handleNotification() {
	message := c.in.Text("message")
	kind := c.in.Text("notification_type")
	if c.subagent != "" && !strings.HasSuffix(kind, "permission_prompt") {
		return
	}
	switch kind {
	case "permission_prompt", "worker_permission_prompt":
		c.askPermission("", message)
	case "elicitation_dialog", "elicitation_url_dialog", "agent_needs_input":
		c.addRepeatable("waiting_for_input", "prompt", message)
	case "elicitation_complete", "elicitation_response":
		c.resumeThinking()
	case "idle_prompt":
		last := c.lastSession().Turn
		if !last.IsOpen() || c.turn == "" || c.turn == last.ID { // else another turn has begun since
			c.interruptOpen("")
			c.events = append(c.events, c.turnIdle(cmp.Or(c.turn, last.ID)))
		}
	}
}

// handleSubagentEvent handles a call of or about a sub-agent that asks for nothing. It only shows that a tool which
// ran, or was denied, no longer waits for a permission.
func (c *call) handleSubagentEvent() {
	if !slices.Contains([]string{"PostToolUse", "PostToolUseFailure", "PermissionDenied"}, c.kind) {
		return
	}
	w, tool := c.lastSession().Waiting(), c.in.Text("tool_name")
	isAnswered, id := c.lastSession().Activity == reducer.Confirming && (w == nil || w.Tool == "" || w.Tool == tool), ""
	if w != nil && !c.hasRunner() { // whose questions the screen answers
		id = w.ID
	}
	switch {
	case isAnswered && c.isInBackground():
		c.turn = ""
		c.changeState("idle", "", "id", id)
	case isAnswered:
		c.changeState("tool_running", c.subagent, "id", id)
	}
}

// isInBackground reports whether the call is of a sub-agent that works on after the agent's turn. Then what it asks
// does not reopen that turn.
func (c *call) isInBackground() bool {
	return c.subagent != "" && slices.Contains(c.lastSession().EndedTurns, c.turn)
}
