package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/wire"
)

var claimCommand = &cli.Command{
	Name: "claim", Category: "lock\nrelease unlock    atm claim --release \"…\"", ArgsUsage: "[PATH…]", Usage: "say that you are about to edit files, or list who does",
	UsageText: `atm claim
atm claim parser.go docs --for 2h
atm claim --release parser.go`,
	Description: `A claim is of a file in the project, or of all in a directory. Whoever else edits that is told,
and so are you; with ATM_CLAIMS=refuse in its environment its hooks refuse such an edit. Claim again
to extend it. If somebody else has one of them, none is claimed: exit 5. Members in worktrees edit
other files.`,
	Flags: []cli.Flag{
		cmdline.DurationFlag("for", time.Hour, "it ends after `D` (default 1h, at most 24h)", "lease"),
		&cli.BoolFlag{Name: "release", Category: "done", Usage: "end your claims of these; a person ends anybody's"},
	},
	Action: func(c *cli.Context) error {
		o := claimOptions{words: c.Args().Slice(), lasts: cmdline.Duration(c, "for"), releases: c.Bool("release"), isTimed: c.IsSet("for")}
		open := app.OpenTeam
		if o.releases || o.isTimed || len(o.words) > 0 {
			open = app.OpenToWrite
		}
		return command.With(open, o.run)(c)
	},
}

// claimOptions are the flags and words of claim.
type claimOptions struct {
	words    []string
	lasts    time.Duration
	releases bool
	isTimed  bool // --for was given
}

func (o claimOptions) run(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmdline.NotBoth(c, "release for"); err != nil {
		return err
	}
	if o.lasts <= 0 || o.lasts > edits.MaxClaim {
		return failure.Usage("--for %s: must be above 0 and at most %s", o.lasts, edits.MaxClaim).WithHint("--for 2h; claiming again extends it")
	}
	if len(o.words) == 0 && !o.releases && !o.isTimed {
		all, err := edits.Claims(s.Team)
		return p.PrintUnlessError(err, map[string]any{"claims": append([]edits.Claim{}, all...)}, claimLines(s, all))
	}
	if len(o.words) == 0 {
		return failure.Usage("which claim? atm claim lists them").WithHint("%s", cmdline.LineOf(c).Completed("PATH"))
	}
	var paths []string
	for _, word := range o.words {
		if word == "" { // "$UNSET"
			return failure.Usage("which file? a path is empty").WithHint("`atm claim PATH`")
		}
		path, err := filepath.Abs(word)
		if err != nil {
			return err
		}
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) && s.IsMember(word) {
			return failure.Usage("%s is a member, and no file here", word).WithHint("`atm claim` lists the claims; a file of that name is ./%s", word)
		}
		paths = append(paths, path)
	}
	if o.releases {
		return o.release(c, s, p, paths)
	}
	for _, path := range paths {
		if err := s.MayClaim(path); err != nil {
			return err
		}
	}
	claimed, err := edits.ClaimPaths(c.Context, s.Team, s.Me.Agent(), paths, o.lasts)
	if taken, isTaken := errors.AsType[*edits.ClaimedError](err); isTaken {
		err = failure.Refused("%w", err).WithHint("wait, or ask: `atm send %s \"…\"`%s", taken.By, o.ending(s, taken.By))
	}
	var text strings.Builder
	for _, c := range claimed {
		fmt.Fprintf(&text, "%s is yours until %s\n", letter.Quote(edits.ShownPath(s.Team, c.Path), 300), letter.Stamp(c.Until))
		for _, e := range c.Edits {
			fmt.Fprintf(&text, "%s edited it %s\n", e.By, letter.Ago(time.Now(), e.At))
		}
	}
	return p.Confirming().PrintDone(map[string]any{"claimed": append([]edits.NewClaim{}, claimed...)}, text.String(), err)
}

// ending says how to end another's claim; "": this process may not.
func (o claimOptions) ending(s *app.Scope, other wire.Name) failure.Hint {
	if s.May(policy.Release, other) != nil {
		return ""
	}
	return "; to end it: `atm claim --release PATH`"
}

// release ends claims: one's own, and those of others if policy.Rights has it.
func (o claimOptions) release(c *cli.Context, s *app.Scope, p *command.Printer, paths []string) error {
	released, text, me := []string{}, "", s.Me.Agent()
	for i, path := range paths {
		other, isOthers := edits.ClaimedBy(s.Team, path, me)
		by := me
		if isOthers && s.May(policy.Release, other.By) == nil {
			by = other.By
		}
		had, err := edits.ReleaseClaim(c.Context, s.Team, by, path)
		if err == nil && had == "" {
			err = failure.NotFound("nobody has a claim of %s", letter.Quote(o.words[i], 300)).WithHint("`atm claim` lists all")
			if isOthers { // or of a directory above
				err = failure.Refused("%w", &edits.ClaimedError{Claim: other}).WithHint("ask: `atm send %s \"…\"`%s", other.By, o.ending(s, other.By))
			}
		}
		if err != nil {
			return p.Confirming().PrintDone(map[string]any{"released": released}, text, err)
		}
		released = append(released, path)
		whose := ""
		if had != me {
			whose = fmt.Sprintf(", which %s had claimed", had)
		}
		text += fmt.Sprintf("released %s%s\n", letter.Quote(edits.ShownPath(s.Team, path), 300), whose)
	}
	return p.Confirming().PrintAs(map[string]any{"released": released}, text)
}

func claimLines(s *app.Scope, all []edits.Claim) string {
	if len(all) == 0 {
		return "nothing is claimed"
	}
	var text strings.Builder
	for _, c := range all {
		fmt.Fprintf(&text, "%s  until %s  %s\n", c.By, letter.Stamp(c.Until), letter.Quote(edits.ShownPath(s.Team, c.Path), 300))
	}
	return text.String()
}
