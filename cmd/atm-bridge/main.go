// Command atm-bridge carries mail to and from a team's other machines. atm starts it: atm bridge.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/bridge"
)

var version = "dev" // set by the linker

func main() { os.Exit(bridge.Main(version, os.Args[1:])) }
