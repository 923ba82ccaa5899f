package wire

import "strings"

// The most tokens and money that a Usage may tell. A program that tells more is wrong.
const (
	MaxTokens = 1e15
	MaxCost   = 1e12
)

// IsCurrency reports whether a text is a currency as ISO 4217 writes it: USD.
func IsCurrency(code string) bool {
	return len(code) == 3 && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
