package hook

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// codex parses a hook call of Codex (0.169), whose hooks are like those of Claude Code: every event of a turn has its
// turn_id, and there is an event for an interrupt. A session is a thread. Failures are not reported.
func (c *call) codex() {
	in := c.in
	c.answersAlways = true // some versions take empty output for an error
	c.KeepsPushed = true   // its server keeps a queue, and begins the session with the first prompt, which may be from there
	c.identify(in.Text("session_id"), in.Text("hook_event_name"), in.Text("turn_id"))
	c.thread = c.Session
	c.handleEvent()
	switch {
	case c.subagent != "":
	case c.kind == "Interrupt":
		c.endTurn("interrupted", c.turn, "")
	case c.kind == "PostToolUse":
		c.replyAs = asContext
		if in.Text("tool_use_id") != "" {
			c.identify(c.Session, c.kind, c.turn, in.Text("tool_use_id"))
		}
	}
}

// codexNotify parses Codex's notification at the end of a turn. Beside hooks it repeats their Stop, perhaps later.
// Alone it also reports the turn's beginning, with the event_id that it has from UserPromptSubmit.
func (c *call) codexNotify() {
	c.identify(c.in.Text("thread-id"), c.in.Text("type"), c.in.Text("turn-id"))
	c.thread = c.in.Text("thread-id")
	if c.kind != "agent-turn-complete" {
		return
	}
	// A runner reports turns by the screen, under ids of its own; and where another turn is open, there are hooks.
	t := c.lastTurn()
	isKnown := c.turn == "" || c.turn == t.ID || slices.Contains(t.Ended, c.turn)
	if !isKnown && !t.IsOpen() && !c.hasRunner() {
		var prompts []string
		json.Unmarshal(c.in.Get("input-messages"), &prompts)
		c.addEvent(wire.TurnStarted, c.turn, "prompt", wire.Clip(strings.Join(prompts, "\n"), maxPrompt))
	}
	c.endTurn("completed", c.turn, c.in.Text("last-assistant-message"))
}
