package agents

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LimitEnd returns when a usage limit ends by its notice, which was on the screen first at that time; zero: the notice
// does not say. A minute is added, because programs leave out the seconds. A time of day that has passed is that of the
// next day. It is local unless the notice names a zone.
func LimitEnd(notice string, seen time.Time) time.Time {
	if m := limitUnix.FindStringSubmatch(notice); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(n, 0)
	}
	if m := limitSpan.FindStringSubmatch(notice); m != nil {
		return seen.Add(spanOf(m[1]) + time.Minute)
	}
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
	if half != "" {
		h %= 12
	} else if minute == "" { // a number alone is no time
		return time.Time{}
	}
	if strings.EqualFold(half, "pm") {
		h += 12
	}
	if h > 23 || mins > 59 {
		return time.Time{}
	}
	y, mon, d := seen.Date()
	if month == "" {
		end := time.Date(y, mon, d, h, mins+1, 0, 0, seen.Location())
		if end.Before(seen) {
			end = time.Date(y, mon, d+1, h, mins+1, 0, 0, seen.Location())
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

// spanOf adds up "1 day 2 hours 5 minutes".
func spanOf(text string) (d time.Duration) {
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	for _, m := range limitUnit.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		d += time.Duration(n) * units[m[2][0]]
	}
	return d
}

const limitPart = `(\d{1,3}) ?(d|h|m|s)(?:ays?|ours?|in(?:ute)?s?|ec(?:ond)?s?)?\b`

var (
	// limitTime matches "resets 2:21pm (UTC)", "resets Nov 27, 3pm (Europe/Paris)", "resets at 14:30" and "try again at
	// Nov 29th, 2026 1:42 PM".
	limitTime = regexp.MustCompile(`(?:resets?|again)(?: at)? (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:,| at)? )?` +
		`(\d{1,2})(?::(\d{2}))?(?: ?([AaPp][Mm])\b)?(?: \(([\w/+-]+)\))?`)

	// limitSpan matches "try again in 5 days 22 hours 11 minutes" and "resets in 2h 5m".
	limitSpan = regexp.MustCompile(`(?:resets?|again) in ((?:` + limitPart + `(?:,? (?:and )?)?)+)`)
	limitUnit = regexp.MustCompile(limitPart)

	// limitUnix matches "Claude AI usage limit reached|1751140800".
	limitUnix = regexp.MustCompile(`limit reached\|(\d{10})\b`)
)
