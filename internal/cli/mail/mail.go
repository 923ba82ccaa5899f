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
