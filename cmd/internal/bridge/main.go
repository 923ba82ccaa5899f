package bridge

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/wire"
)

// Main runs atm bridge and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("bridge", version, words, func(c *cli.Context) error {
		p := command.PrinterOf(c)
		s, err := app.OpenTeam(p.Given)
		if err = cmp.Or(err, check(c)); err != nil {
			return err
		}
		team, err := s.Team.Config()
		if err = cmp.Or(s.MayAct(policy.Bridge, ""), err); err != nil {
			return err
		}
		var hasReported atomic.Bool
		b := &Bridge{
			Root: s.Root, Team: s.Team, Host: cmp.Or(wire.Name(c.String("host")), s.Team.Host()),
			Report: func(t Transfer) {
				hasReported.Store(true)
				p.PrintAs(t, letter.Escape(t.String())) // on a broken pipe, Follow ends
			},
			Warn: func(line string) { p.Warn("%s", line) },
		}
		switch {
		case c.Bool("stdio"): // stdout belongs to the other side, which shows stderr
			b.Report = func(Transfer) {}
			err = b.ThroughStreams(p.In, p.Out, c.App.Version, func(known wire.Name) error { return nameHost(s, b, known) })
		case c.IsSet("ssh"):
			err = throughSSH(c, s, b)
		default:
			err = throughServer(c, b, team.Bridge)
		}
		if err != nil {
			return err
		}
		if _, err := s.Keys().Private(b.Host); errors.Is(err, hostkey.ErrNoKey) && b.NewKey == nil {
			return failure.NotFound("%w", err).WithHint("`atm bridge keygen --host %s`", b.Host)
		}
		if !c.Bool("once") {
			err = s.Follow(b.Run)
		} else if err = s.Await(b.Once); err == nil && !hasReported.Load() && !p.IsJSON {
			err = p.PrintAs(nil, "nothing to carry over")
		}
		if _, ok := errors.AsType[*LeaseError](err); ok {
			return failure.Locked("%w", err).WithHint("stop that bridge, or give this machine another name: `atm bridge keygen --host NAME`")
		}
		if c.Bool("stdio") && errors.Is(err, errEnded) {
			return nil
		}
		if _, ok := errors.AsType[*lockfile.HeldError](err); ok {
			return failure.Locked("a bridge for team %s already runs here", s.Team.Name).WithHint("it sends waiting mail: `atm trace ID`")
		}
		if err == nil || errors.Is(err, context.Canceled) {
			return err
		}
		e := s.Given.Explain(err)
		if e.Hint == "" {
			e.WithHint("what is not sent waits in the outbox: `atm bridge` sends it once that is mended")
		}
		return e
	})
}

// check checks which flags are given together.
func check(c *cli.Context) error {
	if word := c.Args().First(); word != "" && !c.IsSet("ssh") {
		return failure.Usage("what is %q?", word).WithHint("only options of ssh may follow: `atm bridge --ssh HOST -- -p 2222`")
	}
	if !c.IsSet("ssh") && (c.IsSet("dir") || c.IsSet("name")) {
		return failure.Usage("--dir and --name say more of a host: which?").WithHint("`atm bridge --ssh HOST --dir DIR`")
	}
	return cmdline.NotBoth(c, "ssh nats stdio")
}

func throughServer(c *cli.Context, b *Bridge, configured config.Bridge) error {
	url := cmp.Or(c.String("nats"), configured.NATS)
	if b.Host == "" {
		return failure.Usage("what is this machine called?").WithHint("`atm bridge keygen --host NAME` makes its key; if it has several: `atm bridge --host NAME`")
	}
	if url == "" {
		return failure.Usage("which server?").WithHint("`atm bridge --ssh HOST` needs none; else --nats nats://HOST:4222, or nats under [bridge] in team.toml")
	}
	if _, err := hostkey.ParseHost(string(b.Host)); err != nil {
		return failure.Usage("--host: %v", err)
	}
	b.ThroughServer(url, cmp.Or(c.String("creds"), configured.Creds), int(configured.Replicas))
	return nil
}

// throughSSH makes the bridge one to the host of --ssh. The project lies there where it lies here, unless --dir says
// another place.
func throughSSH(c *cli.Context, s *app.Scope, b *Bridge) (err error) {
	to := SSH{
		Target: c.String("ssh"), Options: c.Args().Slice(), Dir: c.String("dir"), Name: wire.Name(c.String("name")),
		Version: c.App.Version, MayAsk: output.IsTerminal(c.App.Reader),
	}
	if to.Target == "" || strings.HasPrefix(to.Target, "-") {
		return failure.Usage("--ssh: %q is not a host", to.Target).WithHint("`atm bridge --ssh me@build`")
	}
	if to.Name == "" {
		to.Name = HostOf(to.Target)
	}
	if _, err := hostkey.ParseHost(string(to.Name)); err != nil {
		return failure.Usage("what is %s called in the team?", to.Target).WithHint("`atm bridge --ssh %s --name NAME`", to.Target)
	}
	if project, isProject := strings.CutSuffix(s.Root.Path, "/.atm"); !c.IsSet("dir") && isProject {
		home, _ := os.UserHomeDir()
		if to.Dir = project; home != "" && (project == home || strings.HasPrefix(project, home+"/")) {
			to.Dir = strings.TrimPrefix(strings.TrimPrefix(project, home), "/")
		}
	} else if !c.IsSet("dir") {
		return failure.Usage("where is the project on %s?", to.Name).WithHint("`atm bridge --ssh %s --dir DIR`", to.Target)
	}
	machine, _ := os.Hostname()
	if err = nameHost(s, b, HostOf(machine)); err != nil {
		return err
	}
	b.ThroughSSH(to)
	return nil
}

// nameHost gives the bridge the name of this machine. One that has none yet takes a proposed one, with a new key.
func nameHost(s *app.Scope, b *Bridge, proposed wire.Name) error {
	names, err := s.Keys().Own()
	switch {
	case err != nil:
		return err
	case b.Host == "" && slices.Contains(names, proposed):
		b.Host = proposed
	case b.Host == "" && len(names) > 0:
		return failure.Usage("what is this machine called? It has keys for %s", app.Join(names)).WithHint("host under [bridge] in team.toml says it, or `atm bridge --host NAME`")
	case b.Host == "":
		b.Host = proposed
	}
	if _, err := hostkey.ParseHost(string(b.Host)); err != nil {
		return failure.Usage("what is this machine called? %v", err).WithHint("`atm bridge keygen --host NAME`")
	}
	if len(names) == 0 {
		_, b.NewKey, err = ed25519.GenerateKey(nil)
	}
	return err
}
