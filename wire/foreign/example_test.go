package foreign_test

import (
	"fmt"

	"github.com/agentteammail/atm/wire/foreign"
)

// An update of the Agent Client Protocol becomes an event in atm's words, with the update whole in Wire. It can be
// written for another system that has such an event.
func ExampleAdopt() {
	e, err := foreign.Adopt([]byte(`{"method":"turn/completed","params":{"threadId":"th","turn":{"id":"7","status":"interrupted"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Agent = "bob"
	fmt.Println(e.Kind, e.TurnID, e.Text("status"))
	line, ok := foreign.AsWire(&e, foreign.Daemon)
	fmt.Println(string(line), ok)
	// Output:
	// turn_completed 7 interrupted
	// {"kind":"turn_completed","agent":"bob","thread_id":"th","turn_id":"7","status":"interrupted","transport":"app-server"} true
}
