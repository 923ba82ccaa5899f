package command

import (
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// Nearest is the known word that was probably meant: the one with the fewest slips of
// the fingers, case aside; one slip for every three letters, at most three.
func Nearest(word string, known []string) (string, bool) {
	best, fewest := "", 4
	for _, name := range known {
		n := slips(strings.ToLower(word), strings.ToLower(name))
		if n < fewest && n <= max(len(word), len(name))/3 {
			best, fewest = name, n
		}
	}
	return best, best != ""
}

// slips counts letters too many, missing or wrong; letters in the wrong order are one slip.
func slips(a, b string) int {
	if a != b && sorted(a) == sorted(b) {
		return 1
	}
	return smetrics.WagnerFischer(a, b, 1, 1, 1)
}

func sorted(s string) string { return string(slices.Sorted(slices.Values([]byte(s)))) }
