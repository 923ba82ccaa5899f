// Program atm-more is beside atm, which starts it: the verbs that link much, each by the word in front, so that each
// start of atm stays short. Their help pages are atm's.
package main

import (
	"fmt"
	"os"

	"github.com/agentteammail/atm/cmd/internal/acpagent"
	"github.com/agentteammail/atm/cmd/internal/bridge"
	"github.com/agentteammail/atm/cmd/internal/claudeteam"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/mcp"
	"github.com/agentteammail/atm/cmd/internal/tui"
	"github.com/agentteammail/atm/cmd/internal/web"
)

var version = "dev" // set by the linker

var verbs = map[string]func(version string, words []string) (code int){
	"acp": acpagent.Main, "bridge": bridge.Main, "claude": claudeteam.Main, "mcp": mcp.Main, "tui": tui.Main, "web": web.Main,
}

func main() { os.Exit(run(os.Args[1:])) }

func run(words []string) (code int) {
	verb := ""
	if len(words) > 0 {
		verb, words = words[0], words[1:]
	}
	switch act := verbs[verb]; {
	case act != nil:
		return act(version, words)
	case verb == "version":
		fmt.Println("atm-more", command.Version(version))
		return failure.ExitDone
	default:
		fmt.Fprintln(os.Stderr, "atm-more: atm starts this program; for what there is: atm help")
		return failure.ExitUsage
	}
}
