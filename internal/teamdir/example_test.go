package teamdir_test

import (
	"context"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// The examples in example_*_test.go are the scripts of docs/cookbook as programs. They share the functions here: to ask
// a question under a name, so that a restarted program does not ask twice, and to answer as a member.

// ask asks a member as the member script, and returns the answer.
func ask(ctx context.Context, team *teamdir.Team, to wire.Name, once, text string) (string, error) {
	answer, err := team.Root().Ask(ctx, question(team, to, once, text), teamdir.Observer{})
	return answer.Text, err
}

// send sends the same message without waiting.
func send(ctx context.Context, team *teamdir.Team, to wire.Name, once, text string) error {
	_, err := team.Root().Send(ctx, question(team, to, once, text))
	return err
}

func question(team *teamdir.Team, to wire.Name, once, text string) *teamdir.Outgoing {
	return &teamdir.Outgoing{
		From: team.Box("script"), To: []wire.Address{{Agent: to, Team: team.Name}},
		Message: &wire.Message{Body: text, ReplyWanted: "yes"}, Once: once,
	}
}

// plays answers a member's mail until ctx ends. A message with an empty answer is only marked as read.
func plays(ctx context.Context, team *teamdir.Team, name wire.Name, answer func(question string) string) {
	box, inbox := team.Box(name), incoming(ctx, team, name)
	go func() {
		defer inbox.Close()
		for {
			entry, err := inbox.Next(ctx)
			if err != nil {
				return
			}
			if m := entry.Message; m != nil {
				if err := reply(ctx, team, box, m, answer(m.Body)); ctx.Err() == nil {
					must(err)
				}
			}
		}
	}()
}

// incoming watches a member's mail, beginning with its unread messages.
func incoming(ctx context.Context, team *teamdir.Team, name wire.Name) *watcher.Watcher {
	inbox, err := watcher.Open(ctx, []watcher.Mailbox{team.Box(name)}, watcher.Options{Messages: true, Existing: true})
	must(err)
	return inbox
}

// reply answers a message, which marks it as read.
func reply(ctx context.Context, team *teamdir.Team, me *maildir.Box, to *wire.Message, text string) error {
	if text == "" {
		err := me.MarkRead(ctx, to.ID)
		return err
	}
	_, err := team.Root().Send(ctx, &teamdir.Outgoing{
		From: me, To: team.Root().ReplyTo(ctx, to, me, false), Parent: to, Message: &wire.Message{Body: text},
	})
	return err
}

// says always gives the same answer.
func says(text string) func(string) string { return func(string) string { return text } }

// lastLine returns the last line of a question.
func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
