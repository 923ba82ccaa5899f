package cmdline

import (
	"testing"
	"time"
)

func TestParseAt(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 27, 14, 0, 0, 0, zone)
	for word, want := range map[string]string{
		"14:01":                     "2026-11-27T14:01:00+02:00",
		"14:00":                     "2026-11-28T14:00:00+02:00", // now is over
		"9:05":                      "2026-11-28T09:05:00+02:00",
		"23:59:59":                  "2026-11-27T23:59:59+02:00",
		"2026-12-01T09:00":          "2026-12-01T09:00:00+02:00",
		"2026-12-01 09:00":          "2026-12-01T09:00:00+02:00",
		"2026-11-27T12:30:00Z":      "2026-11-27T14:30:00+02:00",
		"2026-12-01T09:00:00-05:00": "2026-12-01T16:00:00+02:00",
		"9am":                       "2026-11-28T09:00:00+02:00",
		"4 PM":                      "2026-11-27T16:00:00+02:00",
		"noon":                      "2026-11-28T12:00:00+02:00",
		"tomorrow":                  "2026-11-28T14:00:00+02:00",
		"Tomorrow 9:30am":           "2026-11-28T09:30:00+02:00",
		"today 15:00":               "2026-11-27T15:00:00+02:00",
		"2026-12-01":                "2026-12-01T14:00:00+02:00",
	} {
		at, err := ParseAt(word, now)
		if got := at.In(zone).Format(time.RFC3339); err != nil || got != want {
			t.Errorf("%s: %s, %v, not %s", word, got, err, want)
		}
	}
	for _, word := range []string{"", "14", "25:00", "1pm tomorrow", "2h", "today", "today 9am", "2026-13-01T09:00", "2026-11-27T13:59", "2026-11-27T11:00:00Z", "12026-12-01T09:00"} {
		if at, err := ParseAt(word, now); err == nil {
			t.Errorf("%q: %s", word, at)
		}
	}
}
