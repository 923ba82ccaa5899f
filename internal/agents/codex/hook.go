package codex

import (
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/claude"
)

// parse parses a hook call of Codex (0.169), whose hooks are like those of Claude Code: every event of a turn has its
// turn_id, and there is an event for an interrupt. A session is a thread. Failures are not reported.
func parse(c *agents.Call) {
	in := c.In
	c.AnswersAlways = true // some versions take empty output for an error
	c.KeepsPushed = true   // its server keeps a queue, and begins the session with the first prompt, which may be from there
	c.Identify(in.Text("session_id"), in.Text("hook_event_name"), in.Text("turn_id"))
	c.Thread = c.Session
	claude.HandleEvent(c)
	switch {
	case c.Subagent != "":
	case c.Kind == "Interrupt":
		addUsage(c)
		c.EndTurn("interrupted", c.Turn, "")
	case c.Kind == "Stop":
		addUsage(c)
	case c.Kind == "PostToolUse":
		c.ReplyAs = agents.AsContext
		if in.Text("tool_use_id") != "" {
			c.Identify(c.Session, c.Kind, c.Turn, in.Text("tool_use_id"))
		}
	}
}
