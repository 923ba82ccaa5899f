// Command atm-web shows a team in a browser. atm web starts it.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/web"
)

var version = "dev" // set by the linker

func main() { os.Exit(web.Main(version, os.Args[1:])) }
