package runner

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/ptyrun/acp"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
)

// frontWord is the driver of an agent that speaks the Agent Client Protocol, and the first word of the
// program that is run on the terminal in its place: atm-runner itself.
const frontWord = "acp"

// frontCommand is the front of a spec's agent. What the front needs to know is in its second word.
func frontCommand(spec runspec.Spec) []string {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	about, _ := json.Marshal(runspec.Spec{Root: spec.Root, Team: spec.Team, Agent: spec.Agent, Run: spec.Run, Dir: spec.Dir, Preferences: spec.Preferences})
	return append([]string{program, frontWord, string(about)}, spec.Command...)
}

// runFront is the front: it returns its exit code.
func runFront(version, about string, words []string) int {
	o, err := frontOptions(about)
	if err != nil {
		fmt.Fprintln(os.Stderr, "atm-runner:", err)
		return command.ExitFailed
	}
	o.Version, o.Command = version, words
	return acp.Run(o)
}

func frontOptions(about string) (o acp.Options, err error) {
	var spec runspec.Spec
	if err := json.Unmarshal([]byte(about), &spec); err != nil {
		return o, err
	}
	if spec.Preferences != nil {
		if err := json.Unmarshal(spec.Preferences, &o.Session); err != nil {
			return o, err
		}
	}
	found, _, err := rootdir.Find(rootdir.Place{Dir: spec.Root, Flag: spec.Root})
	if err != nil {
		return o, err
	}
	root, err := teams.Open(found, nil)
	if err != nil {
		return o, err
	}
	root.LockTimeout = lockTimeout
	team, err := root.Team(spec.Team)
	if err != nil {
		return o, err
	}
	o.Box, o.Run, o.Dir = team.Box(spec.Agent), spec.Run, spec.Dir
	return o, nil
}
