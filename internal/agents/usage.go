package agents

import (
	"encoding/json"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// A Figure is a field of a usage event with its value. nil and null mean that the program does not tell it.
type Figure struct {
	Field string
	Value json.RawMessage
}

const maxFigure = 32 // bytes of a number, or of a currency; what is longer is neither

// AddUsage reports what the conversation has used so far. The same figures again are the same event. Whoever reads the log
// ignores what is no number.
func (c *Call) AddUsage(all ...Figure) {
	var fields []Figure
	key := ""
	for _, f := range all {
		if len(f.Value) > 0 && len(f.Value) <= maxFigure && string(f.Value) != "null" {
			fields = append(fields, f)
			key += f.Field + "=" + string(f.Value) + " "
		}
	}
	if len(fields) == 0 {
		return
	}
	e := c.NewEvent(wire.Usage, strings.TrimSpace(key))
	for _, f := range fields {
		e = e.With(f.Field, f.Value)
	}
	c.Events = append(c.Events, e)
}
