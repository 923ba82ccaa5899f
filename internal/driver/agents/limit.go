package agents

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for machines without it, as containers are
	"unicode"
)

// LimitEnd returns when a usage limit ends by its notice, which may have been shown since shown; zero: the notice does not
// say, or not in a form that is understood. A minute is added, because programs leave out the seconds. A time of day is the
// next one after shown. It is local unless the notice names a zone. All programs use much the same words, so this is no
// vendor's; that a text is such a notice their driver files and hooks tell.
func LimitEnd(notice string, shown, now time.Time) time.Time {
	notice = strings.Map(func(r rune) rune { // a narrow no-break space stands before PM
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, notice)
	if m := limitUnix().FindStringSubmatch(notice); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(n, 0)
	}
	if m := limitSpan().FindStringSubmatch(notice); m != nil {
		return now.Add(spanOf(m[1]) + time.Minute)
	}
	m := limitTime().FindStringSubmatch(notice)
	if m == nil {
		return time.Time{}
	}
	weekday, month, day, year, hour, minute, half, zone := m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]+m[9]
	where, ok := zoneOf(zone)
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
	if h > 23 || mins > 59 || !ok {
		return time.Time{}
	}
	shown = shown.In(where)
	at := func(y int, mon time.Month, d int) time.Time { return time.Date(y, mon, d, h, mins+1, 0, 0, where) }
	y, mon, d := shown.Date()
	if month == "" {
		for at(y, mon, d).Before(shown) || weekday != "" && !strings.HasPrefix(at(y, mon, d).Weekday().String(), weekday) {
			d++
		}
		return at(y, mon, d)
	}
	date, err := time.Parse("Jan 2", month+" "+day)
	if err != nil {
		return time.Time{}
	}
	if year != "" {
		y, _ = strconv.Atoi(year)
	} else if date.Month() < mon { // at the end of a year
		y++
	}
	return at(y, date.Month(), date.Day())
}

// zoneOf returns the zone of a name as "Europe/Paris", "UTC", "UTC+2"; "" is the local one. Of an abbreviation as PDT nobody
// can tell which it is.
func zoneOf(name string) (where *time.Location, ok bool) {
	if name == "" {
		return time.Local, true
	}
	if m := limitOffset().FindStringSubmatch(name); m != nil {
		hours, _ := strconv.Atoi(m[1])
		minutes, _ := strconv.Atoi(m[1][:1] + m[2])
		return time.FixedZone(name, hours*3600+minutes*60), true
	}
	if name == "GMT" {
		name = "UTC"
	}
	where, err := time.LoadLocation(name)
	return where, err == nil && (name == "UTC" || strings.Contains(name, "/"))
}

// spanOf adds up "1 day 2 hours 5 minutes".
func spanOf(text string) (d time.Duration) {
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	for _, m := range limitUnit().FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		d += time.Duration(n) * units[m[2][0]]
	}
	return d
}

const (
	limitPart  = `(\d{1,3}) ?(d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?`
	limitWords = `(?:[Rr]esets?|[Aa]gain|[Rr]etry)`
)

var (
	// limitTime matches "resets 2:21pm (UTC)", "resets Nov 27, 3pm (Europe/Paris)", "resets at 14:30", "resets Thu 9am",
	// "resets on August 23, 2026 at 7:00 PM" and "try again at Nov 29th, 2026 1:42 PM PDT".
	limitTime = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(limitWords + `(?: at| on)? ` +
			`(?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? (?:at )?)?(?:([A-Z][a-z]{2})[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:,| at)* )?` +
			`(\d{1,2})(?::(\d{2}))?(?: ?([AaPp][Mm])\b)?(?: \(([\w/+:-]+)\)| ([A-Z]{3,4}(?:[+-]\d{1,2}(?::?\d\d)?)?)\b)?`)
	})
	limitOffset = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:UTC|GMT)?([+-]\d{1,2})(?::?(\d\d))?$`) })

	// limitSpan matches "try again in 5 days 22 hours 11 minutes", "resets in 2h 5m" and "Retry in 3h12m".
	limitSpan = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(limitWords + ` in ((?:` + limitPart + `(?:,? (?:and )?)?)+)(?:\W|$)`)
	})
	limitUnit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(limitPart) })

	// limitUnix matches "usage limit reached|1751140800".
	limitUnix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`limit reached\|(\d{10})\b`) })
)
