package setup

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/hook"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// What a hook waits for at most: its tool stands still meanwhile.
const (
	hookLock  = 200 * time.Millisecond
	hookInput = time.Second
	hookDrain = 100 * time.Millisecond // where nothing is made of it
)

var hookCommand = &cli.Command{
	Name: "hook", ArgsUsage: "TOOL [JSON…]", Usage: "what an agent's program calls: its events in, mail out",
	UsageText: "atm hook claude < event.json\natm hook codex-notify JSON",
	Description: "TOOL: claude, codex, gemini, opencode; atm install TOOL writes its configuration.\n" +
		"Reads the tool's JSON from stdin, appends the events it means, prints the answer.\n" +
		"Fails open: whatever goes wrong, one line on stderr, nothing on stdout, exit 0.",
	Action: runHook,
}

// runHook returns what went wrong; the app fails open with that.
func runHook(c *cli.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // Go's own exit code for it, 2, would block the tool
			err = fmt.Errorf("hook: %v", p)
		}
	}()
	output.IgnoreSIGPIPE()
	tool, err := hook.ParseTool(c.Args().First())
	var s *command.Scope
	if err == nil {
		s, err = openForHook(c)
	}
	if s == nil {
		hook.ReadInput(os.Stdin, hookDrain) // a tool may take a closed pipe for a failure
		return err
	}
	var in []byte
	if c.Args().Len() > 1 { // Codex's older form
		in = []byte(c.Args().Get(1))
	} else if in, err = hook.ReadInput(os.Stdin, hookInput); err != nil {
		return err
	}
	exit, err := hook.Handle(c.Context, tool, in, hook.Options{
		Box: s.Me, Flags: s.Flags(), Stdout: os.Stdout, Stderr: os.Stderr,
		Pass: func(m *wire.Message) bool { return s.Team.HoldReason(m, s.Me.Agent()) == "" },
		Turn: func(session string) hook.Turn {
			state, err := s.Team.State(s.Me.Agent())
			if err != nil {
				return hook.Turn{}
			}
			return hook.TurnOf(state, session)
		},
		Primer: func() string {
			text, _ := primerText(s, teams.Hooks)
			return text
		},
	})
	if exit != 0 {
		return command.Exit(exit)
	}
	return err
}

// openForHook opens the mailbox of the agent that the environment names. nil
// without an error: there is nothing to say outside of a team, where nobody is
// named, and where a runner speaks for the agent.
func openForHook(c *cli.Context) (*command.Scope, error) {
	if c.String("as") == "" && os.Getenv("ATM_AGENT") == "" {
		return nil, nil
	}
	if !c.IsSet("lock-timeout") {
		c.Set("lock-timeout", hookLock.String())
	}
	s, err := command.OpenMe(c)
	var named *teams.NoRootError
	switch {
	case errors.As(err, &named):
		return nil, err
	case errors.Is(err, teams.ErrNoRoot), errors.Is(err, teams.ErrNoTeam), errors.Is(err, mailbox.ErrNoAgent):
		return nil, nil
	case err != nil:
		return nil, err
	case !s.Root.Accepted:
		return nil, command.Refused("nobody here made or accepted %s; if it is yours: atm init", s.Root.Path)
	}
	var refused *command.Error
	if err = s.MayWrite(); errors.As(err, &refused) {
		return nil, nil
	}
	return s, err
}
