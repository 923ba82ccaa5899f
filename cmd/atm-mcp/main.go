// Command atm-mcp serves the Model Context Protocol on stdio. atm mcp starts it.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/mcp"
)

var version = "dev" // set by the linker

func main() { os.Exit(mcp.Main(version, os.Args[1:])) }
