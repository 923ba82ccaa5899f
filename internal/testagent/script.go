package testagent

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// step is one thing that a submitted text asks for.
type step struct {
	word    string
	lasting time.Duration
	arg     string
}

// word finds a word of the script with the length of time or the number behind it, and what stands
// in brackets behind that.
var word = regexp.MustCompile(`\b(THINK|STREAM|TOOL|CONFIRM|QUESTION|QUOTE|ECHO|SAY|LEAVE-ORPHAN|EXIT|CRASH)\b` +
	`(?: ([0-9][0-9.]*(?:ms|s|m|h)?)\b)?(?: *\[([^\]]*)\])?`)

// steps finds the script in a text.
func steps(text string) (all []step) {
	found := word.FindAllStringSubmatchIndex(text, -1)
	for i, m := range found {
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		s := step{word: group(1), lasting: lasting(group(2)), arg: group(3)}
		rest, end := text[m[1]:], len(text)-m[1]
		if i+1 < len(found) {
			end = found[i+1][0] - m[1]
		}
		rest, _, _ = strings.Cut(rest[:end], "\n")
		rest = strings.TrimSpace(rest)
		switch s.word {
		case "ECHO":
			s.arg = text
		case "EXIT":
			s.arg = group(2)
		case "CONFIRM", "SAY", "CRASH":
			if s.arg == "" {
				s.arg = strings.TrimSpace(group(2) + " " + rest)
			}
		}
		all = append(all, s)
	}
	return all
}

// lasting reads a length of time: 20ms, 1.5s, or a number of seconds.
func lasting(s string) time.Duration {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	d, _ := time.ParseDuration(s)
	return d
}
