package codex

import (
	"encoding/json"
	"slices"
	"strconv"
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
	c.Identify(c.Session, c.Kind, turnOf(c))
	c.Thread = c.Session
	closeQuestions(c)
	claude.HandleEvent(c)
	switch {
	case c.Kind == "PermissionRequest":
		askRules(c)
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

// turnOf returns the id of the turn that a call is of. Codex's server may go on with what is in its queue under the id of the turn
// that has just ended. That is a turn of its own, which has a number behind the id.
func turnOf(c *agents.Call) string {
	last := c.LastSession()
	first, number, _ := strings.Cut(last.Turn.ID, agents.Again)
	switch hasEnded := slices.Contains(last.EndedTurns, last.Turn.ID); {
	case c.Turn == "" || first != c.Turn:
		return c.Turn
	case hasEnded && c.Kind == "UserPromptSubmit":
		n, _ := strconv.Atoi(number)
		return first + agents.Again + strconv.Itoa(max(n, 1)+1)
	}
	return last.Turn.ID
}

// closeQuestions reports that what an earlier hook has told of was answered at the terminal: that has no hook of its own, but
// the tool has run since, or the turn has gone on.
func closeQuestions(c *agents.Call) {
	if !slices.Contains([]string{"PostToolUse", "UserPromptSubmit", "Stop", "Interrupt"}, c.Kind) || c.HasRunner() {
		return
	}
	for _, w := range c.LastSession().Requests {
		if isOver := c.Kind != "PostToolUse" || w.Tool == c.In.Text("tool_name"); isOver && wire.IsID(w.ID) {
			c.ChangeState("thinking", "", wire.FieldID, w.ID)
		}
	}
}

// network begins what a request describes that is for the network, and not to run the command that wants it (0.171.0).
const network = "network-access "

// askRules has the rules decide on a request, for as long as this hook runs no dialog is open. What they leave is for whoever
// answers the server's request.
func askRules(c *agents.Call) {
	if !c.MayAsk {
		return
	}
	last := len(c.Events) - 1
	arguments := c.In.Get("tool_input")
	p := &agents.Permission{Event: c.Events[last], Tool: c.In.Text("tool_name"), Prompt: c.Events[last].Text("prompt"), Input: string(arguments)}
	if p.IsCommand = p.Tool == "Bash"; p.IsCommand {
		var in struct{ Command, Description string }
		p.IsRisky = json.Unmarshal(arguments, &in) != nil || in.Command == "" || strings.HasPrefix(in.Description, network)
		p.Input = in.Command
	}
	c.Events, c.Permission = c.Events[:last], p
}
