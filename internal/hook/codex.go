package hook

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// codex understands the hooks of Codex (0.169), which are made like those of Claude Code: every event of a turn bears
// its turn_id, and there is one for an interrupt. A session is a thread. Failures are not said.
func (c *call) codex() {
	in := c.in
	c.answersAlways = true // nothing at all is taken for a mistake by some versions
	c.names(in.Text("session_id"), in.Text("hook_event_name"), in.Text("turn_id"))
	c.thread = c.Session
	c.shared()
	switch {
	case c.who != "":
	case c.kind == "Interrupt":
		c.add(c.over("interrupted", c.turn, ""))
		c.add(c.idle(c.turn))
	case c.kind == "PostToolUse":
		c.replyAs = asContext
		if in.Text("tool_use_id") != "" {
			c.names(c.Session, c.kind, c.turn, in.Text("tool_use_id"))
		}
	}
}

// codexNotify understands what Codex calls after a turn where it has no hooks: the one type there is.
// Beside hooks it says what Stop said, perhaps late; alone it also tells of the turn's beginning.
func (c *call) codexNotify() {
	c.names(c.in.Text("thread-id"), c.in.Text("type"), c.in.Text("turn-id"))
	c.thread = c.in.Text("thread-id")
	if c.kind != "agent-turn-complete" {
		return
	}
	if c.isFirstToTell() {
		var prompts []string
		json.Unmarshal(c.in.Get("input-messages"), &prompts)
		prompt := wire.Clip(strings.Join(prompts, "\n"), maxPrompt)
		c.tell(wire.TurnStarted, c.turn, "prompt", prompt) // has the event_id that it has from UserPromptSubmit
	}
	c.add(c.over("completed", c.turn, c.in.Text("last-assistant-message")))
	c.add(c.idle(c.turn))
}

// isFirstToTell reports whether nothing has told of the turn that is over. A runner tells of turns by the screen, under
// names of its own; and where another turn is open, hooks tell.
func (c *call) isFirstToTell() bool {
	t := c.lastTurn()
	isKnown := c.turn == "" || c.turn == t.ID || slices.Contains(t.Ended, c.turn)
	return !isKnown && !t.IsOpen() && !c.hasRunner()
}
