package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/cli/setup"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/tui/keymap"
	"github.com/agentteammail/atm/internal/policy"
)

// companions are the verbs of atm-more: what they link would slow down every start of atm.
var companions = []*cli.Command{
	{Name: "mcp", Action: runCompanion, Usage: "offer the mail as MCP tools, on stdio",
		UsageText: `atm mcp --as bob
atm install claude            makes Claude Code start it; also codex, gemini`,
		Description: `Tools: send read reply ack wait team pending thread search. Resources: atm://inbox, atm://team.
A message counts as read once the client has received it.
stdout carries only the protocol; the server ends when the client closes stdin.`,
	},
	{Name: "tui", Category: "ui dashboard view", Action: runCompanion, Usage: "the team, your mail and what is waiting for you, in a terminal",
		UsageText: `atm tui --as me
atm tui                read-only`,
		Description: keymap.Help() + `
Arrows and the mouse work. Looking marks nothing as read. It rings for what is waiting for you.`,
	},
	{Name: "acp", Action: runCompanion, ArgsUsage: "[NAME]", Usage: "talk to a member from an editor: an ACP agent on stdio",
		UsageText: `atm acp bob --as me
atm acp bob --as me --root /home/me/app/.atm    for an editor, from any directory
atm acp                                         the lead of the team in the session's directory`,
		Description: `A session is a thread, and can be loaded again. A prompt is a message; it ends when bob answers,
or when the turn that took it ends. His permission requests come to you if you may answer them.
Cancelling takes back an unread message, or else interrupts him. stdout carries only the protocol.`,
	},
	{
		Name: "bridge", Category: "remote ssh connect tunnel sync push", Action: runBridge, ArgsUsage: "[SSH-OPTION…]", Usage: "carry mail to and from the team on other machines",
		UsageText: `atm bridge --ssh build                     one machine; -- -p 2222: options of ssh
atm bridge --nats nats://build:4222        several, over a nats-server`,
		Description: `Runs until interrupted, or --once; sending works without it. The team has the same name everywhere.
Over ssh the two machines trust each other from then on; the other one needs atm and a team.
Mail waits in the outbox until the other machine has it.
With a server, run atm bridge keygen on each machine first, and atm bridge trust on the others.
Mail waits on the server then. Two projects that share one need teams of different names.`,
		Flags: command.BridgeFlags, Subcommands: setup.BridgeCommands,
	},
	{
		Name: "web", Category: "browser gui page serve server", Action: runCompanion, Usage: "the team in a browser: who is busy, what is waiting for you, all mail",
		UsageText: `atm web --as me
atm web --listen 8080          at this port, without --as read-only`,
		Description: `Prints an address that lets one browser in, once; on a terminal it also opens your browser, with
an address of its own. Ctrl-C ends it. Without --as it is read-only. Looking marks nothing as read;
each button has the same rights as its command.`,
		Flags: command.WebFlags,
	},
	{
		Name: "claude", Usage: "exchange mail with Claude Code's own agent teams",
		UsageText: "atm claude sync",
		Action: func(*cli.Context) error {
			return failure.Usage("claude what?").WithHint("`atm claude sync`; to run Claude Code as an agent: `atm run NAME -- claude`")
		},
		Subcommands: []*cli.Command{{
			Name: "sync", Action: runCompanion, ArgsUsage: "[TEAM]", Usage: "carry mail to and from a Claude Code team until interrupted",
			UsageText: `atm claude sync --join
atm claude sync session-1a2b3c4d --once`,
			Description: `TEAM is a directory in ~/.claude/teams (or under CLAUDE_CONFIG_DIR); default: the only one.
Its members get mailboxes here, and ours get inboxes there. Its agents can write only
to names in its config.json: --join adds ours.`,
			Flags: command.ClaudeFlags,
		}},
	},
}

// runCompanion replaces this process by atm-more. It returns if there is none that can run.
func runCompanion(c *cli.Context) error {
	verb := strings.Fields(strings.TrimPrefix(c.Command.HelpName, "atm "))[0] // of atm claude sync: claude
	path, err := command.FindCompanion(c, app.More, "which does this")
	if err != nil {
		return err
	}
	return failure.Exit(replaceBy(c.App, path, append([]string{verb}, cmdline.LineOf(c).CompanionArgs()...)))
}

// runBridge is runCompanion, but for a word that is no command of bridge: only options of ssh may follow.
func runBridge(c *cli.Context) error {
	if word := c.Args().First(); word != "" && !strings.HasPrefix(word, "-") {
		e := cmdline.UnknownWord(c.Command, word)
		if hint := e.Hint.String(); strings.HasPrefix(hint, "atm bridge --") || strings.HasPrefix(hint, "did you mean") { // bridge ssh build
			return e
		}
		return e.WithHint("if it is a machine: `atm bridge --ssh %s`; else: `atm bridge --help`", policy.Quote(word))
	}
	return runCompanion(c)
}

// replaceBy replaces this process by a program; Windows cannot, so there it waits for the exit code.
func replaceBy(program *cli.App, path string, args []string) (code int) {
	cmd := exec.Command(path, args...)
	err := syscall.Exec(path, cmd.Args, os.Environ())
	if errors.Is(err, errors.ErrUnsupported) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program.Reader, program.Writer, program.ErrWriter
		err = cmd.Run()
	}
	if cmd.ProcessState != nil {
		return cmd.ProcessState.ExitCode()
	}
	fmt.Fprintf(program.ErrWriter, "atm: run %s: %v\n", path, err)
	return failure.ExitFailed
}
