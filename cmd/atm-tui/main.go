// Command atm-tui shows a team in a terminal. atm starts it: atm tui.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/tui"
)

var version = "dev" // set by the linker

func main() { os.Exit(tui.Main(version, os.Args[1:])) }
