package fakeagent

import (
	"strconv"
	"strings"
	"time"
)

// step is one thing that a submitted text asks for.
type step struct {
	word    string
	lasting time.Duration
	amount  float64
	arg     string // a command, a signal, "tty", the text to repeat
}

// words of the script. The order is that of the package comment.
const words = "THINK STREAM TOOL CONFIRM QUESTION TRUST ERROR QUOTE ECHO SAY FLOOD LEAVE-ORPHAN RESTART EXIT CRASH"

// token is a word of a text, and where it ends there.
type token struct {
	text string
	end  int
}

// bare is the word without what ends a clause: "THINK 2s, then STREAM 1s."
func (t token) bare() string { return strings.TrimRight(t.text, ",;:.") }

func tokens(s string) []token {
	var all []token
	for i := 0; i < len(s); {
		for i < len(s) && strings.IndexByte(" \t\n", s[i]) >= 0 {
			i++
		}
		from := i
		for i < len(s) && strings.IndexByte(" \t\n", s[i]) < 0 {
			i++
		}
		if i > from {
			all = append(all, token{s[from:i], i})
		}
	}
	return all
}

// steps finds the script in a text.
func steps(text string) []step {
	var all []step
	ts := tokens(text)
	for i := 0; i < len(ts); i++ {
		if !hasWord(words, ts[i].bare()) {
			continue
		}
		s := step{word: ts[i].bare()}
		next := ""
		if i+1 < len(ts) {
			next = ts[i+1].bare()
		}
		switch s.word {
		case "THINK", "STREAM", "ERROR":
			if d, ok := lasting(next); ok {
				s.lasting = d
				i++
			}
		case "TOOL":
			if d, ok := lasting(next); ok {
				s.lasting = d
				i++
			}
			s.arg, i = inBrackets(text, ts, i)
		case "LEAVE-ORPHAN":
			if d, ok := lasting(next); ok {
				s.lasting = d
				i++
			}
			if i+1 < len(ts) && ts[i+1].bare() == "tty" {
				s.arg = "tty"
				i++
			}
		case "FLOOD", "EXIT":
			if n, err := strconv.ParseFloat(next, 64); err == nil {
				s.amount = n
				i++
			}
		case "ECHO":
			s.arg = text
		case "SAY":
			s.arg, i = toNextWord(text, ts, i)
		case "CRASH":
			if signalNamed(next) != nil {
				s.arg = next
				i++
			}
		case "CONFIRM":
			if s.arg, i = inBrackets(text, ts, i); s.arg == "" {
				s.arg, i = toNextWord(text, ts, i)
			}
		}
		all = append(all, s)
	}
	return all
}

// lasting reads a length of time: 20ms, 1.5s, or a number of seconds.
func lasting(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, d >= 0
	}
	n, err := strconv.ParseFloat(s, 64)
	return time.Duration(n * float64(time.Second)), err == nil && n >= 0
}

// inBrackets is what stands in [ ] behind token i, and the last token of that.
func inBrackets(text string, ts []token, i int) (string, int) {
	rest := text[ts[i].end:]
	at := strings.TrimLeft(rest, " ")
	if !strings.HasPrefix(at, "[") {
		return "", i
	}
	n := strings.IndexByte(at, ']')
	if n < 0 {
		return "", i
	}
	end := ts[i].end + len(rest) - len(at) + n + 1
	for i+1 < len(ts) && ts[i+1].end <= end {
		i++
	}
	return at[1:n], i
}

// toNextWord is the rest of the line behind token i, up to a word of the script.
func toNextWord(text string, ts []token, i int) (string, int) {
	from, to := ts[i].end, ts[i].end
	for i+1 < len(ts) {
		next := ts[i+1]
		if hasWord(words, next.bare()) || strings.Contains(text[from:next.end-len(next.text)], "\n") {
			break
		}
		to = next.end
		i++
	}
	return strings.TrimSpace(text[from:to]), i
}
