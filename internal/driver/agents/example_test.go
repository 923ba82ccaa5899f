package agents_test

import (
	"fmt"

	"github.com/agentteammail/atm/internal/driver/agents"
)

// A mistake in a driver's file has a line, and the file is not used.
func ExampleParse() {
	_, mistakes := agents.Parse("mine", []byte("plain = true\n\n[command]\nname = [\"mine\"]\n"))
	for _, m := range mistakes {
		fmt.Println(m.Line, m.Text)
	}
	// Output: 4 unknown key "name" in command; did you mean "names"?
}
