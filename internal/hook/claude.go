package hook

import "strings"

// claude understands the hooks of Claude Code (2.1: protocols of its settings,
// and what the program was seen to send).
//
// All events of one prompt bear its prompt_id, which is the turn's id here.
// There is no hook for an interrupt: a new prompt, the end of the session or
// an idle prompt with the turn still open show it.
func (c *call) claude() {
	in := c.in
	event := in.text("hook_event_name")
	c.names(in.text("session_id"), event, in.text("prompt_id"))
	if c.inSubagent() {
		c.subagent()
		return
	}
	tool, id := in.text("tool_name"), in.text("tool_use_id")
	switch event {
	case "UserPromptSubmit":
		c.shows, c.replyAs, c.starts = true, asContext, aTurn
		c.begin(in.text("prompt"))

	case "Stop":
		c.stop()
		c.ending = append(c.ending, c.answered("completed", c.turn, in.text("last_assistant_message")))
		// What runs in the background wakes it again.
		if len(in.each("background_tasks")) == 0 {
			c.ending = append(c.ending, c.idle(c.turn))
		}

	case "StopFailure":
		summary := in.text("error")
		if more := in.text("error_details", "last_assistant_message"); more != "" {
			summary = strings.TrimPrefix(summary+": "+more, ": ")
		}
		c.fails(summary)
		c.add(c.over("failed", c.turn))
		c.add(c.idle(c.turn))

	case "SessionStart":
		c.sessionStart()

	case "SessionEnd":
		c.closes(in.text("reason"))

	case "PreToolUse":
		c.shows = true
		c.toolBegins(tool, id)

	case "PostToolUse":
		c.shows = true
		c.toolEnds(tool, id, "")

	case "PostToolUseFailure":
		c.shows = true
		c.toolEnds(tool, id, in.text("error"))
		if in.is("is_interrupt") {
			c.add(c.over("interrupted", c.turn))
		}

	case "PostToolBatch":
		c.shows, c.replyAs = true, asContext
		var ids []string
		for _, raw := range in.each("tool_calls") {
			one, _ := parse(raw)
			ids = append(ids, one.text("tool_use_id"))
		}
		c.names(c.session, event, c.turn, c.hash(ids...))

	case "PermissionRequest":
		c.shows = true
		c.asks(tool, about(tool, in.within("tool_input"), in.raw("tool_input")), "")

	case "PermissionDenied":
		c.shows = true
		c.toolEnds(tool, id, or(in.text("reason"), "denied"))

	case "Notification":
		c.notification()

	case "Elicitation":
		c.shows = true
		c.wants(in.text("message"))

	case "ElicitationResult":
		c.shows = true
		c.goesOn()

	case "PreCompact":
		c.compacts()

	case "PostCompact":
		c.compacted()

	case "TeammateIdle":
		// Of the others, others speak.
		if in.text("teammate_name") == string(c.o.Box.Agent()) {
			c.shows, c.replyAs, c.loose = true, onStderr, true
			c.ending = append(c.ending, c.idle(c.turn))
		}
	}
}

// stop is the end of a turn that mail may continue, but not twice in a row.
func (c *call) stop() {
	c.shows = true
	active := "first"
	if raw := c.in.raw("stop_hook_active"); raw == nil || string(raw) == "false" {
		c.replyAs = asBlock
	} else {
		active = "again"
	}
	c.names(c.session, c.kind, c.turn, active)
}

// sessionStart is what Claude Code and Codex say alike.
func (c *call) sessionStart() {
	source := c.in.text("source")
	c.replyAs, c.starts = asContext, aSession
	if source == "compact" { // in the middle of a session
		c.shows = true
	} else {
		c.begins = true
		c.cutShort("")
	}
	c.opens(source)
}

// compacts is the beginning of compacting. Who asks for it does so at the
// prompt: a turn that is still open was interrupted.
func (c *call) compacts() {
	c.shows = true
	if c.in.text("trigger") == "manual" && c.turn != "" {
		c.cutShort(c.turn)
	}
	c.does("thinking", "compacting")
}

// compacted is the end of compacting: of one that a person asked for, the
// program is idle after it.
func (c *call) compacted() {
	c.shows = true
	if c.in.text("trigger") == "manual" {
		c.does("idle", "")
	} else {
		c.does("thinking", "")
	}
}

// goesOn says that what was waited for has come.
func (c *call) goesOn() {
	if c.now().Open {
		c.does("thinking", "")
	}
}

func (c *call) notification() {
	message := c.in.text("message")
	switch c.in.text("notification_type") {
	case "permission_prompt", "worker_permission_prompt":
		c.asks("", message, "")
	case "elicitation_dialog", "elicitation_url_dialog", "agent_needs_input":
		c.wants(message)
	case "elicitation_complete", "elicitation_response":
		c.goesOn()
	case "idle_prompt":
		last := c.now()
		if last.Open && c.turn != "" && c.turn != last.ID {
			return // it waited then, and another turn has begun since
		}
		c.cutShort("")
		c.add(c.idle(or(c.turn, last.ID)))
	}
}

// subagent is a call from inside a sub-agent, or about one. It says nothing of
// the agent's turn, except that a permission dialog blocks the agent, and that
// a tool which has run, or may not, waits for no permission any more.
func (c *call) subagent() {
	in := c.in
	tool := in.text("tool_name")
	who := strings.TrimSpace("subagent " + in.text("agent_type"))
	switch c.kind {
	case "PermissionRequest":
		c.asks(tool, about(tool, in.within("tool_input"), in.raw("tool_input")), who)
	case "Notification":
		switch in.text("notification_type") {
		case "permission_prompt", "worker_permission_prompt":
			c.asks("", in.text("message"), who)
		}
	case "PostToolUse", "PostToolUseFailure", "PermissionDenied":
		if t := c.now(); t.Blocked && (t.Tool == "" || tool == "" || t.Tool == tool) {
			c.does("tool_running", who)
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
