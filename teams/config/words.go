package config

import (
	"errors"
	"strings"
)

// splitWords splits a command into words as a shell does, but expands nothing:
// blanks separate words; quotes and backslashes keep them together.
func splitWords(s string) (words []string, err error) {
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(s) && (quote == 0 || s[i+1] == '"' || s[i+1] == '\\'):
			i++
			word.WriteByte(s[i])
			inWord = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
