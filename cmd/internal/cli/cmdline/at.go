package cmdline

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// ParseAt parses a time to come, by the clock and the zone of now: "14:00", "9am" or "noon", which is tomorrow's if that has
// passed today; a day, "tomorrow" or "2026-12-01", at this time of it or, behind a blank or a T, at another; or RFC 3339.
func ParseAt(s string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return ahead(at, now)
	}
	if n := len(time.DateOnly); len(s) > n && s[n] == 'T' {
		s = s[:n] + " " + s[n+1:]
	}
	word, clock, _ := strings.Cut(s, " ")
	y, m, d := now.Date()
	day, notDay := time.Parse(time.DateOnly, word)
	isDay := true
	switch {
	case notDay == nil:
		y, m, d = day.Date()
	case strings.EqualFold(word, "tomorrow"):
		d++
	case !strings.EqualFold(word, "today"):
		isDay, clock = false, cmp.Or(s, "-")
	}
	of, err := now, error(nil)
	if clock != "" {
		of, err = parseClock(clock)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time such as 14:00, 9am, tomorrow, 2026-12-01T09:00 or 2026-12-01T09:00:00Z", s)
	}
	at := time.Date(y, m, d, of.Hour(), of.Minute(), of.Second(), 0, now.Location())
	if !isDay && !at.After(now) {
		at = time.Date(y, m, d+1, of.Hour(), of.Minute(), of.Second(), 0, now.Location())
	}
	return ahead(at, now)
}

func ahead(at, now time.Time) (time.Time, error) {
	if !at.After(now) {
		return at, fmt.Errorf("%s has passed", at.In(now.Location()).Format("2006-01-02 15:04:05"))
	}
	return at, nil
}

// parseClock parses a time of a day.
func parseClock(s string) (of time.Time, err error) {
	s = strings.NewReplacer(" ", "", "noon", "12:00", "midnight", "0:00").Replace(strings.ToLower(s))
	for _, form := range []string{"15:04", "15:04:05", "3:04pm", "3pm"} {
		if of, err = time.Parse(form, s); err == nil {
			return of, nil
		}
	}
	return of, err
}
