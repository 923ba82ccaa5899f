package agent

import (
	"context"

	"github.com/urfave/cli/v2"
)

var interruptCommand = &cli.Command{
	Name: "interrupt", Category: "! pause escape esc ctrl-c", ArgsUsage: "NAME", Usage: "interrupt an agent's turn, as a person would with Escape",
	UsageText: "atm interrupt bob",
	Description: `Presses the keys that interrupt this agent. Refused while it asks something, because the
keys would answer that: atm pending. An agent without a runner that reports its turn on the
older ACP wire gets a cancel request there: atm events NAME --follow --as-wire acp.`,
	Action: withAgent(func(ctx context.Context, _ *cli.Context, k *call) error {
		o, err := k.s.Interrupt(ctx, k.name())
		return k.print(resultOf(k.name(), o), err)
	}),
}
