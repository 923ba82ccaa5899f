package letter_test

import (
	"fmt"

	"github.com/agentteammail/atm/mailbox/letter"
)

// What others wrote is data: on a terminal it draws nothing but text.
func ExampleEscape() {
	fmt.Println(letter.Escape("hello\x1b]0;owned\a from b\u202eob"))
	// Output:
	// hello\x1b]0;owned\x07 from b\u202eob
}
