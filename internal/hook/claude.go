package hook

import (
	"cmp"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// showsTaken are the events that come only when the program has taken what it was told before.
var showsTaken = map[string]bool{
	"UserPromptSubmit": true, "Stop": true, "PreToolUse": true, "PostToolUse": true, "PostToolUseFailure": true, "PostToolBatch": true,
	"PermissionRequest": true, "PermissionDenied": true, "Elicitation": true, "ElicitationResult": true, "PreCompact": true, "PostCompact": true,
	"BeforeAgent": true, "BeforeTool": true, "AfterTool": true,
}

// claude understands the hooks of Claude Code (2.1). All events of one prompt bear its prompt_id, which
// is the turn's id here. There is no hook for an interrupt: a new prompt, the end of the session or an
// idle prompt with the turn still open show it.
func (c *call) claude() {
	c.names(c.in.Session, c.in.Event, c.in.PromptID)
	c.shared()
}

// shared is what Claude Code and Codex say alike.
func (c *call) shared() {
	in := &c.in
	if in.isSubagent() {
		c.subagent()
		return
	}
	c.Shows = showsTaken[in.Event]
	switch in.Event {
	case "UserPromptSubmit":
		c.replyAs = asContext
		c.begin(in.Prompt)
	case "Stop": // mail may continue the turn, but not twice in a row
		active := "again"
		if in.isFirstStop() {
			active, c.replyAs = "first", asBlock
		}
		c.names(c.Session, c.kind, c.turn, active)
		c.ending = append(c.ending, c.over("completed", c.turn, in.Answer))
		// What runs in the background wakes it again.
		if len(in.Background) == 0 {
			c.ending = append(c.ending, c.idle(c.turn))
		}
	case "StopFailure":
		c.tell(wire.StreamFailed, "", "error_summary", strings.Trim(in.Error+": "+cmp.Or(in.ErrorDetails, in.Answer), ": "))
		c.add(c.over("failed", c.turn, ""))
		c.add(c.idle(c.turn))
	case "SessionStart":
		c.sessionStart()
	case "SessionEnd":
		c.closes(in.Reason)
	case "PreToolUse":
		c.toolBegins(in.Tool, in.ToolID)
	case "PostToolUse":
		c.toolEnds(in.Tool, in.ToolID, "")
	case "PostToolUseFailure":
		c.toolEnds(in.Tool, in.ToolID, in.Error)
		if in.IsInterrupt {
			c.add(c.over("interrupted", c.turn, ""))
		}
	case "PostToolBatch":
		c.replyAs = asContext
		var ids []string
		for _, one := range in.ToolCalls {
			ids = append(ids, one.ID)
		}
		c.names(c.Session, in.Event, c.turn, c.hash(ids...))
	case "PermissionRequest":
		c.asks(in.Tool, cmp.Or(about(in.ToolInput), string(in.ToolInput)), "")
	case "PermissionDenied":
		c.toolEnds(in.Tool, in.ToolID, cmp.Or(in.Reason, "denied"))
	case "Notification":
		c.notification()
	case "Elicitation":
		c.tell("waiting_for_input", "", "prompt", in.Message)
	case "ElicitationResult":
		c.goesOn()
	case "PreCompact":
		if in.Trigger == "manual" && c.turn != "" {
			c.cutShort(c.turn) // it was asked for at the prompt
		}
		c.does("thinking", "compacting")
	case "PostCompact":
		activity := "thinking"
		if in.Trigger == "manual" {
			activity = "idle"
		}
		c.does(activity, "")
	case "TeammateIdle":
		// Of the others, others speak.
		if in.Teammate == string(c.o.Box.Agent()) {
			c.Shows, c.replyAs, c.Loose = true, onStderr, true
			c.ending = append(c.ending, c.idle(c.turn))
		}
	}
}

// sessionStart is the beginning of a session, or of its rest after compacting.
func (c *call) sessionStart() {
	isNew := c.in.Source != "compact"
	c.replyAs, c.primes, c.Shows, c.Begins = asContext, true, !isNew, isNew
	if isNew {
		c.cutShort("")
	}
	c.opens(c.in.Source)
}

// goesOn says that what was waited for has come.
func (c *call) goesOn() {
	if c.lastTurn().IsOpen() {
		c.does("thinking", "")
	}
}

func (c *call) notification() {
	message := c.in.Message
	switch c.in.Notification {
	case "permission_prompt", "worker_permission_prompt":
		c.asks("", message, "")
	case "elicitation_dialog", "elicitation_url_dialog", "agent_needs_input":
		c.tell("waiting_for_input", "", "prompt", message)
	case "elicitation_complete", "elicitation_response":
		c.goesOn()
	case "idle_prompt":
		last := c.lastTurn()
		if !last.IsOpen() || c.turn == "" || c.turn == last.ID { // else another turn has begun since
			c.cutShort("")
			c.add(c.idle(cmp.Or(c.turn, last.ID)))
		}
	}
}

// subagent is a call from inside a sub-agent, or about one. It says nothing of the turn, except that a
// permission dialog blocks the agent, and that a tool which has run, or may not, waits for no
// permission any more.
func (c *call) subagent() {
	in := &c.in
	who := strings.TrimSpace("subagent " + in.AgentType)
	switch c.kind {
	case "PermissionRequest":
		c.asks(in.Tool, cmp.Or(about(in.ToolInput), string(in.ToolInput)), who)
	case "Notification":
		if in.Notification == "permission_prompt" || in.Notification == "worker_permission_prompt" {
			c.asks("", in.Message, who)
		}
	case "PostToolUse", "PostToolUseFailure", "PermissionDenied":
		if w := c.lastTurn().Waiting(); c.isBlocked() && (w == nil || w.Tool == "" || in.Tool == "" || w.Tool == in.Tool) {
			c.does("tool_running", who)
		}
	}
}
