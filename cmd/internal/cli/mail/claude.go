package mail

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/claudeteam"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
)

var claudeCommand = &cli.Command{
	Name: "claude", Usage: "exchange mail with Claude Code's own agent teams",
	UsageText: "atm claude sync",
	Action: func(*cli.Context) error {
		return failure.Usage("claude what?").WithHint("atm claude sync; to run Claude Code as an agent: atm run NAME -- claude")
	},
	Subcommands: []*cli.Command{{
		Name: "sync", ArgsUsage: "[TEAM]", Usage: "carry mail to and from a Claude Code team until interrupted",
		UsageText: `atm claude sync --join
atm claude sync session-1a2b3c4d --once`,
		Description: `TEAM is a directory in ~/.claude/teams (or under CLAUDE_CONFIG_DIR); default: the only one.
Its members get mailboxes here, and ours get inboxes there. Its agents can write only
to names in its config.json: --join adds ours.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "carry what is waiting, then exit"},
			&cli.BoolFlag{Name: "join", Usage: "add our members to its config.json"},
		},
		Action: command.With(app.OpenTeam, claudeSync),
	}},
}

func claudeSync(c *cli.Context, s *app.Scope) error {
	dir, err := claudeTeam(c)
	if err = cmp.Or(s.MayAct("sync mail for", "all"), err); err != nil {
		return err
	}
	sync := &claudeteam.Sync{Team: s.Team, Dir: dir, Join: c.Bool("join"), Report: func(t claudeteam.Transfer) {
		command.PrintAs(c, t, letter.Escape(t.String())) // Follow ends once nobody reads the output
	}}
	if c.Bool("once") {
		err = s.Await(sync.Pass)
	} else {
		command.Warn(c, "carrying mail between team %s and %s", s.Team.Name, dir)
		err = s.Follow(func(ctx context.Context) error {
			return sync.Run(ctx, func(err error) { s.Given.Explain(explainFile(dir, err)).Print() })
		})
	}
	if errors.Is(err, claudeteam.ErrEnded) {
		return failure.NotFound("%w", err).WithHint("mail that its members did not get is unread here: atm team")
	}
	return explainFile(dir, err)
}

// explainFile says what to do about a file of Claude Code's in a team's directory, of which doctor knows nothing.
func explainFile(dir string, err error) error {
	bad, isBad := errors.AsType[*claudeteam.FileError](err)
	if !isBad {
		return err
	}
	file := policy.Quote(filepath.Join(dir, bad.File))
	return failure.Failed("%w", err).WithHint("mend it, or set it aside and look into it later: mv %s %[1]s.bad", file)
}

// claudeTeam returns the directory of the team that the argument names, or of the only one.
func claudeTeam(c *cli.Context) (string, error) {
	home, _ := os.UserHomeDir()
	teams := filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "teams")
	found, _ := filepath.Glob(filepath.Join(teams, cmp.Or(c.Args().First(), "*"), "config.json"))
	if len(found) == 1 {
		return filepath.Dir(found[0]), nil
	}
	var names []string
	for _, file := range found {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	if len(found) > 0 {
		return "", failure.Usage("which team? there are %s", app.Join(names)).WithHint("atm claude sync %s", names[0]).WithCandidates(names...)
	}
	return "", failure.NotFound("no Claude Code team in %s", filepath.Join(teams, c.Args().First())).
		WithHint("Claude Code makes one when it starts with CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1")
}
