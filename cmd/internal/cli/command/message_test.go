package command

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/reducer/history"
)

// A paragraph is shown as a whole; of a longer text the beginning, and where the rest is.
func TestTurns(t *testing.T) {
	paragraph := strings.Repeat("word ", 200)
	for text, want := range map[string]string{
		paragraph:                              "over\n  < " + strings.TrimSpace(paragraph),
		strings.Repeat(paragraph, 2) + "\nend": "over\n  < " + strings.Repeat("word ", 300)[:1499] + "…\n    … the rest: atm history bob 3 --full",
		strings.Repeat("x\n", 14) + "y":        "over\n  < x" + strings.Repeat("\n    x", 11) + "\n    … 3 more lines: atm history bob 3 --full",
	} {
		if got := Turns("bob", []history.FullTurn{{Content: history.Content{Response: text}}}, TurnsShown{Last: 3, Command: strings.Clone}); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
