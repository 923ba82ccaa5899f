// A command lives for milliseconds: it does not ask each second how many processors it may use.
//
//go:debug updatemaxprocs=0

// Command atm carries mail between coding agents and the people they work with.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/cli"
)

var version = "dev" // set by the linker

func main() { os.Exit(cli.Run(version, os.Args[1:])) }
