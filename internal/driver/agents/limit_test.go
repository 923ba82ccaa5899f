package agents

import (
	"testing"
	"time"
)

func TestLimitEnd(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	day := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, time.UTC)
	}
	seen := time.Date(2026, 11, 26, 13, 22, 30, 0, time.UTC)
	for notice, want := range map[string]time.Time{
		"You've hit your session limit · resets 2:21pm (UTC)":                    time.Date(2026, 11, 26, 14, 22, 0, 0, time.UTC),
		"You've hit your weekly limit · resets 1pm (UTC)":                        time.Date(2026, 11, 27, 13, 1, 0, 0, time.UTC),
		"You've hit your weekly limit · resets Nov 28, 3pm (Europe/Paris)":       time.Date(2026, 11, 28, 15, 1, 0, 0, paris),
		"You've hit your limit · resets Jan 2, 12:05am (UTC)":                    time.Date(2027, 1, 2, 0, 6, 0, 0, time.UTC),
		"You've hit your limit · resets Nov 28 at 3pm (UTC)":                     time.Date(2026, 11, 28, 15, 1, 0, 0, time.UTC),
		"You’ve hit your usage limit. Visit https:// x or try again at 6:42 PM.": time.Date(2026, 11, 26, 18, 43, 0, 0, time.UTC),
		"You’ve hit your usage limit, try again at Nov 29th, 2026 1:42 PM.":      time.Date(2026, 11, 29, 13, 43, 0, 0, time.UTC),
		"Limits will reset at 9:30 AM. View your usage details.":                 time.Date(2026, 11, 27, 9, 31, 0, 0, time.UTC),
		"You've hit your limit · resets at 14:30 (UTC)":                          time.Date(2026, 11, 26, 14, 31, 0, 0, time.UTC),
		"Claude usage limit reached ∙ resets 7pm":                                time.Date(2026, 11, 26, 19, 1, 0, 0, time.UTC),
		"resets 2:30am (America/New_York)":                                       day(11, 27, 7, 31),
		"resets 4pm (UTC+2)":                                                     day(11, 26, 14, 1),
		"resets 4pm (GMT-3:30)":                                                  day(11, 26, 19, 31),
		"resets 21:00 UTC":                                                       day(11, 26, 21, 1),
		"resets 4:04 PM":                                                         day(11, 26, 16, 5),
		"resets Sat 9am (UTC)":                                                   day(11, 28, 9, 1),
		"resets Thursday at 1pm (UTC)":                                           day(12, 3, 13, 1),
		"resets on December 23, 2026 at 7:00 PM (UTC)":                           day(12, 23, 19, 1),
		"Retry in 4hr":          seen.Add(4*time.Hour + time.Minute),
		"Retry in 3h12m":        seen.Add(3*time.Hour + 13*time.Minute),
		"try again in 5 months": {},
		"You've hit your limit · resets 2:30pm (Mars/Olympus)": {},
		"resets 2:30pm (PDT)":                                      {},
		"resets 12:04 AM PDT":                                      {},
		"resets July 23":                                           {},
		"Claude AI usage limit reached|1795701600":                 time.Unix(1795701600, 0),
		"or try again in 5 days 22 hours 11 minutes.":              seen.Add((5*24+22)*time.Hour + 12*time.Minute),
		"Try again in 1 day 2 hours":                               seen.Add(26*time.Hour + time.Minute),
		"try again in 2 hours 5 minutes.":                          seen.Add(2*time.Hour + 6*time.Minute),
		"resets in 2h 5m":                                          seen.Add(2*time.Hour + 6*time.Minute),
		"try again in a while, 3 times":                            {},
		"try again 3 times":                                        {},
		"resets 27:99":                                             {},
		"or wait for limits to reset (every 5h and every week.)":   {},
		"You’ve hit your usage limit. Upgrade or try again later.": {},
		"You're out of usage credits":                              {},
	} {
		if got := LimitEnd(notice, seen, seen); !got.Equal(want) {
			t.Errorf("%s: %s, not %s", notice, got, want)
		}
	}
	const notice = "resets 1pm (UTC)" // of a conversation that goes on: it is over
	if got := LimitEnd(notice, seen.Add(-12*time.Hour), seen); !got.Equal(day(11, 26, 13, 1)) {
		t.Errorf("%s: %s", notice, got)
	}
}
