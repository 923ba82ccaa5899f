// The runtime is not to ask again and again how many processors there are: that is
// a goroutine more, and the wake-up of a thread, at every start (2 % of it).
//
//go:debug updatemaxprocs=0

// Command atm carries mail between coding agents and the people they work
// with. One file a verb: its flags, one call, and what it prints.
package main

import (
	"context"
	"os"

	_ "github.com/agentteammail/atm/internal/headstart"
)

func main() { os.Exit(app().Run(context.Background(), os.Args[1:])) }
