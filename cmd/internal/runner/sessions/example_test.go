package sessions_test

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/cmd/internal/runner/sessions"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
)

// An agent that runs with a session: what people say there reaches it, and what it puts out is the session's.
func ExampleOptions_Follow() {
	team, err := teams.Open(".atm/main")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer team.Close()
	bob, err := team.Mailbox("bob")
	if err != nil {
		fmt.Println(err)
		return
	}
	state := func() (*reducer.State, error) { return team.State("bob") }
	agent, err := ptyrun.Start(context.Background(), ptyrun.Options{
		Command: []string{"claude"},
		Mail:    &ptyrun.Mail{Mailbox: bob},
		Follow:  sessions.Options{Store: team.Sessions(), State: state, Begin: true}.Follow,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close()
}
