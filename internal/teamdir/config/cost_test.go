package config

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

// repeated returns a text n times, with numbers from 0 and those of the next one.
func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i, (i+1)%n)
	}
	return b.String()
}

// A file with too much is refused with its line, before it is read.
func TestCosts(t *testing.T) {
	for name, c := range map[string]struct{ text, mistake string }{
		"words":              {"[members.bob]\ncommand=[\"a\"" + strings.Repeat(",\n\"a\"", 20_000) + "]\n", ""},
		"members":            {repeated(1_000, "[members.m%d]\ncommand=[\"b%d\"]\n"), ""},
		"a cycle of members": {repeated(1_000, "[members.m%d]\nafter=[\"m%d\"]\n"), "line 2: after has a cycle: m0 waits for itself"},
		"too many members":   {repeated(30_000, "[members.m%d]\nrole=\"r%d\"\n"), "line 28283: the file has too many keys"},
		"too many variables": {"[members.b.env]\n" + repeated(60_000, "v%d=\"%d\"\n"), "line 24496: the file has too many keys"},
		"an inline table":    {"members={" + repeated(60_000, "m%d={},x%d=1,") + "b={}}\n", "line 1: the file has too many keys"},
		"a long key":         {"a" + strings.Repeat(".a", 500_000) + "=1\n", "line 1: the file has too many keys"},
		"a deep value":       {"a=" + strings.Repeat("[", 500_000) + "\n", "line 1: arrays and inline tables are nested more"},
		"approvers":          {"approvers=[" + strings.Repeat(`"x",`, 10_000) + "]\n", `line 1: approvers names "x", which is not a member`},
	} {
		_, mistakes := Parse([]byte(c.text), nil)
		got := ""
		if len(mistakes) > 0 {
			got = mistakes[0].String()
		}
		if !strings.HasPrefix(got, c.mistake) || c.mistake == "" && got != "" {
			t.Errorf("%s: %q, not %q", name, got, c.mistake)
		}
	}
}

// The lines of four times as many words are found in some four times the time, not in sixteen times.
func TestLinesTakeTimeInProportion(t *testing.T) {
	took := func(words int) time.Duration {
		text := []byte("[members.bob]\ncommand=[\"a\"" + strings.Repeat(",\n\"a\"", words) + "]\n")
		began := time.Now()
		FindLines(text)
		return time.Since(began)
	}
	few, many := time.Hour, time.Hour // the least of all runs, since others use the processor
	for end := time.Now().Add(time.Minute); many > 10*few || many == time.Hour; {
		if few, many = min(few, took(5_000)), min(many, took(20_000)); time.Now().After(end) {
			t.Fatalf("5,000 words: %v; 20,000: %v", few, many)
		}
	}
}

// The members that wait for themselves are those that a search from each of them finds again.
func TestCycles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c := Default()
		n := 1 + random.IntN(9)
		for i := range n {
			var after []wire.Name
			for range random.IntN(3) {
				after = append(after, wire.Name(fmt.Sprint(random.IntN(n+1)))) // one of them is not a member
			}
			c.Members[wire.Name(fmt.Sprint(i))] = Member{After: after}
		}
		var want []wire.Name
		for _, name := range slices.Sorted(maps.Keys(c.Members)) {
			if slices.Contains(c.StartOrder(c.Members[name].After), name) {
				want = append(want, name)
			}
		}
		got := c.inCycles()
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%v (-want +got):\n%s", c.Members, d)
		}
	}
}
