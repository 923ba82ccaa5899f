package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var doctorCommand = &cli.Command{
	Name: "doctor", Aliases: []string{"diagnose", "fsck"}, Usage: "check everything, and name the command that mends it",
	UsageText:   "atm doctor\natm doctor --fix",
	Description: "Root, team.toml line by line, locks, disk, stray files, runners, hooks. Exit 1 when something\nis wrong.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "fix", Aliases: []string{"repair"}, Usage: "mend what can be mended without loss"},
	},
	Action: doctor,
}

// diagnosis is what doctor prints.
type diagnosis struct {
	Checks []teams.Check `json:"checks"`
}

func (d diagnosis) isWrong() bool {
	for _, check := range d.Checks {
		if check.Wrong() {
			return true
		}
	}
	return false
}

func (d diagnosis) String() string {
	var b strings.Builder
	for _, check := range d.Checks {
		b.WriteString(check.Severity + ": " + letter.Escape(check.Message) + "\n")
		if check.Fix != "" {
			b.WriteString("  " + letter.Escape(check.Fix) + "\n")
		}
	}
	if !d.isWrong() {
		b.WriteString("nothing is wrong\n")
	}
	return b.String()
}

func doctor(c *cli.Context) error {
	s, err := command.OpenRoot(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	d := diagnosis{s.Root.Doctor(ctx, command.Place(c), c.Bool("fix"))}
	place := installPlace(c)
	if s.Root.Accepted {
		place.Root = s.Root.Path
	}
	for _, tool := range agentconfig.Tools {
		for _, local := range []bool{false, true} {
			if check, ok := checkHooks(place, tool, local); ok {
				d.Checks = append(d.Checks, check)
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := command.Print(c, d); err != nil {
		return err
	}
	if d.isWrong() {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// checkHooks looks at the hooks in a tool's configuration, the user's or this
// worktree's; ok is false where there are none.
func checkHooks(place agentconfig.Installer, tool string, local bool) (check teams.Check, ok bool) {
	check = teams.Check{Code: "hooks." + tool, Severity: "ok"}
	fix := "atm install " + tool
	if local {
		fix += " --local"
	}
	st, err := place.Status(tool, local)
	var tracked *agentconfig.TrackedError
	if errors.As(err, &tracked) || errors.Is(err, fs.ErrNotExist) || err == nil && !st.Installed {
		return check, false
	}
	switch {
	case err != nil:
		check.Severity = "info"
		check.Message = fmt.Sprintf("whether %s has hooks is not known: %v", tool, err)
	case st.Missing != "":
		check.Severity, check.Fix = "error", fix
		check.Message = fmt.Sprintf("the hooks in %s run %s, which is not there: %s gets no mail in its turns", st.Path, st.Missing, tool)
	case !st.Current:
		check.Severity, check.Fix = "info", fix
		check.Message = fmt.Sprintf("the hooks in %s are not those that this atm installs", st.Path)
	default:
		check.Message = fmt.Sprintf("hooks of %s in %s", tool, st.Path)
	}
	return check, true
}
