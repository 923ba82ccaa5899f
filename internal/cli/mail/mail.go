// Package mail is the verbs that send, show and wait for messages.
package mail

import "github.com/urfave/cli/v2"

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		sendCommand, replyCommand, readCommand, ackCommand, lsCommand, showCommand, unreadCommand,
		threadCommand, searchCommand, traceCommand, withdrawCommand, waitCommand, watchCommand, takeCommand,
	}
}

// hidden is a flag that says what is so already: it works, and changes nothing.
func hidden(name string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Hidden: true}
}
