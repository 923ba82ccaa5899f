package agent

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
)

var restartCommand = &cli.Command{
	Name: "restart", Category: "! reload", ArgsUsage: "NAME", Usage: "restart an agent's program",
	UsageText:   "atm restart bob",
	Description: "Keeps the command, the runner, the recording and attached terminals; ends what the program started.",
	Flags:       []cli.Flag{&cli.BoolFlag{Name: "resume", Usage: "continue its conversation, if it can, also after later crashes"}},
	Action: onRunner(policy.Restart, func(ctx context.Context, c *cli.Context, k *call, client *control.Client) error {
		before, err := client.Status(ctx)
		if err != nil {
			return err
		}
		o, err := client.Restart(ctx, control.RestartRequest{Resume: c.Bool("resume")})
		r := resultOf(k.name(), o)
		for began := time.Now(); err == nil && r.PID == 0 && time.Since(began) < listenWithin; app.Sleep(ctx, pollEvery) {
			var now control.Status
			if now, err = client.Status(ctx); now.ChildPID != before.ChildPID {
				r.State, r.PID = "restarted", now.ChildPID
				r.tellResumed(now)
			}
		}
		return k.print(r, err)
	}),
}
