package command

import (
	"strings"

	"github.com/agentteammail/atm/teams/policy"
)

// Repaired is the command line with the right words where the wrong ones stand, which are words of the verb or values
// of the flag. "": they do not stand there.
func (l *Line) Repaired(flag string, wrong, right []string) string {
	var words []string
	for i, word := range l.typed {
		isElsewhere := i == 0 && !isFlag(word) || len(wrong) == 0 || l.isValueOfOther(flag, i)
		if isElsewhere || word != wrong[0] && !(isFlag(word) && strings.HasSuffix(word, "="+wrong[0])) {
			words = append(words, word)
			continue
		}
		if len(right) > 0 {
			words = append(append(words, strings.TrimSuffix(word, wrong[0])+right[0]), right[1:]...)
		} else if word == wrong[0] && i > 0 && l.takesNext(l.typed[i-1], false) {
			words = words[:len(words)-1] // the second --to
		}
		wrong, right = wrong[1:], nil
	}
	if len(wrong) > 0 {
		return ""
	}
	return l.toType(words)
}

// isValueOfOther reports whether a word that was typed is, or has, the value of another flag than this one.
func (l *Line) isValueOfOther(flag string, i int) bool {
	owner := l.typed[i]
	if !isFlag(owner) || !strings.Contains(owner, "=") {
		owner = l.typed[max(i-1, 0)]
		if !l.takesNext(owner, false) {
			return false
		}
	}
	f := l.find(owner)
	return f != nil && takesValue(f) && f.Names()[0] != flag
}

// toType is a command line of other words, as a shell takes it.
func (l *Line) toType(words []string) string {
	line := l.app.HelpName
	for _, word := range words {
		line += " " + policy.Quote(word)
	}
	return line
}
