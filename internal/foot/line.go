package foot

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// line is a text as it is edited: clusters of characters, and the cursor before
// one of them.
type line struct {
	clusters []string
	at       int
}

func (l *line) text() string { return strings.Join(l.clusters, "") }

// insert puts text before the cursor, which goes on behind it. It may join what
// stands on both sides: an accent its letter.
func (l *line) insert(text string) {
	if text == "" {
		return
	}
	from, to := max(0, l.at-1), min(len(l.clusters), l.at+1)
	before := strings.Join(l.clusters[from:l.at], "") + text
	var fresh []string
	end := 0 // of the clusters that hold what was put in
	n := 0
	for g := displaywidth.StringGraphemes(before + strings.Join(l.clusters[l.at:to], "")); g.Next(); {
		fresh = append(fresh, g.Value())
		if n < len(before) {
			end = len(fresh)
		}
		n += len(g.Value())
	}
	l.clusters = slices.Replace(l.clusters, from, to, fresh...)
	l.at = from + end
}

// remove takes away the clusters from one to before another.
func (l *line) remove(from, to int) {
	from, to = max(0, from), min(to, len(l.clusters))
	if from >= to {
		return
	}
	l.clusters = slices.Delete(l.clusters, from, to)
	if l.at >= to {
		l.at -= to - from
	} else if l.at > from {
		l.at = from
	}
}

// word is where the cursor is after a word to the left (-1) or right.
func (l *line) word(to int) int {
	at, blank := l.at, func(i int) bool { return strings.TrimSpace(l.clusters[i]) == "" }
	if to < 0 {
		for at > 0 && blank(at-1) {
			at--
		}
		for at > 0 && !blank(at-1) {
			at--
		}
		return at
	}
	for at < len(l.clusters) && blank(at) {
		at++
	}
	for at < len(l.clusters) && !blank(at) {
		at++
	}
	return at
}

// shown is how a cluster stands in the row, and how wide that is.
func shown(cluster string) (string, int) {
	switch cluster {
	case "\n":
		return "⏎", 1
	case "\t":
		return " ", 1
	}
	return cluster, displaywidth.String(cluster)
}
