package reducer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// shortID is an id as it is kept: of one that is too long the hash.
func shortID(id string) string {
	if wire.Clip(id, maxID) == id {
		return id
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(id)))
}

// jsonTime is a time as its JSON gives it back; zero for one that JSON cannot write.
func jsonTime(t time.Time) time.Time {
	if t = t.UTC().Round(0); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// remember appends an id that the list does not have. Of too many the oldest goes.
func remember(ids []string, id string, most int) []string {
	if id == "" || slices.Contains(ids, id) {
		return ids
	}
	ids = append(ids, id)
	return ids[max(0, len(ids)-most):]
}

// forget is the list without an id; nil when none is left, as JSON gives it back.
func forget(ids []string, id string) []string {
	if ids = slices.DeleteFunc(ids, func(s string) bool { return s == id }); len(ids) == 0 {
		return nil
	}
	return ids
}
