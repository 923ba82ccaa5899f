package mcp

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/testframe"
	"github.com/agentteammail/atm/internal/testround"
)

// A document keeps its form, and its texts are as the text shows them.
func TestFrames(t *testing.T) {
	testround.Check(t, 100, func(t *rapid.T) {
		text := testframe.Hostile().Draw(t, "text")
		raw, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"body": text, text: 12345678901234567}}})
		var got struct{ Messages []map[string]json.RawMessage }
		if err := json.Unmarshal(escaped(raw), &got); err != nil {
			t.Fatal(err)
		}
		var body string
		json.Unmarshal(got.Messages[0]["body"], &body)
		if want := letter.EscapeMail(text); body != want || string(got.Messages[0][want]) != "12345678901234567" {
			t.Fatalf("%q is %q, want %q", text, body, want)
		}
	})
	for text, want := range map[string]string{"sent 9f3a1c": "sent 9f3a1c", "9f3a1c from bob, now\n  x\n": "9f3a1c from bob, now\n  x\n[/atm]"} {
		if got := framed(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}
