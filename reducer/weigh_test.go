package reducer

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// claim parses an activity, a source and what else is claimed: since, quiet and declared say how long ago.
func claim(t *testing.T, text string, now time.Time) Claim {
	w := words(text)
	c := Claim{Activity: Activity(w[0]), Source: Source(w[1]), Since: now, QuietFrom: now}
	is := map[string]*bool{"asked": &c.IsAsked, "prompt": &c.IsPrompt}
	at := map[string]*time.Time{"since": &c.Since, "quiet": &c.QuietFrom, "declared": &c.Declared}
	for _, s := range w[2:] {
		k, v, _ := strings.Cut(s, "=")
		if d, err := time.ParseDuration(v); at[k] != nil && err == nil {
			*at[k] = now.Add(-d)
		} else if is[k] != nil {
			*is[k] = true
		} else {
			t.Fatal(s)
		}
	}
	return c
}

// What a program shows counts, or does not, as the table says; and when the time has come that is named, it does.
func TestWeigh(t *testing.T) {
	rows := tables(document(t), "shown")
	if len(rows) < 30 {
		t.Fatal(len(rows), "rows")
	}
	for _, row := range rows {
		p := newPlayer()
		for _, line := range code(row[1]) {
			if _, err := p.play(line); err != nil {
				t.Fatal(line, err)
			}
		}
		c := claim(t, code(row[0])[0], p.now)
		weigh := func(now time.Time) string {
			counts, again := p.state.Weigh(c, now, StaleAfter)
			switch {
			case counts:
				return "yes"
			case again.IsZero():
				return "no"
			case !again.After(now):
				t.Errorf("%s against %s: to be weighed again %s ago", row[0], row[1], now.Sub(again))
			}
			return fmt.Sprint("in ", again.Sub(now))
		}
		got := weigh(p.now)
		if got != row[2] {
			t.Errorf("%s against %s: %s, not %s", row[0], row[1], got, row[2])
		}
		if _, in, isLater := strings.Cut(got, "in "); isLater {
			d, _ := time.ParseDuration(in)
			if before, then := weigh(p.now.Add(d-1)), weigh(p.now.Add(d)); before == "yes" || then != "yes" {
				t.Errorf("%s against %s: %s, then %s", row[0], row[1], before, then)
			}
		}
	}
}
