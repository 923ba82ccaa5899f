package setup

import (
	"os/exec"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
)

// startFollower starts the program that gives mail to a thread of Codex, unless one does already.
func startFollower(s *app.Scope, thread string) error {
	name := s.Me.Agent()
	if !s.Root.InSharedServer() { // no server has the thread, as with codex --no-daemon
		return nil
	}
	if p, _ := s.Team.Conversation(name, thread); len(p.Opens) > 0 && s.Team.IsFollowed(name) {
		return nil
	}
	program, err := command.Companion("atm-codex")
	if err != nil {
		return nil // mail comes with the hooks then
	}
	cmd := exec.Command(program, "follow", string(name), thread, "--root", s.Root.Path, "--team", string(s.Team.Name))
	cmd.Dir = s.Root.Path
	command.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
