package driver_test

import (
	"fmt"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/screen"
)

// What a program shows becomes what it does, and whether a message may be typed now.
func ExampleDriver_Read() {
	d := driver.ForCommand([]string{"bash", "-l"})
	s, before := screen.New(40, 5, 0), driver.Reading{}
	for _, shown := range []string{"\x1b[?2004hme@host$ ", "\x1b[?2004lmake\r\ncompiling …\r\n", "\x1b[?2004hme@host$ "} {
		fmt.Fprint(s, shown)
		before = d.Read(driver.LookAt(s), before)
		fmt.Println(before.Prompt)
	}
	// Output:
	// true
	// false
	// true
}
