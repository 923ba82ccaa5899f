package cmdline

import (
	"errors"
	"math"
	"strings"
	"time"
)

var errDuration = errors.New("not a duration such as 30s, 2h, 7d or 1d12h")

// ParseDuration reads durations as Go writes them, and days of 24 hours in
// front: "30s", "7d", "1d12h", "1.5d", "0". A sign is refused.
func ParseDuration(s string) (time.Duration, error) {
	if s == "" || strings.ContainsAny(s, "+-") {
		return 0, errDuration
	}
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		days, rest = "", s
	}
	var total time.Duration
	if ok {
		// time.ParseDuration would take "2m3" in "2m3d" for minutes and hours.
		if strings.Trim(days, ".0123456789") != "" {
			return 0, errDuration
		}
		d, err := time.ParseDuration(days + "h")
		if err != nil || d > math.MaxInt64/24 {
			return 0, errDuration
		}
		total = d * 24
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d > math.MaxInt64-total {
			return 0, errDuration
		}
		total += d
	}
	return total, nil
}
