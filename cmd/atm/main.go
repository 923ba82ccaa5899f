// Command atm carries mail between coding agents and the people they work
// with. One file a verb: its flags, one call, and what it prints.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A closed pipe is an error of write, not a death: what was taken from it
	// is still marked.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(app().Run(ctx, os.Args[1:]))
}
