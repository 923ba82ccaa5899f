package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

// The programs beside atm. A runner is one of its own: many run at once, and each would hold more memory with what More
// links. More is called with the verb first.
const (
	Runner = "atm-runner"
	More   = "atm-more"
)

// Companion finds another of atm's programs: beside this one, else on PATH.
func Companion(name string) (string, error) {
	self, _ := os.Executable()
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
		return path, nil
	}
	return exec.LookPath(name)
}

// followerVariables are what the follower gets of the environment of the program that it follows. It gets nothing of whoever
// starts it, which may be another agent.
var followerVariables = []string{"HOME", "PATH", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}

// startFollower starts the program that gives mail to a thread, which a process shows. It outlives this one.
func startFollower(t *teamdir.Team, name wire.Name, session string, pid int) error {
	program, err := Companion(More)
	if err != nil {
		return err
	}
	root := t.Root().Path
	cmd := exec.Command(program, all.Follower(), "follow", string(name), session, "--root", root, "--team", string(t.Name))
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(process.Environment(pid), func(pair string) bool {
		variable, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(followerVariables, variable)
	})
	Detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
