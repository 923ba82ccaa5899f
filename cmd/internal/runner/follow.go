package runner

import (
	"context"
	"os/exec"
	"strconv"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/wire"
)

// followAgain is how long after the follower has ended it is started again.
const followAgain = 2 * time.Second

// follow has a program give the mail to the conversation that a program's own server has, until ctx ends.
func follow(ctx context.Context, team *teamdir.Team, name wire.Name, s ptyrun.Server) {
	program, err := app.Companion(app.More)
	for err == nil && ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, program, all.Follower(), "follow", string(name), "--server", s.Socket, "--program", strconv.Itoa(s.Program),
			"--root", team.Root().Path, "--team", string(team.Name))
		cmd.Dir = team.Root().Path
		cmd.Run() // how it ends does not matter: its mail is typed until it is there again
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
}
