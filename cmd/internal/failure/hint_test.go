package failure

import (
	"encoding/json"
	"strings"
	"testing"
)

// A backtick in an argument marks no command: neither in what is printed nor for who completes it.
func TestHintOfArguments(t *testing.T) {
	text := "`rm -rf .`"
	h := Say("say %q: `atm send %s \"…\"`; %s", text, "a`b", Say("else `atm ls`"))
	var commands []string
	completed := h.Map(func(command string) string {
		commands = append(commands, command)
		return command + " --as me"
	})
	if got := strings.Join(commands, "|"); got != "atm send a`b \"…\"|atm ls" {
		t.Error(got)
	}
	const want = "say \"`rm -rf .`\": atm send a`b \"…\" --as me; else atm ls --as me"
	if got := completed.String(); got != want {
		t.Error(got)
	}
	data, err := json.Marshal(completed)
	var again Hint
	if err != nil || json.Unmarshal(data, &again) != nil || again.String() != want {
		t.Errorf("%s: %q, %v", data, again, err)
	}
	if again.Map(func(string) string { return "" }).String() != want {
		t.Error("what was printed has commands")
	}
}
