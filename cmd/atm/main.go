// Command atm carries mail between coding agents and the people they work with.
package main

import (
	"context"
	"os"

	"github.com/agentteammail/atm/internal/cli"
)

func main() {
	var others []string // the verbs that are still here
	for _, v := range program.Verbs {
		others = append(append(others, v.Name), v.Aliases...)
	}
	if cli.Has(os.Args[1:], others) {
		os.Exit(cli.Run(version, os.Args[1:]))
	}
	os.Exit(app().Run(context.Background(), os.Args[1:]))
}
