// Command atm-runner holds one agent's terminal. atm starts it.
package main

import (
	"os"

	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/runner"
)

var version = "dev" // set by the linker

func main() {
	os.Exit(runner.Main(version, os.Args[1:], output.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
