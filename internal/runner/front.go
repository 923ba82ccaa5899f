package runner

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/ptyrun/acp"
)

// frontWord is the driver of an agent that speaks the Agent Client Protocol, and the first word of what is
// run on the terminal in its place: this program, as package ptyrun/acp.
const frontWord = "acp"

// frontOf is the front of a spec's agent. What it needs to know is in its second word.
func frontCommand(spec runspec.Spec) []string {
	about, _ := json.Marshal(runspec.Spec{Root: spec.Root, Team: spec.Team, Agent: spec.Agent, Run: spec.Run, Dir: spec.Dir, ACP: spec.ACP})
	return []string{os.Args[0], frontWord, string(about)}
}

func runFront(version, about string, words []string) int {
	var spec runspec.Spec
	json.Unmarshal([]byte(about), &spec) // as frontOf wrote it
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
