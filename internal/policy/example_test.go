package policy_test

import (
	"fmt"

	"github.com/agentteammail/atm/internal/policy"
)

// A pattern allows a line that is one plain call, and denies one anywhere in a line.
func ExampleRules_Decide() {
	rules := policy.Rules{
		{Tool: "Bash(git push*)", Decision: "deny"},
		{Tool: "Bash(git *)", Decision: "allow"},
	}
	for _, line := range []string{"git status", "git status; rm -r .", "cd x && git push origin main", "make"} {
		q := policy.Request{Tool: "Bash", Command: true, Input: line}
		fmt.Printf("%s: %s\n", line, rules.Decide(q))
	}
	// Output:
	// git status: allow
	// git status; rm -r .: ask
	// cd x && git push origin main: deny
	// make: ask
}
