package agents_test

import (
	"fmt"

	"github.com/agentteammail/atm/internal/driver/agents"
)

// A mistake in a driver's file names its place, and the file is not used.
func ExampleParse() {
	_, mistakes := agents.Parse("mine", []byte("plain = true\n\n[command]\nname = [\"mine\"]\n"))
	for _, m := range mistakes {
		fmt.Println(m)
	}
	// Output: line 4, column 1: unknown key "command.name"
}
