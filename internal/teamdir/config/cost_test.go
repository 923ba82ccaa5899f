package config

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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

// The worst files that are not too large cost seconds, not minutes.
func TestCosts(t *testing.T) {
	for name, c := range map[string]struct{ text, mistake string }{
		"words":              {"[members.bob]\ncommand=[\"a\"" + strings.Repeat(",\n\"a\"", 10_000) + "]\n", ""},
		"members":            {repeated(1_000, "[members.m%d]\ncommand=[\"b%d\"]\n"), ""},
		"a cycle of members": {repeated(1_000, "[members.m%d]\nafter=[\"m%d\"]\n"), "line 2: after has a cycle: m0 waits for itself"},
		"too much":           {repeated(3_000, "[members.m%d]\nrole=\"r%d\"\n"), "line 1: the file has more than 64 KiB"},
		"variables":          {"[members.b.env]\n" + repeated(4_500, "v%d=\"%d\"\n"), ""},
		"unknown keys":       {repeated(4_500, "x%d=%d\n"), `line 1: unknown key "x0"`},
		"an inline table":    {"members={" + repeated(3_000, "m%d={},x%d=1,") + "b={}}\n", "line 1: members: a table is needed"},
		"a long key":         {"a" + strings.Repeat(".a", 30_000) + "=1\n", `line 1: unknown key "a"`},
		"a deep value":       {"a=" + strings.Repeat("[", 60_000) + "\n", "line 1: arrays and inline tables are nested more"},
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

// A cycle is found if and only if somebody waits for himself, and who is named does.
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
		waits := func(name wire.Name) bool { return slices.Contains(c.StartOrder(c.Members[name].After), name) }
		got := c.inCycles()
		isThere := slices.ContainsFunc(slices.Collect(maps.Keys(c.Members)), waits)
		if isThere != (len(got) > 0) || slices.ContainsFunc(got, func(name wire.Name) bool { return !waits(name) }) {
			t.Fatalf("%v: %v", c.Members, got)
		}
	}
}
