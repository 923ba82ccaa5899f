package command

import "strings"

// Nearest is the known word that was probably meant: the one with the fewest
// slips of the fingers (a letter too many, missing, wrong, or two in the wrong
// order), case aside; one slip for every three letters, at most three. Of equals
// it is the one with the same first letter, then the first.
func Nearest(word string, known []string) (string, bool) {
	w := []rune(strings.ToLower(word))
	if len(w) > 40 {
		return "", false
	}
	best, bestCost := "", 0
	for _, name := range known {
		k := []rune(strings.ToLower(name))
		allowed := min(max(len(w), len(k)), 9) / 3
		if slips(w, k) > allowed || len(w) == 0 || len(k) == 0 {
			continue
		}
		cost := 2 * slips(w, k)
		if w[0] != k[0] {
			cost++
		}
		if best == "" || cost < bestCost {
			best, bestCost = name, cost
		}
	}
	return best, best != ""
}

// slips is Damerau and Levenshtein's distance, where no part is edited twice.
func slips(a, b []rune) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
