package hook

import "cmp"

// codex understands the hooks of Codex (0.169), which are made like those of
// Claude Code: every event of a turn bears its turn_id, and there is one for an
// interrupt. A session is a thread. Failures are not said.
func (c *call) codex() {
	in := &c.in
	if in.Event == "" && in.Type != "" {
		c.codexNotify()
		return
	}
	c.answersAlways = true // nothing at all is taken for a mistake by some versions
	c.names(in.Session, in.Event, in.TurnID)
	c.thread = c.session
	if in.isSubagent() {
		c.subagent()
		return
	}
	c.shows = showsTaken[in.Event]
	switch in.Event {
	case "UserPromptSubmit":
		c.replyAs = asContext
		c.begin(in.Prompt)
	case "Stop":
		c.stop()
		c.ending = append(c.ending, c.over("completed", c.turn, in.Answer), c.idle(c.turn))
	case "Interrupt":
		c.add(c.over("interrupted", c.turn, ""))
		c.add(c.idle(c.turn))
	case "SessionStart":
		c.sessionStart()
	case "SessionEnd":
		c.closes(in.Reason)
	case "PreToolUse":
		c.toolBegins(in.Tool, in.ToolID)
	case "PostToolUse":
		c.replyAs = asContext
		c.toolEnds(in.Tool, in.ToolID, "")
		if in.ToolID != "" {
			c.names(c.session, in.Event, c.turn, in.ToolID)
		}
	case "PermissionRequest":
		c.asks(in.Tool, cmp.Or(about(in.ToolInput), string(in.ToolInput)), "")
	case "PreCompact":
		c.compacts()
	case "PostCompact":
		c.compacted()
	}
}

// codexNotify understands what Codex calls after a turn where it has no hooks:
// the one type there is. Beside hooks it says what Stop said.
func (c *call) codexNotify() {
	c.tool = Codex
	c.names(c.in.NotifyID, c.in.Type, c.in.NotifyTurn)
	c.thread = c.in.NotifyID
	if c.kind == "agent-turn-complete" {
		c.add(c.over("completed", c.turn, ""))
		c.add(c.idle(c.turn))
	}
}
