package driver

import (
	"testing"
	"time"
)

func TestLimitEnd(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Skip(err)
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
		"You’ve hit your usage limit. Upgrade or try again later.":               {},
		"You're out of usage credits":                                            {},
	} {
		if got := LimitEnd(notice, seen); !got.Equal(want) {
			t.Errorf("%s: %s, not %s", notice, got, want)
		}
	}
}
