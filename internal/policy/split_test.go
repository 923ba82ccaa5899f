package policy

import (
	"slices"
	"testing"
)

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		``:                          nil,
		`claude --resume '{id}'`:    {"claude", "--resume", "{id}"},
		`a "b c" 'd "e"'`:           {"a", "b c", `d "e"`},
		`a"b"'c'\ d`:                {"abc d"},
		`"\"\\\$" "\n" '\n'`:        {`"\$`, `\n`, `\n`},
		`run $HOME/x "${Y}" ~/z ''`: {"run", "$HOME/x", "${Y}", "~/z", ""},
		"é \"ü $X\"":                {"é", "ü $X"},
	} {
		if got, err := SplitWords(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{"a $(b)", "a `b`", "diff <(a) b", "a '", "a $((1+1))", `"$(b)"`} {
		if got, err := SplitWords(line); err == nil {
			t.Errorf("%s: %q", line, got)
		}
	}
}
