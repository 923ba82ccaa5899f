package agent

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
)

// otherWords are what other programs call what the verbs here do.
var otherWords = []*cli.Command{
	cmdline.NoCommand("start start-all", "atm run NAME -- CMD starts an agent, atm up those whom team.toml names"),
	cmdline.NoCommand("kill terminate halt quit kill-session", "atm stop NAME; all of them: atm down"),
	cmdline.NoCommand("shutdown stop-all", "atm down stops the team, atm stop NAME one agent"),
	cmdline.NoCommand("console a", "atm attach NAME"),
	cmdline.NoCommand("ssh", "an agent's terminal: atm attach NAME; the team on another machine: atm bridge --ssh HOST"),
	cmdline.NoCommand("exec", `to type into its terminal: atm type NAME "…" --enter; to start one: atm run NAME -- CMD`),
	cmdline.NoCommand("apply scale rollout", "atm up starts those whom team.toml names, atm down stops them; atm restart NAME"),
	cmdline.NoCommand("compose", `a message: atm send NAME "…"; the team: atm up, atm down`),
	cmdline.NoCommand("reset", "an agent: atm restart NAME; a message: atm unread ID"),
	cmdline.NoCommand("pause", "a session: atm session pause ID; a turn: atm interrupt NAME"),
	cmdline.NoCommand("resume continue unpause", "a session: atm session resume ID; an agent: atm up NAME"),
	cmdline.NoCommand("detach", `Ctrl-\ d leaves a terminal; a program without one: atm run NAME --detach -- CMD`),
	cmdline.NoCommand("idle busy ready blocked is-idle", "atm team shows who is, atm event turn_idle shows you as idle; atm wait --idle NAME, --busy NAME or --blocked NAME waits; of a message: atm ack ID --blocked \"…\""),
	cmdline.NoCommand("is", "atm status NAME; atm wait --idle NAME --timeout 1s answers with its exit code"),
	cmdline.NoCommand("request", `atm ask NAME "…"; what waits for you: atm pending`),
	cmdline.NoCommand("yes no", "atm pending lists the open questions; atm approve NAME, atm reject NAME"),
	cmdline.NoCommand("peek", "mail: atm read --peek; a terminal: atm screen NAME"),
	cmdline.NoCommand("esc escape", "atm interrupt NAME"),
	cmdline.NoCommand("input send-input press key keys send-key sendkeys", `atm type NAME "…" --enter; a key: atm type NAME --raw '\e'`),
	cmdline.NoCommand("emit", "atm event KIND k=v"),
}
