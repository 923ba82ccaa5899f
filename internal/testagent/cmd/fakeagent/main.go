// Command fakeagent acts like a coding agent: see package testagent.
package main

import (
	"os"

	"github.com/agentteammail/atm/internal/testagent"
)

func main() { os.Exit(testagent.Main()) }
