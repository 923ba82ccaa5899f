package claudeteam

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
)

// Main runs atm claude sync and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("claude", version, words, command.With(app.OpenTeam, run))
}

func run(c *cli.Context, s *app.Scope, p *command.Printer) error {
	dir, err := claudeTeam(c.Args().First())
	if err = cmp.Or(s.MayAct(policy.Sync, "all"), err); err != nil {
		return err
	}
	team := s.Opened()
	sync := &Sync{Team: team, Dir: dir, Join: c.Bool("join"), LockWait: s.Team.LockWait(), Report: func(t Transfer) {
		p.PrintAs(t, letter.Escape(t.String())) // Follow ends once nobody reads the output
	}}
	if c.Bool("once") {
		err = s.Await(sync.Pass)
	} else {
		p.Warn("carrying mail between team %s and %s", team.Name(), dir)
		err = s.Follow(func(ctx context.Context) error {
			return sync.Run(ctx, func(err error) { s.Given.Explain(explainFile(dir, err)).Print(p.Err) })
		})
	}
	if errors.Is(err, ErrEnded) {
		return failure.NotFound("%w", err).WithHint("mail that its members did not get is unread here: `atm team`")
	}
	return explainFile(dir, err)
}

// explainFile says what to do about a file of Claude Code's in a team's directory, of which doctor knows nothing.
func explainFile(dir string, err error) error {
	bad, isBad := errors.AsType[*FileError](err)
	if !isBad {
		return err
	}
	file := policy.Quote(filepath.Join(dir, bad.File))
	return failure.Failed("%w", err).WithHint("mend it, or set it aside and look into it later: mv %s %[1]s.bad", file)
}

// claudeTeam returns the directory of the team that the argument names, or of the only one.
func claudeTeam(name string) (string, error) {
	home, _ := os.UserHomeDir()
	under := filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "teams")
	found, _ := filepath.Glob(filepath.Join(under, cmp.Or(name, "*"), "config.json"))
	if len(found) == 1 {
		return filepath.Dir(found[0]), nil
	}
	var names []string
	for _, file := range found {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	if len(found) > 0 {
		return "", failure.Usage("which team? there are %s", app.Join(names)).WithHint("`atm claude sync %s`", names[0]).WithCandidates(names...)
	}
	return "", failure.NotFound("no Claude Code team in %s", filepath.Join(under, name)).
		WithHint("Claude Code makes one when it starts with CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1")
}
