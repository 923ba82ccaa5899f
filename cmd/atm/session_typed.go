package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

const conversationHelp = `/approve DRAFT    /reject DRAFT [why]    answer a draft; atm pending lists them
/pause    /resume    /complete    /abort    the session
/quit     leave; it goes on. Anything else that begins with / is doubled: //text`

// handle does what a line that was typed says, and reports whether that is to
// leave. Whatever goes wrong is said, and the conversation goes on.
func (c *conversation) handle(ctx context.Context, text string) (leave bool) {
	if strings.TrimSpace(text) == "" {
		return false
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	var err error
	switch {
	case c.screen == nil || !strings.HasPrefix(text, "/"):
		err = c.send(ctx, wire.HumanInput{Kind: "message", Text: text})
	case strings.HasPrefix(text, "//"):
		err = c.send(ctx, wire.HumanInput{Kind: "message", Text: text[1:]})
	case word == "/quit" || word == "/exit" || word == "/detach":
		return true
	case word == "/help":
		c.line(conversationHelp)
	case word == "/approve", word == "/reject":
		err = c.answerHere(ctx, strings.TrimSpace(rest), word == "/reject")
	case word == "/pause":
		err = c.move(ctx, wire.SessionPaused)
	case word == "/resume":
		err = c.move(ctx, wire.SessionActive)
	case word == "/complete":
		err = c.move(ctx, wire.SessionCompleted)
	case word == "/abort":
		if err = c.mayAct("abort", c.box.Agent()); err == nil {
			err = c.send(ctx, wire.HumanInput{Kind: "abort"})
		}
	default:
		err = fmt.Errorf("no %s: /help lists what there is; //%s says it to the agent", word, strings.TrimPrefix(text, "/"))
	}
	if err != nil {
		c.note("%v", c.explain(explainSession(err)))
	}
	return false
}

func (c *conversation) send(ctx context.Context, in wire.HumanInput) error {
	if c.readOnly {
		return errors.New("read only: nothing is sent")
	}
	if in.Kind == "message" {
		if err := cmdline.CheckText(in.Text); err != nil {
			return err
		}
	}
	out, err := c.team.Say(ctx, c.id, c.saying(in))
	if err != nil {
		return err
	}
	if out.Message != nil && in.Kind == "message" {
		c.mine[out.Message.SentAt.UTC()] = true
	}
	if out.Unlogged != nil {
		c.note("sent; the log could not be written: %v", out.Unlogged)
	}
	return nil
}

func (c *conversation) move(ctx context.Context, to wire.InteractiveSessionState) error {
	if c.readOnly {
		return errors.New("read only: nothing is changed")
	}
	if err := c.mayAct("change the session of", c.box.Agent()); err != nil {
		return err
	}
	_, err := c.team.Sessions().Change(ctx, c.id, func(s *session.Session) error { return s.Move(to, c.by(), time.Now()) })
	return err
}

// answerHere answers a draft of this conversation.
func (c *conversation) answerHere(ctx context.Context, rest string, deny bool) error {
	if c.readOnly {
		return errors.New("read only: nothing is answered")
	}
	word, reason, _ := strings.Cut(rest, " ")
	if word == "" {
		return errors.New("which draft? four digits of its id are enough")
	}
	list, err := c.team.Waiting(ctx)
	q, found := teams.FindWaiting(list, word)
	switch {
	case found != nil && err != nil:
		return err
	case found != nil:
		return found
	case q.Kind != teams.KindDraft:
		return fmt.Errorf("%s is no draft: atm approve %s", word, q.Short())
	}
	who, inAgent := c.actor()
	if err := c.mayAnswer(q.Agent, who, inAgent); err != nil {
		return err
	}
	_, err = c.answerDraft(ctx, q, deny, strings.TrimSpace(reason), nil)
	return err
}
