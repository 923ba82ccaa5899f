// Command atm carries mail between coding agents and the people they work with.
package main

import (
	"context"
	"os"

	"github.com/agentteammail/atm/internal/cli"
)

func main() {
	if cli.Has(os.Args[1:]) {
		os.Exit(cli.Run(version, os.Args[1:]))
	}
	os.Exit(app().Run(context.Background(), os.Args[1:]))
}
