package runner

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/ptyrun/acp"
)

// frontWord is the driver of an agent that speaks the Agent Client Protocol. Such an agent runs behind a front on the
// terminal: this program with frontWord as its first argument, which is package ptyrun/acp.
const frontWord = "acp"

// frontCommand returns the front of a spec's agent. Its second argument is the part of the spec that the front needs.
func frontCommand(spec runspec.Spec) []string {
	about, _ := json.Marshal(runspec.Spec{Root: spec.Root, Team: spec.Team, Agent: spec.Agent, Run: spec.Run, Dir: spec.Dir, ACP: spec.ACP})
	return []string{os.Args[0], frontWord, string(about)}
}

func runFront(version, about string, words []string) int {
	var spec runspec.Spec
	json.Unmarshal([]byte(about), &spec) // written by frontCommand
	code := command.ExitFailed
	team, err := openTeam(spec)
	if err == nil {
		code, err = acp.Run(acp.Options{
			Box: team.Box(spec.Agent), Run: spec.Run, Command: words, Dir: spec.Dir, Version: version, Session: spec.ACP,
		})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\r\n", err)
	}
	return code
}
