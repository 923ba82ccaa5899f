package runner

import (
	"context"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// startCommands runs the owner's commands for what happens to an agent, as they were when the runner started. end runs
// those for what its last events say, too.
func startCommands(team *teamdir.Team, name wire.Name, on []config.On) (end func(), err error) {
	if len(on) == 0 {
		return func() {}, nil
	}
	of := func(n wire.Name) []config.On {
		if n != name {
			return nil
		}
		return on
	}
	commands, err := notices.StartCommands(team, of, app.OwnEnvironment())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		o := watcher.Options{Messages: true, Events: true, After: commands.After()}
		watcher.Until(ctx, []watcher.Mailbox{team.Box(name)}, o, func(e watcher.Entry) (bool, error) {
			commands.Handle(ctx, e)
			return false, nil
		})
	}()
	return func() {
		stop()
		<-watched
		commands.CatchUp(context.Background(), name)
		commands.Close()
	}, nil
}
