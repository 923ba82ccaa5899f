package screen_test

import (
	"fmt"

	"github.com/agentteammail/atm/internal/screen"
)

// Bytes go in, and what a person would see comes out.
func ExampleScreen() {
	s := screen.New(40, 3, 100)
	fmt.Fprint(s, "\x1b]0;build\a\x1b[31mone\x1b[m\r\ntwo\rTWO")
	x, y := s.Cursor()
	fmt.Printf("%q: %q, %q, cursor %d,%d\n", s.Title(), s.Line(0), s.Line(1), x, y)
	// Output:
	// "build": "one", "TWO", cursor 3,1
}
