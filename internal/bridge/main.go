package bridge

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Main is the program atm-bridge: it returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("bridge", runspec.Version(version), words, func(c *cli.Context) error {
		do := map[string]func(*cli.Context, *command.Scope) error{"": carry, "keygen": keygen, "trust": trust, "retry": retry}[c.Args().First()]
		if do == nil {
			return command.Usage("bridge what? %q is none of keygen, trust, retry", c.Args().First()).WithHint("atm help bridge")
		}
		s, err := command.OpenTeam(c)
		if err != nil {
			return err
		}
		if err = s.MayAct("bridge", "other machines"); err == nil && command.InAgent() {
			err = command.Refused("an agent may not bridge the team to other machines").WithHint("ask a person")
		}
		if err != nil {
			return err
		}
		return do(c, s)
	})
}

// settings are what team.toml and the flags say; flags count first.
func settings(c *cli.Context, s *command.Scope) (config.Bridge, error) {
	team, err := s.Team.Config()
	if err != nil {
		return config.Bridge{}, err
	}
	b := team.Bridge
	b.NATS, b.Creds = cmp.Or(c.String("nats"), b.NATS), cmp.Or(c.String("creds"), b.Creds)
	b.Host = cmp.Or(wire.Name(c.String("host")), b.Host)
	if b.Host == "" {
		return b, command.Usage("what is this machine called?").WithHint("%s --host NAME, or host under [bridge] in team.toml", strings.TrimSpace("atm bridge "+c.Args().First()))
	}
	if _, err = hostkey.ParseHost(string(b.Host)); err != nil {
		err = command.Usage("--host: %v", err)
	}
	return b, err
}

func keygen(c *cli.Context, s *command.Scope) error {
	b, err := settings(c, s)
	if err != nil {
		return err
	}
	said := "made the key of host " + string(b.Host)
	public, err := s.Root.Keys.Generate(b.Host)
	if errors.Is(err, hostkey.ErrOtherKey) {
		var private ed25519.PrivateKey
		if private, err = s.Root.Keys.Private(b.Host); err == nil {
			public, said = private.Public().(ed25519.PublicKey), "host "+string(b.Host)+" has its key"
		}
	}
	if err == nil {
		err = rootdir.Raise(s.Root.Path)
	}
	if err != nil {
		return err
	}
	line := fmt.Sprintf("atm bridge trust %s %s", b.Host, hostkey.Text(public))
	return command.PrintAs(c, map[string]any{"host": b.Host, "key": hostkey.Text(public)}, said+"; on each other machine: "+line)
}

func trust(c *cli.Context, s *command.Scope) error {
	if c.NArg() != 3 {
		return command.Usage("trust needs a host's name and its key").WithHint("atm bridge keygen, on that machine, prints the command to type here")
	}
	host, err := hostkey.ParseHost(c.Args().Get(1))
	if err != nil {
		return command.Usage("%v", err)
	}
	key, err := hostkey.ParseKey(c.Args().Get(2))
	if err != nil {
		return command.Usage("%v", err).WithHint("atm bridge keygen, on that machine, prints it")
	}
	if err = s.Root.Keys.Trust(host, key, c.Bool("replace")); errors.Is(err, hostkey.ErrOtherKey) {
		return command.Refused("%w", err).WithHint("if %s has a new key: atm bridge trust %[1]s KEY --replace", host)
	} else if err == nil {
		err = rootdir.Raise(s.Root.Path)
	}
	if err != nil {
		return err
	}
	return command.PrintAs(c, map[string]any{"host": host}, fmt.Sprintf("host %s is trusted: atm send NAME@%[1]s \"…\"", host))
}

func retry(c *cli.Context, s *command.Scope) error {
	n, err := Retry(s.Team.Dir())
	if err != nil {
		return err
	}
	return command.PrintAs(c, map[string]any{"retried": n}, letter.Many(n, "envelope")+" to be tried again by the bridge")
}

func carry(c *cli.Context, s *command.Scope) error {
	set, err := settings(c, s)
	if err == nil && set.NATS == "" {
		err = command.Usage("which server?").WithHint("atm bridge --nats nats://HOST:4222, or nats under [bridge] in team.toml")
	}
	if err == nil {
		_, err = s.Root.Keys.Private(set.Host)
	}
	if errors.Is(err, hostkey.ErrNoKey) {
		err = command.NotFound("%w", err).WithHint("atm bridge keygen --host %s", set.Host)
	}
	if err != nil {
		return err
	}
	isDone := false
	b := &Bridge{
		Root: s.Root, Team: s.Team, Host: set.Host, URL: set.NATS, Creds: set.Creds, Replicas: int(set.Replicas),
		Report: func(t Transfer) {
			isDone = true
			command.PrintAs(c, t, letter.Escape(t.String())) // where nobody reads, Follow ends
		},
		Warn: func(err error) { command.Warn(c, "%v", err) },
		Note: func(line string) { command.Warn(c, "%s", line) },
	}
	if c.Bool("once") {
		b.Note = func(string) {}
		if err = s.Await(b.Once); err == nil && !isDone && !c.Bool("json") {
			err = command.Print(c, command.Text("nothing to carry over"))
		}
	} else {
		err = s.Follow(b.Run)
	}
	if other := (*LeaseError)(nil); errors.As(err, &other) {
		return command.Locked("%w", err).WithHint("end that one, or give this machine a name of its own: atm bridge keygen --host NAME")
	} else if held := (*lockfile.HeldError)(nil); errors.As(err, &held) && held.Lock == Lock {
		return command.Locked("a bridge of team %s runs here already", s.Team.Name).WithHint("what waits goes out by itself: atm trace ID")
	}
	return err
}
