package hook

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// showsTaken are the events that come only when the program has taken what it was told before.
var showsTaken = map[string]bool{
	"UserPromptSubmit": true, "Stop": true, "PreToolUse": true, "PostToolUse": true, "PostToolUseFailure": true, "PostToolBatch": true,
	"PermissionRequest": true, "PermissionDenied": true, "Elicitation": true, "ElicitationResult": true, "PreCompact": true, "PostCompact": true,
}

// beginsTurn are the events at which mail that has expired or was superseded is shown as well.
var beginsTurn = map[string]bool{"UserPromptSubmit": true, "SessionStart": true, "BeforeAgent": true}

// claude understands the hooks of Claude Code (2.1). All events of one prompt bear its prompt_id, which
// is the turn's id here. There is no hook for an interrupt: a new prompt, the end of the session or an
// idle prompt with the turn still open show it.
func (c *call) claude() {
	c.names(c.in.Text("session_id"), c.in.Text("hook_event_name"), c.in.Text("prompt_id"))
	c.shared()
}

func (c *call) shared() {
	in := c.in
	if id := in.Get("agent_id"); id != nil && string(id) != `""` {
		c.who = strings.TrimSpace("subagent " + in.Text("agent_type"))
	}
	if c.who != "" && c.kind != "PermissionRequest" && c.kind != "Notification" {
		c.subagent()
		return
	}
	c.Shows = c.who == "" && showsTaken[c.kind]
	switch c.kind {
	case "UserPromptSubmit":
		c.replyAs = asContext
		c.begin(in.Text("prompt"))
	case "Stop": // mail may continue the turn, but not twice in a row
		active := "again"
		if c.isFirstStop() {
			active, c.replyAs = "first", asBlock
		}
		c.names(c.Session, c.kind, c.turn, active)
		c.ending = append(c.ending, c.over("completed", c.turn, in.Text("last_assistant_message")))
		// What runs in the background wakes it again.
		var background []json.RawMessage
		json.Unmarshal(in.Get("background_tasks"), &background)
		if len(background) == 0 {
			c.ending = append(c.ending, c.idle(c.turn))
		}
	case "StopFailure":
		c.tell(wire.StreamFailed, "", "error_summary", strings.Trim(in.Text("error")+": "+cmp.Or(in.Text("error_details"), in.Text("last_assistant_message")), ": "))
		c.add(c.over("failed", c.turn, ""))
		c.add(c.idle(c.turn))
	case "SessionStart":
		c.sessionStart()
	case "SessionEnd":
		c.closes(in.Text("reason"))
	case "PreToolUse":
		c.toolBegins(in.Text("tool_name"), in.Text("tool_use_id"))
	case "PostToolUse":
		c.toolEnds(in.Text("tool_name"), in.Text("tool_use_id"), "")
	case "PostToolUseFailure":
		c.toolEnds(in.Text("tool_name"), in.Text("tool_use_id"), in.Text("error"))
		if string(in.Get("is_interrupt")) == "true" {
			c.add(c.over("interrupted", c.turn, ""))
		}
	case "PostToolBatch":
		c.replyAs = asContext
		var ids []string
		var calls []struct {
			ID string `json:"tool_use_id"`
		}
		json.Unmarshal(in.Get("tool_calls"), &calls)
		for _, one := range calls {
			ids = append(ids, one.ID)
		}
		c.names(c.Session, c.kind, c.turn, c.hash(ids...))
	case "PermissionRequest":
		c.asks(in.Text("tool_name"), cmp.Or(about(in.Get("tool_input")), string(in.Get("tool_input"))))
	case "PermissionDenied":
		c.toolEnds(in.Text("tool_name"), in.Text("tool_use_id"), cmp.Or(in.Text("reason"), "denied"))
	case "Notification":
		c.notification()
	case "Elicitation":
		c.tellAnew("waiting_for_input", "prompt", in.Text("message"))
	case "ElicitationResult":
		c.goesOn()
	case "PreCompact":
		if in.Text("trigger") == "manual" && c.turn != "" {
			c.cutShort(c.turn) // it was asked for at the prompt
		}
		c.does("thinking", "compacting")
	case "PostCompact":
		activity := "thinking"
		if in.Text("trigger") == "manual" {
			activity = "idle"
		}
		c.does(activity, "")
	case "TeammateIdle":
		// Of the others, others speak.
		if in.Text("teammate_name") == string(c.o.Box.Agent()) {
			c.Shows, c.replyAs, c.Loose = true, onStderr, true
			c.ending = append(c.ending, c.idle(c.turn))
		}
	}
}

func (c *call) sessionStart() {
	source := c.in.Text("source")
	isNew := source != "compact"
	c.replyAs, c.primes, c.Shows, c.Begins = asContext, true, !isNew, isNew
	if source == "resume" { // a new program; else its start is heard again, or late
		c.cutShort("")
	}
	c.opens(source)
}

func (c *call) goesOn(more ...string) {
	if c.lastTurn().IsOpen() {
		c.does("thinking", "", more...)
	}
}

func (c *call) notification() {
	message := c.in.Text("message")
	kind := c.in.Text("notification_type")
	if c.who != "" && !strings.HasSuffix(kind, "permission_prompt") {
		return
	}
	switch kind {
	case "permission_prompt", "worker_permission_prompt":
		c.asks("", message)
	case "elicitation_dialog", "elicitation_url_dialog", "agent_needs_input":
		c.tellAnew("waiting_for_input", "prompt", message)
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

// subagent is a call from inside a sub-agent, or about one, that asks for nothing. It says nothing of the turn, except
// that a tool which has run, or may not, waits for no permission any more.
func (c *call) subagent() {
	if !slices.Contains([]string{"PostToolUse", "PostToolUseFailure", "PermissionDenied"}, c.kind) {
		return
	}
	w, tool := c.lastTurn().Waiting(), c.in.Text("tool_name")
	if c.isBlocked() && (w == nil || w.Tool == "" || tool == "" || w.Tool == tool) {
		c.does("tool_running", c.who)
	}
}
