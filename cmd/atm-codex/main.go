// Command atm-codex gives mail to a thread of Codex that a person has started. Hooks and senders start it.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/follow"
)

var version = "dev" // set by the linker

func main() { os.Exit(follow.Main(version, os.Args[1:])) }
