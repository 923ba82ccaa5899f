package command

import (
	"strings"

	"github.com/xrash/smetrics"
)

// likeness is how alike two words must be for one to be meant by the other, of 1.
const likeness = 0.84

// Nearest is the known word that was probably meant, by Jaro's and Winkler's
// measure, case aside: it forgives letters in the wrong order and favours words
// that begin alike.
func Nearest(word string, known []string) (string, bool) {
	best, bestLike := "", likeness
	for _, name := range known {
		if word == "" || name == "" {
			continue
		}
		if like := smetrics.JaroWinkler(strings.ToLower(word), strings.ToLower(name), 0.7, 4); like > bestLike {
			best, bestLike = name, like
		}
	}
	return best, best != ""
}
