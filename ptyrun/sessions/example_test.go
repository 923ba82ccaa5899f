package sessions_test

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/ptyrun/sessions"
	"github.com/agentteammail/atm/session"
)

// An agent that runs with a session: what people say there reaches it, and what it puts out is the session's.
func ExampleOptions_Follow() {
	store, err := session.Open(".atm/main", session.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	agent, err := ptyrun.Start(context.Background(), ptyrun.Options{
		Command: []string{"claude"},
		Mail:    &ptyrun.Mail{Dir: ".atm/main/bob"},
		Follow:  sessions.Options{Store: store, Begin: true}.Follow,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close()
}
