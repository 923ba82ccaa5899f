package driver

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LimitEnd returns when a usage limit ends by its notice, which was on the screen first at that time; zero: the notice
// does not say. A minute is added, because programs leave out the seconds.
func LimitEnd(notice string, seen time.Time) time.Time {
	m := limitTime.FindStringSubmatch(notice)
	if m == nil {
		return time.Time{}
	}
	month, day, year, hour, minute, half, zone := m[1], m[2], m[3], m[4], m[5], m[6], m[7]
	if where, err := time.LoadLocation(zone); err == nil && zone != "" {
		seen = seen.In(where)
	}
	h, _ := strconv.Atoi(hour)
	mins, _ := strconv.Atoi(minute)
	h %= 12
	if strings.EqualFold(half, "pm") {
		h += 12
	}
	y, mon, d := seen.Date()
	if month == "" {
		end := time.Date(y, mon, d, h, mins+1, 0, 0, seen.Location())
		if end.Before(seen) {
			end = end.AddDate(0, 0, 1)
		}
		return end
	}
	at, err := time.Parse("Jan 2", month+" "+day)
	if err != nil {
		return time.Time{}
	}
	if year != "" {
		y, _ = strconv.Atoi(year)
	} else if at.Month() < mon { // at the end of a year
		y++
	}
	return time.Date(y, at.Month(), at.Day(), h, mins+1, 0, 0, seen.Location())
}

// limitTime matches "resets 2:21pm (UTC)", "resets Nov 27, 3pm (Europe/Paris)" and "try again at Nov 29th, 2026 1:42 PM".
var limitTime = regexp.MustCompile(`(?:resets|again)(?: at)? (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:,| at)? )?` +
	`(\d{1,2})(?::(\d{2}))? ?([AaPp][Mm])\b(?: \(([\w/+-]+)\))?`)
