package agents

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// A Told is a figure of a usage event, under the name of its field; nil, and null, is none.
type Told struct {
	Field string
	Value json.RawMessage
}

// AddUsage reports what the conversation has used so far. The same figures again are the same event. The log is where what
// is no figure counts for nothing, so only what is not short is left out here.
func (c *Call) AddUsage(all ...Told) {
	var key strings.Builder
	told := all[:0:0]
	for _, one := range all {
		if len(one.Value) > 0 && len(one.Value) <= maxFigure && string(one.Value) != "null" {
			fmt.Fprintf(&key, "%s=%s ", one.Field, one.Value)
			told = append(told, one)
		}
	}
	if len(told) == 0 {
		return
	}
	e := c.NewEvent(wire.Usage, key.String())
	for _, one := range told {
		e = e.With(one.Field, one.Value)
	}
	c.Events = append(c.Events, e)
}

const maxFigure = 32 // bytes of a number, or of a currency
