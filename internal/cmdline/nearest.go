package cmdline

import "unicode"

// Nearest returns the known word that was probably meant: the one with the
// fewest slips of the fingers (a letter too many, missing, wrong, or two in
// the wrong order), case aside. Up to four letters allow one slip, up to eight
// two, more three; a word of which one is the beginning of the other counts
// as well. Of equals it is the one with the same first letter, then the first.
func Nearest(word string, known []string) (string, bool) {
	const longest = 40 // nobody misspells a name at length; keeps the cost flat
	w := fold(word)
	if len(w) == 0 || len(w) > longest {
		return "", false
	}
	allowed := 3
	if len(w) <= 4 {
		allowed = 1
	} else if len(w) <= 8 {
		allowed = 2
	}
	best, bestCost := "", 0
	for _, name := range known {
		k := fold(name)
		if len(k) == 0 || len(k) > longest {
			continue
		}
		slips := distance(w, k)
		switch {
		case slips <= allowed && slips < max(len(w), len(k)):
		case len(w) >= 3 && len(k) >= 3 && begins(w, k):
			slips += allowed // any real slip is likelier
		default:
			continue
		}
		cost := 2 * slips
		if w[0] != k[0] {
			cost++
		}
		if best == "" || cost < bestCost {
			best, bestCost = name, cost
		}
	}
	return best, best != ""
}

func fold(s string) []rune {
	r := []rune(s)
	for i := range r {
		r[i] = unicode.ToLower(r[i])
	}
	return r
}

// begins says whether one is the beginning of the other.
func begins(a, b []rune) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// distance is Damerau and Levenshtein's, where no part is edited twice.
func distance(a, b []rune) int {
	older := make([]int, len(b)+1)
	old := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
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
