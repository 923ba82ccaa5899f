package claude

import (
	"strconv"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/wire"
)

// parseStatus parses what Claude Code gives the command of its status line: the cost of the conversation so far, by its own
// estimate, and how full its context is. Of tokens it tells no totals in all versions, and its transcript has some of them
// before they are final.
//
// Source: https://code.claude.com/docs/en/statusline
func parseStatus(c *agents.Call) {
	c.Identify(c.In.Text("session_id"), "Status", "")
	window := c.In.Object("context_window")
	told := []agents.Told{{Field: wire.FieldContextSize, Value: window.Get("context_window_size")}}
	if now := window.Object("current_usage"); now != nil {
		var used uint64
		for _, part := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
			n, _ := strconv.ParseUint(string(now.Get(part)), 10, 40)
			used += n
		}
		told = append(told, agents.Told{Field: wire.FieldContextUsed, Value: strconv.AppendUint(nil, used, 10)})
	}
	if cost := c.In.Object("cost").Get("total_cost_usd"); cost != nil {
		told = append(told, agents.Told{Field: wire.FieldCost, Value: cost}, agents.Told{Field: wire.FieldCurrency, Value: wire.Quote("USD")})
	}
	c.AddUsage(told...)
}
