package reducer

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// The longest lists of a State, and its longest texts in bytes.
const (
	maxOthers, maxEventIDs = 2, 512  // of one agent
	maxEnded, maxCalls     = 32, 12  // turns of one session; calls of one turn, started and ended
	maxRequests            = 12      // open at once
	maxDrafts, maxGoals    = 100, 8  // of one agent
	maxBackground          = 999     // pieces of work
	maxID, maxDetail       = 80, 120 // maxID is also for names
	maxText                = 300     // of a tool's input, an error
	maxPrompt, maxOptions  = 400, 3000
)

// shortID returns an id, or its hash if it is too long.
func shortID(id string) string {
	if wire.Clip(id, maxID) == id {
		return id
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(id)))
}

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
