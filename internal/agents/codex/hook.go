package codex

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/wire"
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

// parseNotify parses Codex's notification at the end of a turn. Beside hooks it repeats their Stop, perhaps later.
// Alone it also reports the turn's beginning, with the event_id that it has from UserPromptSubmit.
func parseNotify(c *agents.Call) {
	c.Transport = "notify"
	c.Identify(c.In.Text("thread-id"), c.In.Text("type"), c.In.Text("turn-id"))
	c.Thread = c.In.Text("thread-id")
	if c.Kind != "agent-turn-complete" {
		return
	}
	// A runner reports turns by the screen, under ids of its own; and where another turn is open, there are hooks.
	last := c.LastSession()
	isKnown := c.Turn == "" || c.Turn == last.Turn.ID || slices.Contains(last.EndedTurns, c.Turn)
	if !isKnown && !last.Turn.IsOpen() && !c.HasRunner() {
		var prompts []string
		json.Unmarshal(c.In.Get("input-messages"), &prompts)
		c.AddEvent(wire.TurnStarted, c.Turn, "prompt", wire.Clip(strings.Join(prompts, "\n"), agents.MaxPrompt))
	}
	c.EndTurn("completed", c.Turn, c.In.Text("last-assistant-message"))
}
