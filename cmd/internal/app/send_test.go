package app

import (
	"strings"
	"testing"
)

func TestCheckText(t *testing.T) {
	for _, text := range []string{"", " \n", "a\x00b", "\xff", strings.Repeat("x", MaxText+1)} {
		if CheckText(text) == nil {
			t.Errorf("%.20q is taken", text)
		}
	}
}
