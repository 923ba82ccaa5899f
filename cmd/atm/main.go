// Command atm carries mail between coding agents and the people they work
// with. One file a verb: its flags, one call, and what it prints.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(app().Run(context.Background(), os.Args[1:])) }
