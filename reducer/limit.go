package reducer

import (
	"slices"

	"github.com/agentteammail/atm/wire"
)

// The longest lists of a State, and its longest texts in bytes.
const (
	maxTurns, maxEventIDs = 3, 512  // of one agent
	maxEnded, maxCalls    = 32, 12  // turns of one session; calls of one turn, started and ended
	maxRequests           = 3       // open at once
	maxID, maxDetail      = 80, 120 // maxID is also for names
	maxText               = 300     // of a tool's input, an error
	maxPrompt, maxOptions = 400, 3000
)

// shortID returns an id, or the end of one that is too long.
func shortID(id string) string { return wire.Clip(id[max(0, len(id)-maxID):], maxID) }

// remember appends an id unless it is in the list. If there are too many, the oldest goes.
func remember(ids []string, id string, most int) []string {
	if id == "" || slices.Contains(ids, id) {
		return ids
	}
	ids = append(ids, id)
	return ids[max(0, len(ids)-most):]
}

// forget removes an id. An empty list becomes nil, as JSON gives it back.
func forget(ids []string, id string) []string {
	if ids = slices.DeleteFunc(ids, func(s string) bool { return s == id }); len(ids) == 0 {
		return nil
	}
	return ids
}
