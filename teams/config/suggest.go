package config

import (
	"fmt"
	"strings"
)

// suggest names the known word that is nearest to a misspelt one: "; did you
// mean "claude"?", or "" when none is near.
func suggest(word string, known []string) string {
	best, fewest := "", 1+(len(word)+1)/3
	for _, k := range known {
		if n := editDistance(strings.ToLower(word), strings.ToLower(k)); n < fewest {
			best, fewest = k, n
		}
	}
	if best == "" || best == word {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance is how many letters are wrong, missing, too many or swapped.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
