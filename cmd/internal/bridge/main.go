package bridge

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Main runs the program atm-bridge and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("bridge", version, words, func(c *cli.Context) error {
		p := command.PrinterOf(c)
		s, err := app.OpenTeam(p.Given)
		if err != nil {
			return err
		}
		team, err := s.Team.Config()
		if err = cmp.Or(s.MayBridge(), err); err != nil {
			return err
		}
		var hasReported atomic.Bool
		b := &Bridge{
			Root: s.Root, Team: s.Team, Host: cmp.Or(wire.Name(c.String("host")), s.Host()),
			Report: func(t Transfer) {
				hasReported.Store(true)
				p.PrintAs(t, letter.Escape(t.String())) // on a broken pipe, Follow ends
			},
			Warn: func(line string) { p.Warn("%s", line) },
		}
		if b.Host == "" {
			return failure.Usage("what is this machine called?").WithHint("atm bridge keygen --host NAME makes its key; if it has several: atm bridge --host NAME")
		}
		url := cmp.Or(c.String("nats"), team.Bridge.NATS)
		if url == "" {
			return failure.Usage("which server?").WithHint("atm bridge --nats nats://HOST:4222, or nats under [bridge] in team.toml")
		}
		if _, err := hostkey.ParseHost(string(b.Host)); err != nil {
			return failure.Usage("--host: %v", err)
		}
		if _, err := s.Keys().Private(b.Host); errors.Is(err, hostkey.ErrNoKey) {
			return failure.NotFound("%w", err).WithHint("atm bridge keygen --host %s", b.Host)
		}
		b.ThroughServer(url, cmp.Or(c.String("creds"), team.Bridge.Creds), int(team.Bridge.Replicas))
		if !c.Bool("once") {
			err = s.Follow(b.Run)
		} else if err = s.Await(b.Once); err == nil && !hasReported.Load() && !p.IsJSON {
			err = p.PrintAs(nil, "nothing to carry over")
		}
		if _, ok := errors.AsType[*LeaseError](err); ok {
			return failure.Locked("%w", err).WithHint("stop that bridge, or give this machine another name: atm bridge keygen --host NAME")
		}
		if _, ok := errors.AsType[*lockfile.HeldError](err); ok {
			return failure.Locked("a bridge for team %s already runs here", s.Team.Name).WithHint("it sends waiting mail: atm trace ID")
		}
		if err == nil || errors.Is(err, context.Canceled) {
			return err
		}
		e := s.Given.Explain(err)
		if e.Hint == "" {
			e.WithHint("what is not sent waits in the outbox: atm bridge sends it once that is mended")
		}
		return e
	})
}
