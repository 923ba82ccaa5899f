package hook

// codex understands the hooks of Codex (0.169), which are made like those of
// Claude Code: every event of a turn bears its turn_id, and there is one for an
// interrupt. A session is a thread. Failures are not said.
func (c *call) codex() {
	in := c.in
	event := in.text("hook_event_name")
	if event == "" && in.text("type") != "" {
		c.codexNotify()
		return
	}
	c.quiet = "{}" // nothing at all is taken for a mistake by some versions
	c.names(in.text("session_id"), event, in.text("turn_id"))
	c.thread = c.session
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
		c.ending = append(c.ending, c.answered("completed", c.turn, in.text("last_assistant_message")), c.idle(c.turn))

	case "Interrupt":
		c.add(c.over("interrupted", c.turn))
		c.add(c.idle(c.turn))

	case "SessionStart":
		c.sessionStart()

	case "SessionEnd":
		c.closes(in.text("reason"))

	case "PreToolUse":
		c.shows = true
		c.toolBegins(tool, id)

	case "PostToolUse":
		c.shows, c.replyAs = true, asContext
		c.toolEnds(tool, id, "")
		if id != "" {
			c.names(c.session, event, c.turn, id)
		}

	case "PermissionRequest":
		c.shows = true
		c.asks(tool, about(tool, in.within("tool_input"), in.raw("tool_input")), "")

	case "PreCompact":
		c.compacts()

	case "PostCompact":
		c.compacted()
	}
}

// codexNotify understands what Codex calls after a turn where it has no hooks:
// the one type there is. Beside hooks it says what Stop said.
func (c *call) codexNotify() {
	in := c.in
	c.tool = Codex
	c.names(in.text("thread-id"), in.text("type"), in.text("turn-id"))
	c.thread = in.text("thread-id")
	if c.kind == "agent-turn-complete" {
		c.add(c.over("completed", c.turn))
		c.add(c.idle(c.turn))
	}
}
