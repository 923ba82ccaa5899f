// Command atm-claude carries mail to and from Claude Code's own agent teams. atm starts it: atm claude sync.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/claudeteam"
)

var version = "dev" // set by the linker

func main() { os.Exit(claudeteam.Main(version, os.Args[1:])) }
