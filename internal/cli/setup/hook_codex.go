package setup

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/ptyrun/process"
)

// startFollower starts the program that gives mail to a thread of Codex, unless one does already.
func startFollower(s *command.Scope, thread string) error {
	name := s.Me.Agent()
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

// terminalNames returns the names under which people have started Codex in this directory. All terminals of a user share a
// server, which runs the hooks with the environment of the first one: that one's name may be another's. Only a hook that
// is told no name needs it.
func terminalNames() []string {
	if os.Getenv("ATM_RUN") != "" {
		return nil
	}
	here, _ := os.Getwd()
	terminals, _ := process.InTerminals("codex")
	return namesOf(terminals, os.Environ(), func(p process.Info) bool {
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID))
		return err != nil || dir == here
	}, func(p process.Info) []string { return process.Environment(p.PID) })
}

// namesOf returns the names of those terminals that have the hook's account and are in its directory.
func namesOf(terminals []process.Info, own []string, isHere func(process.Info) bool, environ func(process.Info) []string) (names []string) {
	value := func(env []string, key string) (value string) {
		for _, line := range env {
			if v, ok := strings.CutPrefix(line, key+"="); ok {
				value = v
			}
		}
		return value
	}
	for _, p := range terminals {
		env := environ(p)
		isOurs := value(env, "HOME") == value(own, "HOME") && value(env, "CODEX_HOME") == value(own, "CODEX_HOME")
		if name := value(env, "ATM_AGENT"); name != "" && isOurs && isHere(p) && value(env, "ATM_RUN") == "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
