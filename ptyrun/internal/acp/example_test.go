package acp_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/agentteammail/atm/ptyrun/internal/acp"
)

// An agent is started, gets a prompt once it has a session, and is asked what it asks.
func ExampleStart() {
	a, err := acp.Start(acp.Options{Command: []string{"opencode", "acp"}, Dir: ".", Env: os.Environ()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Stop(context.Background(), time.Second)
	for e := range a.Events() {
		switch {
		case e.Asked != nil:
			fmt.Println("asks", e.Asked.ID)
		case e.Log != nil && e.Log.Kind == "session_start":
			a.Prompt("Say hello.")
		case e.Log != nil:
			fmt.Println(e.Log.Kind)
		}
	}
}
