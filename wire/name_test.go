package wire

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for _, s := range []string{"a", "0", "bob", "a-b_c", strings.Repeat("a", 64)} {
		if n, err := ParseName(s); err != nil || string(n) != s {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{
		"", "A", "-a", "_a", "a b", "a.b", ".", "..", "../a", "a/b", `a\b`, "a\x00", "a\n", "é", "all", "drop",
		strings.Repeat("a", 65), ".locks", "bob@main",
	} {
		if _, err := ParseName(s); err == nil {
			t.Errorf("%q is a name", s)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for s, want := range map[string]Address{
		"bob": {"bob", "main"}, "bob@other": {"bob", "other"}, "drop@main": {"drop", "main"}, "drop": {"drop", "main"},
	} {
		if a, err := ParseAddress(s, "main"); err != nil || a != want {
			t.Errorf("%q: %v, %v", s, a, err)
		}
	}
	for _, s := range []string{"", "@", "bob@", "@main", "all", "bob@all", "bob@drop", "bob@main@x", "../x@main", "bob@../x"} {
		if a, err := ParseAddress(s, "main"); err == nil {
			t.Errorf("%q is %v", s, a)
		}
	}
}
