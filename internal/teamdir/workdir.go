package teamdir

import (
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/wire"
)

// SharesDir returns another agent of this root that works in a directory, or "": one that has last run there, or would by
// its team.toml.
func (t *Team) SharesDir(name wire.Name, dir string) (string, error) {
	names, err := t.root.Teams()
	if err != nil {
		return "", err
	}
	for _, n := range names {
		team := t
		if n != t.Name {
			if team, err = t.root.Team(n); err != nil {
				return "", err
			}
		}
		other, err := team.memberIn(dir, func(a wire.Name) bool { return team.Name == t.Name && a == name })
		if err != nil || other != "" {
			return other, err
		}
	}
	return "", nil
}

// memberIn returns a member, but not one of which isSelf is true, that works in a directory.
func (t *Team) memberIn(dir string, isSelf func(wire.Name) bool) (string, error) {
	plan, err := t.Config()
	if err != nil {
		return "", err
	}
	boxes, err := t.Boxes()
	if err != nil {
		return "", err
	}
	for _, box := range boxes {
		info, err := runinfo.Read(t.Dir(), box.Agent())
		if err != nil {
			return "", err
		}
		if IsSameDir(info.Cwd, dir) && !isSelf(box.Agent()) {
			return box.Address().String(), nil
		}
	}
	for name, m := range plan.Members {
		if !isSelf(name) && mayStartIn(m) && IsSameDir(t.WorkDir(m.Cwd), dir) {
			return wire.Address{Team: t.Name, Agent: name}.String(), nil
		}
	}
	return "", nil
}

// mayStartIn reports whether atm starts a member in the directory that its team.toml names.
func mayStartIn(m config.Member) bool { return len(m.Command) > 0 && !m.Worktree }

func IsSameDir(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	first, err := os.Stat(a)
	second, bad := os.Stat(b)
	if err != nil || bad != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	return os.SameFile(first, second)
}
