package hook

import (
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/wire"
)

// refuseEdit refuses a call that edits what another member has claimed. The tool does not run, so its start is no event.
func (c *call) refuseEdit() {
	team := c.scope.Team
	for _, path := range c.WillEdit {
		claim, isClaimed := edits.ClaimedBy(team, path, c.Box.Agent())
		if isClaimed && c.scope.CheckAccepted() == nil {
			c.Refusal = fmt.Sprintf(`%s %s has claimed %s until %s. Do something else until then, or ask: atm send %s "…"%s`, agents.Prefix,
				claim.By, letter.Quote(edits.ShownPath(team, claim.Path), 300), letter.Stamp(claim.Until), claim.By, c.flags())
			c.Events = slices.DeleteFunc(c.Events, func(e wire.Event) bool { return e.Kind == wire.ToolCallStart })
			return
		}
	}
}
