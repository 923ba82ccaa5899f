package cmdline

import (
	"fmt"
	"strings"
	"time"
)

// ParseAt parses a time to come, by the clock and the zone of now: "14:00", which is tomorrow's if that has passed today,
// "2026-12-01T09:00" or RFC 3339.
func ParseAt(s string, now time.Time) (time.Time, error) {
	for _, form := range []string{"15:04", "15:04:05"} {
		if clock, err := time.Parse(form, s); err == nil {
			y, m, d := now.Date()
			at := time.Date(y, m, d, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
			if !at.After(now) {
				at = time.Date(y, m, d+1, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
			}
			return at, nil
		}
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		at, err := time.ParseInLocation(form, strings.Replace(s, " ", "T", 1), now.Location())
		switch {
		case err != nil:
		case !at.After(now):
			return at, fmt.Errorf("%s has passed", at.In(now.Location()).Format("2006-01-02 15:04:05"))
		case at.Year() > 9999:
			return at, fmt.Errorf("%q is too far away", s)
		default:
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 14:00, 2026-12-01T09:00 or 2026-12-01T09:00:00Z", s)
}
