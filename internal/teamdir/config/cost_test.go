package config

import (
	"fmt"
	"strings"
	"testing"
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
		"a cycle of members": {repeated(1_000, "[members.m%d]\nafter=[\"m%d\"]\n"), "members.m0.after: a cycle: m0 waits for itself"},
		"too much":           {repeated(3_000, "[members.m%d]\nrole=\"r%d\"\n"), "the file has more than 64 KiB"},
		"variables":          {"[members.b.env]\n" + repeated(4_500, "v%d=\"%d\"\n"), ""},
		"unknown keys":       {repeated(4_500, "x%d=%d\n"), `line 1, column 1: unknown key "x0"`},
		"an inline table":    {"members={" + repeated(3_000, "m%d={},x%d=1,") + "b={}}\n", "line 1, column 19: members: cannot decode TOML integer"},
		"a long key":         {"a" + strings.Repeat(".a", 30_000) + "=1\n", `line 1, column 1: unknown key "a.a.a`},
		"a deep value":       {"a=" + strings.Repeat("[", 60_000) + "\n", "line 1, column 10003: arrays and inline tables are nested more"},
		"approvers":          {"approvers=[" + strings.Repeat(`"x",`, 10_000) + "]\n", `approvers: "x" is not a member`},
	} {
		_, mistakes := Parse([]byte(c.text), nil)
		got := ""
		if len(mistakes) > 0 {
			got = mistakes[0]
		}
		if !strings.HasPrefix(got, c.mistake) || c.mistake == "" && got != "" {
			t.Errorf("%s: %q, not %q", name, got, c.mistake)
		}
	}
}
