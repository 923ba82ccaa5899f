package reducer

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// clip cuts a text to at most so many bytes, at a character's end. What is not
// UTF-8 becomes U+FFFD.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// shortID is an id as it is kept. One that is too long is cut and gets a hash of
// the whole, so that it differs from others that begin alike.
func shortID(id string) string {
	if clip(id, maxID) == id {
		return id
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return clip(id, maxID-17) + fmt.Sprintf("~%016x", h.Sum64())
}

// compactJSON is a JSON value as encoding/json writes it; nil for none and null.
func compactJSON(raw json.RawMessage) json.RawMessage {
	b, err := json.Marshal(raw)
	if err != nil || string(b) == "null" {
		return nil
	}
	return b
}

// jsonTime is a time as its JSON gives it back; zero for one that JSON cannot
// write.
func jsonTime(t time.Time) time.Time {
	t = t.UTC().Round(0)
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// remember appends an id that the list does not have. Of too many the oldest goes.
func remember(ids []string, id string, most int) []string {
	if id == "" || slices.Contains(ids, id) {
		return ids
	}
	if len(ids) >= most {
		ids = ids[len(ids)-most+1:]
	}
	return append(ids, id)
}

// without is the list without one element; nil when none is left, as JSON gives it
// back.
func without[T any](list []T, i int) []T {
	if len(list) == 1 {
		return nil
	}
	return slices.Delete(list, i, i+1)
}

// addUp is the sum, or the largest number there is.
func addUp(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
