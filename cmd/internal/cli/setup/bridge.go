package setup

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// BridgeCommands are the subs of bridge, which is itself a program of its own.
var BridgeCommands = []*cli.Command{{
	Name: "keygen", Usage: "make a key, and say what to type elsewhere",
	UsageText: "atm bridge keygen --host laptop",
	Description: `Run again, it prints the same. From then on, an atm too old for bridges refuses the root.
The key is in your configuration directory, never in the root.`,
	Flags:  []cli.Flag{&cli.StringFlag{Name: "host", Usage: "this machine's `NAME`, like an agent's (default: host in team.toml, else its key)"}},
	Action: command.With(openBridge, keygen),
}, {
	Name: "trust", ArgsUsage: "HOST KEY", Usage: "trust a machine, and exchange mail with it",
	UsageText: `atm bridge trust build KEY      the line that atm bridge keygen prints there
atm bridge trust build KEY --replace`,
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "replace", Usage: "accept a new key for the machine"}},
	Action: command.With(openBridge, trust),
}, {
	Name: "retry", Usage: "retry what the bridge did not accept",
	UsageText:   "atm bridge retry",
	Description: "Rejected messages are in the team's .bridge/bad, with the reasons; atm doctor lists them.",
	Action: command.With(openBridge, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		n, err := presence.RetryRejected(s.Team)
		text := letter.Many(n, "envelope") + " will be retried when the bridge runs"
		return p.Confirming().PrintUnlessError(err, map[string]any{"retried": n}, text)
	}),
}}

// openBridge opens the team for a verb that decides which machines belong to it, which no agent may do.
func openBridge(g *app.Given) (*app.Scope, error) {
	s, err := app.OpenTeam(g)
	if err == nil {
		err = s.MayAct(policy.Bridge, "")
	}
	return s, err
}

func keygen(c *cli.Context, s *app.Scope, p *command.Printer) error {
	host := cmp.Or(wire.Name(c.String("host")), s.Team.Host())
	if _, err := hostkey.ParseHost(string(host)); err != nil {
		return failure.Usage("what is this machine called? %v", err).WithHint("`atm bridge keygen --host laptop`")
	}
	if s.Root.IsLink(host) {
		return failure.Refused("%s is a root on this machine, by a link", host).WithHint("another name: `atm bridge keygen --host laptop`")
	}
	public, err := s.Keys().Generate(host)
	key := hostkey.EncodeKey(public)
	return p.PrintUnlessError(err, map[string]any{"host": host, "key": key}, fmt.Sprintf("run on each other machine:\natm bridge trust %s %s", host, key))
}

func trust(c *cli.Context, s *app.Scope, p *command.Printer) error {
	host, err := hostkey.ParseHost(c.Args().First())
	key, keyErr := hostkey.ParseKey(c.Args().Get(1))
	if err := cmp.Or(err, keyErr); err != nil {
		return failure.Usage("%v", err).WithHint("`atm bridge keygen`, on that machine, prints what to type here")
	}
	if s.Root.IsLink(host) {
		return failure.Refused("%s is a root on this machine, by a link", host).WithHint("`atm link --remove %s`; or give the machine another name", host)
	}
	err = s.Keys().Trust(host, key, c.Bool("replace"))
	if errors.Is(err, hostkey.ErrOtherKey) {
		return failure.Refused("%w", err).WithHint("if %s has a new key: `atm bridge trust %[1]s KEY --replace`", host)
	}
	if errors.Is(err, hostkey.ErrOwn) {
		return failure.Refused("%w", err).WithHint("give that machine another name: there, `atm bridge keygen --host NAME`")
	}
	return p.Confirming().PrintUnlessError(err, map[string]any{"host": host}, p.Say("host %s is trusted: `atm send NAME@%[1]s \"…\"`", host))
}
