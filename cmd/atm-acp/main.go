// Command atm-acp lets an editor talk to a member. atm starts it: atm acp NAME.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/acpagent"
)

var version = "dev" // set by the linker

func main() { os.Exit(acpagent.Main(version, os.Args[1:])) }
