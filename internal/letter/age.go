package letter

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

const year = 365 * 24 * time.Hour

// Sent says how long ago a message was sent by its sender's clock, or how far the clock of another host is ahead.
func Sent(now time.Time, m *wire.Message) string {
	if ahead := m.SentAt.Sub(now); m.From.Host != "" && ahead > time.Minute && ahead < year {
		return "now, clock " + Span(ahead) + " ahead"
	}
	return Age(now, m.SentAt)
}

// Age says how long ago t was: "now", "5s ago", "4d ago", "in 5m"; the date if it is more than a year away.
func Age(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "at an unknown time"
	case d < -year, d > year:
		return t.Local().Format(time.DateOnly)
	case d < -time.Minute:
		return "in " + Span(-d)
	case d < time.Second:
		return "now"
	}
	return Span(d) + " ago"
}

// Ago is Age behind a word such as "last seen".
func Ago(now, t time.Time) string {
	if age := Age(now, t); age != "now" {
		return age
	}
	return "just now"
}

// Stamp formats a time for people, without the date if that is today.
func Stamp(t time.Time) string {
	return strings.TrimPrefix(t.Local().Format(time.DateTime), time.Now().Format(time.DateOnly)+" ")
}

// When formats a time to come for people: "today 14:00", "tomorrow 14:00", "2026-12-01 09:00"; with seconds if it has some.
func When(now, t time.Time) string {
	now, t = now.Local(), t.Local()
	clock := t.Format("15:04:05")
	if t.Second() == 0 {
		clock = t.Format("15:04")
	}
	for n, name := range []string{"today", "tomorrow"} {
		if t.Format(time.DateOnly) == now.AddDate(0, 0, n).Format(time.DateOnly) {
			return name + " " + clock
		}
	}
	return t.Format(time.DateOnly) + " " + clock
}

// Span formats a duration in its largest unit; one below 0 is 0s: the clock was set back.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Many formats a number of things: "1 file", "2 files".
func Many[N int | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Size formats a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return Many(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+512)/1024)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
