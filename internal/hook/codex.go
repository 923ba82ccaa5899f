package hook

// codex understands the hooks of Codex (0.169), which are made like those of Claude Code: every event
// of a turn bears its turn_id, and there is one for an interrupt. A session is a thread. Failures are
// not said.
func (c *call) codex() {
	in := &c.in
	c.answersAlways = true // nothing at all is taken for a mistake by some versions
	c.names(in.Session, in.Event, in.TurnID)
	c.thread = c.Session
	c.shared()
	switch {
	case in.isSubagent():
	case in.Event == "Interrupt":
		c.add(c.over("interrupted", c.turn, ""))
		c.add(c.idle(c.turn))
	case in.Event == "PostToolUse":
		c.replyAs = asContext
		if in.ToolID != "" {
			c.names(c.Session, in.Event, c.turn, in.ToolID)
		}
	}
}

// codexNotify understands what Codex calls after a turn where it has no hooks: the one type there is.
// Beside hooks it says what Stop said.
func (c *call) codexNotify() {
	c.tool = Codex
	c.names(c.in.NotifyID, c.in.Type, c.in.NotifyTurn)
	c.thread = c.in.NotifyID
	if c.kind == "agent-turn-complete" {
		c.add(c.over("completed", c.turn, ""))
		c.add(c.idle(c.turn))
	}
}
