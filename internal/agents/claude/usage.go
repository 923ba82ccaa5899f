package claude

import (
	"strconv"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/wire"
)

// parseStatus parses what Claude Code gives the command of its status line: the cost of the conversation so far, by its own
// estimate, and how full its context is. What its total_input_tokens mean differs between versions, and its transcript keeps
// the tokens of an answer as they were before it was complete: neither is read.
//
// Source: https://code.claude.com/docs/en/statusline
func parseStatus(c *agents.Call) {
	c.Identify(c.In.Text("session_id"), "Status", "")
	window := c.In.Object("context_window")
	figures := []agents.Figure{{Field: wire.FieldContextSize, Value: window.Get("context_window_size")}}
	if now := window.Object("current_usage"); now != nil {
		var used uint64
		for _, part := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
			if n, err := strconv.ParseUint(string(now.Get(part)), 10, 40); err == nil {
				used += n
			}
		}
		figures = append(figures, agents.Figure{Field: wire.FieldContextUsed, Value: strconv.AppendUint(nil, used, 10)})
	}
	if cost := c.In.Object("cost").Get("total_cost_usd"); cost != nil {
		figures = append(figures, agents.Figure{Field: wire.FieldCost, Value: cost}, agents.Figure{Field: wire.FieldCurrency, Value: wire.Quote("USD")})
	}
	c.AddUsage(figures...)
}
