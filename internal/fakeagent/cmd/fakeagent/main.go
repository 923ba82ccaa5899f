// Command fakeagent acts like a coding agent in a terminal; see the package
// of that name. It is for tests and for trying a runner by hand.
package main

import (
	"os"

	"github.com/agentteammail/atm/internal/fakeagent"
)

func main() { os.Exit(fakeagent.Main()) }
